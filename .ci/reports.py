"""MkDocs hook: the gallery shows pictures of its samples and their reports. ``mkdocs.yml`` names this file."""

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
PICTURED = (*REPORTED, "onnx_to_jax")
"""The samples with pictures."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reports and pictures."""
    root = Path(config.config_file_path).parent
    sys.path[:0] = [str(root), str(root / ".ci")]
    picture_of = import_module("thumbnails").Picture
    for name in PICTURED:
        built = import_module(f"samples.{name}").build()
        network = built if isinstance(built, trt.INetworkDefinition) else trt.onnx.load(built)
        files.append(File.generated(config, f"thumbnails/{name}.svg", content=picture_of(network).svg()))
    for name, inputs in REPORTED.items():
        network = import_module(f"samples.{name}").build()
        network.name = name
        page = trt.report(network, inputs=inputs, peers=["reference"])
        files.append(File.generated(config, f"reports/{name}.html", content=page))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Add to each entry of the gallery its picture, and its report, which a browser reads when it is unfolded."""
    return ENTRY.sub(_with_picture, markdown) if page.file.src_uri == GALLERY else markdown


def _with_picture(entry: re.Match[str]) -> str:
    # pages of the site are folders, so that pictures and reports are one folder up
    name, text = entry[1], entry[0]
    if name in PICTURED:
        alternative = f'alt="The network of {name}.py: loops and branches as boxes"'
        text += f'\n    <br><img src="../thumbnails/{name}.svg" {alternative} loading="lazy" style="max-height: 16rem">'
    if name in REPORTED:
        title = f'title="Report of {name}" loading="lazy" width="100%" height="640"'
        frame = f'<iframe src="../reports/{name}.html" {title}></iframe>'
        text += f"\n    <details><summary>Its report</summary>{frame}</details>"
    return text
