"""What becomes of each operator: a file a family, a function an operator."""

from netloop.onnx.operators import constants, control, pointwise, rearrange, reduce
from netloop.onnx.operators.table import entered
from netloop.onnx.operators.table import news as news
from netloop.onnx.operators.table import operator as operator
from netloop.onnx.operators.table import version_for as version_for

FAMILIES = (constants, control, pointwise, rearrange, reduce)
"""The modules whose operators are in the table."""


def supports(op: str, domain: str = "") -> bool:
    """Whether netloop makes layers of an operator, in one version at least."""
    return bool(entered(domain, op))
