"""MkDocs hook: the gallery shows the reports of its samples, each in its entry. ``mkdocs.yml`` names this file."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import netloop as trt

GALLERY = "gallery.md"
ENTRY = re.compile(r"^- \[(\w+)\.py\].*$", re.MULTILINE)

# fmt: off
REPORTED: dict[str, dict[str, Any]] = {
    "counting_loop":       {"x": np.float32([1, 10, 100]), "count": np.int32(6)},
    "running_sum":         {"x": np.int32([1, 2, 3, 4, 5])},
    "newton_sqrt":         {"x": np.float32(100)},
    "conditional_in_loop": {"start": np.int32(6)},
    "nested_loops":        {"rows": np.int32([1, 2, 3]), "columns": np.int32([10, 20])},
    "lstm":                {"x": np.ones((8, 3), np.float32)},
}
# fmt: on
"""The samples with reports, and the inputs of the runs in them."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reports."""
    sys.path.insert(0, str(Path(config.config_file_path).parent))
    for name, inputs in REPORTED.items():
        page = trt.report(import_module(f"samples.{name}").build(), inputs=inputs, peers=["reference"])
        files.append(File.generated(config, f"reports/{name}.html", content=page))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Add to each entry of the gallery its report, which a browser reads when it is unfolded."""
    return ENTRY.sub(_with_report, markdown) if page.file.src_uri == GALLERY else markdown


def _with_report(entry: re.Match[str]) -> str:
    name = entry[1]
    if name not in REPORTED:
        return entry[0]
    # pages of the site are folders, so that the reports are one folder up
    frame = f'<iframe src="../reports/{name}.html" title="Report of {name}" loading="lazy" width="100%" height="640">'
    return f"{entry[0]}\n    <details><summary>Its report</summary>{frame}</iframe></details>"
