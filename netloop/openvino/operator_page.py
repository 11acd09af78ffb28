"""The operators that netloop loads, as a page of Markdown."""

from netloop.formats.operator_page import page_of
from netloop.openvino.importer.operators import all_entered

_HEAD = [
    "# OpenVINO operators",
    "This page is made by `python -m netloop operators openvino`.",
    "Each operator is made into layers by a function, of the versions that came with the operator sets listed.\n"
    "A model with others is refused, with all of them at once.\n"
    "`netloop.openvino.supports` tells of one operator.",
]


def operators_page() -> str:
    """All operators by family, ``docs/openvino-operators.md``: as of which operator sets they are made into what."""
    return page_of(_HEAD, "operator | since opset | the newest is", sorted(all_entered().items()))
