"""The operators that netloop loads, as a page of Markdown."""

from netloop.formats.operator_page import page_of
from netloop.onnx.importer.operator_table import all_entered

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
    operators = ((domain and f"{domain}::") + name for domain, name in sorted(all_entered()))
    entered = (all_entered()[key] for key in sorted(all_entered()))
    return page_of(_HEAD, "operator | as of version | the newest is", zip(operators, entered, strict=True))
