"""What becomes of each operator: a file a family, a function an operator."""

from netloop.onnx.operators import (
    activations,
    constants,
    control,
    index,
    integers,
    normalization,
    parts,
    pointwise,
    pooling,
    products,
    quantize,
    random,
    rearrange,
    recurrent,
    reduce,
    scan,
    windows,
)
from netloop.onnx.operators.table import entered
from netloop.onnx.operators.table import news as news
from netloop.onnx.operators.table import operator as operator
from netloop.onnx.operators.table import version_for as version_for

FAMILIES = (
    activations,
    constants,
    control,
    index,
    integers,
    normalization,
    parts,
    pointwise,
    pooling,
    products,
    quantize,
    random,
    rearrange,
    recurrent,
    reduce,
    scan,
    windows,
)
"""The modules whose operators are in the table."""


def supports(op: str, domain: str = "", version: int | None = None) -> bool:
    """Whether netloop makes layers of an operator, as of a version of its domain or else of the newest.

    Of others too it loads what is a function, of the model or of the standard.
    """
    return any(version is None or since <= version for since in entered(domain, op))
