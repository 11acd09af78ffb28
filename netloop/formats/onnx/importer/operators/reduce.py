"""Reductions, running sums, softmax and top-k."""

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.shared.reduce import Reduction, in_float, reduction
from netloop.formats.shared.word_tables import CUMULATIVE, REDUCTIONS
from netloop.model.formulas import FormulaBuilder, Numbers
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import TopKOperation, UnaryOperation


def _log_sum(make: FormulaBuilder, x: ITensor, axes: Numbers, keep: bool) -> ITensor:
    return make.unary(UnaryOperation.LOG, make.sum(x, axes, keep))


def _square_sum(make: FormulaBuilder, x: ITensor, axes: Numbers, keep: bool) -> ITensor:
    return make.sum(make.mul(x, x), axes, keep)


# fmt: off
FORMULAS: dict[str, Reduction] = {
    **{name: reduction(op) for name, op in REDUCTIONS.onnx.read.items()},
    "ReduceL1":        FormulaBuilder.norm_1,
    "ReduceSumSquare": _square_sum,
    "ReduceL2":        in_float(FormulaBuilder.norm_2),
    "ReduceLogSum":    in_float(_log_sum),
    "ReduceLogSumExp": in_float(FormulaBuilder.log_sum_exp),
}
# fmt: on


@operator(*FORMULAS)
def reduce_by_attribute(call: NodeCall, x: ITensor) -> ITensor:
    """Reduction over axes, by default all."""
    axes = call.attribute("axes", list(range(x.type.rank)))
    return FORMULAS[call.node.op](call.make, x, axes, call.flag("keepdims"))


@operator("ReduceSum", since=13)
@operator(*(name for name in FORMULAS if name != "ReduceSum"), since=18)
def reduce(call: NodeCall, x: ITensor, axes: Maybe = None) -> ITensor:
    """Reduction over axes; with none given, over all, or with ``noop_with_empty_axes`` over none."""
    none = axes is None or axes.type.shape == (0,)
    chosen: Numbers = [] if none or axes is None else axes
    if none and not call.attribute("noop_with_empty_axes"):
        chosen = range(x.type.rank)
    return FORMULAS[call.node.op](call.make, x, chosen, call.flag("keepdims"))


@operator("ArgMax", "ArgMin", since=(1, 12))
def arg_best(call: NodeCall, x: ITensor) -> ITensor:
    """The index of the largest or smallest element along an axis; of equal ones the first, or the last."""
    make, axis = call.make, call.axis(x)
    op = TopKOperation.MAX if call.node.op == "ArgMax" else TopKOperation.MIN
    if call.attribute("select_last_index", 0):
        last = make.sub(make.tensor(make.length(x, axis)), 1)
        backwards = make.slice(x, [last], [make.length(x, axis)], [-1], [axis])
        index = make.sub(last, make.best(op, backwards, 1, axis)[1])
    else:
        index = make.best(op, x, 1, axis)[1]
    return index if call.attribute("keepdims") else make.squeeze(index, [axis])


@operator("TopK", since=(1, 10, 11))
def top(call: NodeCall, x: ITensor, k: Maybe = None) -> list[ITensor]:
    """The largest or smallest elements along an axis, always in order, and their indices."""
    op = TopKOperation.MAX if call.attribute("largest", 1) else TopKOperation.MIN
    count = call.attribute("k") if k is None else call.make.scalar(k)
    return list(call.make.best(op, x, count, call.attribute("axis")))


@operator("CumSum", since=11)
@operator("CumProd", since=26)
def cumulative(call: NodeCall, x: ITensor, axis: ITensor) -> ITensor:
    """Running sum or product along an axis."""
    op = CUMULATIVE.onnx.read[call.node.op]
    return call.make.cumulative(op, x, axis, call.flag("exclusive"), call.flag("reverse"))


def _hardmax(make: FormulaBuilder, x: ITensor, axis: int) -> ITensor:
    best = make.squeeze(make.best(TopKOperation.MAX, x, 1, axis)[1], [axis])
    return make.one_hot(best, make.length(x, axis), make.constant([0, 1], x.type.dtype), axis)


SOFTMAXES = {"Softmax": FormulaBuilder.softmax, "LogSoftmax": FormulaBuilder.log_softmax, "Hardmax": _hardmax}


@operator(*SOFTMAXES)
def softmax_of_matrix(call: NodeCall, x: ITensor) -> ITensor:
    """Softmax, log-softmax or hardmax over all axes from ``axis`` on."""
    make, axis = call.make, call.axis(x)
    if axis == x.type.rank - 1:
        return SOFTMAXES[call.node.op](make, x, axis)
    return make.reshape(SOFTMAXES[call.node.op](make, make.merge_axes(x, axis), 1), make.shape(x))


@operator(*SOFTMAXES, since=13)
def softmax(call: NodeCall, x: ITensor) -> ITensor:
    """Softmax, log-softmax or hardmax (1 at the first largest element) along an axis."""
    return SOFTMAXES[call.node.op](call.make, x, call.axis(x))
