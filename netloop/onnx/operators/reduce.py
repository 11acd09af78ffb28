"""Along axes, and products."""

from collections.abc import Callable

from netloop.compose import Composer
from netloop.diagnostics import require
from netloop.enums import ReduceOperation, UnaryOperation
from netloop.graph.tensor import ITensor
from netloop.onnx.call import Call
from netloop.onnx.operators.table import operator

Reduction = Callable[[Composer, ITensor, list[int], bool], ITensor]


def _plain(op: ReduceOperation) -> Reduction:
    return lambda make, x, axes, keep: make.reduce(op, x, axes, keep)


def _log(make: Composer, x: ITensor) -> ITensor:
    return make.unary(UnaryOperation.LOG, x)


def _abs_sum(make: Composer, x: ITensor, axes: list[int], keep: bool) -> ITensor:
    return make.sum(make.unary(UnaryOperation.ABS, x), axes, keep)


def _square_sum(make: Composer, x: ITensor, axes: list[int], keep: bool) -> ITensor:
    return make.sum(make.mul(x, x), axes, keep)


# fmt: off
REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum":       _plain(ReduceOperation.SUM),
    "ReduceProd":      _plain(ReduceOperation.PROD),
    "ReduceMax":       _plain(ReduceOperation.MAX),
    "ReduceMin":       _plain(ReduceOperation.MIN),
    "ReduceMean":      _plain(ReduceOperation.AVG),
    "ReduceL1":        _abs_sum,
    "ReduceSumSquare": _square_sum,
    "ReduceL2":        lambda make, x, axes, keep: make.unary(UnaryOperation.SQRT, _square_sum(make, x, axes, keep)),
    "ReduceLogSum":    lambda make, x, axes, keep: _log(make, make.sum(x, axes, keep)),
}
# fmt: on


@operator(*REDUCTIONS)
def reduce_by_attribute(call: Call, x: ITensor) -> ITensor:
    """Elements combined along axes, by default all."""
    axes = call.attribute("axes", list(range(x.type.rank)))
    return REDUCTIONS[call.node.op](call.make, x, axes, bool(call.attribute("keepdims")))


@operator("ReduceSum", since=13)
@operator(*(name for name in REDUCTIONS if name != "ReduceSum"), since=18)
def reduce(call: Call, x: ITensor, axes: ITensor | None = None) -> ITensor:
    """Elements combined along axes, by default all, or none if the list of axes is empty on purpose."""
    chosen = [] if axes is None else call.make.ints(axes)
    require(
        chosen is not None,
        "the axes are known only in the call",
        "they decide how many axes the output has",
        "make them a constant of the model",
    )
    assert chosen is not None
    if not chosen and not call.attribute("noop_with_empty_axes"):
        chosen = list(range(x.type.rank))
    return REDUCTIONS[call.node.op](call.make, x, chosen, bool(call.attribute("keepdims")))


@operator("MatMul")
def matmul(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """The product of matrices, of vectors, or of batches of them."""
    return call.make.matmul(a, b)
