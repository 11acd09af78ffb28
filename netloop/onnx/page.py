"""The operators that netloop loads, as a page of Markdown."""

import sys
from collections import defaultdict
from collections.abc import Iterator

from netloop.onnx.operators.table import all_entered

_HEAD = [
    "# ONNX operators",
    "This page is made by `python -m netloop operators`.",
    "Each operator is made into layers by a function, which serves as of a version of its domain, and up to the next "
    "one listed: most versions only take more types.\n"
    "An operator that is not here is loaded too if it is a function: of the model, or of the standard, as are the "
    "losses, `SequenceMap` and most attentions.\n"
    "`netloop.onnx.supports` tells of one operator.",
]


def operators_page() -> str:
    """All operators by family, ``docs/onnx-operators.md``: as of which versions they are made into what."""
    families: dict[str, list[str]] = defaultdict(list)
    for (domain, name), versions in sorted(all_entered().items()):
        newest = versions[max(versions)]
        says = (newest.__doc__ or "").partition("\n")[0].replace("``", "`").replace("|", "\\|")
        listed = ", ".join(map(str, sorted(versions)))
        families[newest.__module__].append(f"| `{domain and domain + '::'}{name}` | {listed} | {says} |")
    return "\n\n".join([*_HEAD, *_sections(families)]) + "\n"


def _sections(families: dict[str, list[str]]) -> Iterator[str]:
    for module in sorted(families):
        title = (sys.modules[module].__doc__ or "").partition("\n")[0].rstrip(".")
        yield f"## {title}"
        yield "\n".join(["| operator | as of version | the newest is |", "|---|---|---|", *families[module]])
