"""Reductions, cumulative operations, softmax and top-k."""

import math

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import BOOL, INT32, carrier
from netloop.formats.shared.word_tables import CUMULATIVE, REDUCTIONS
from netloop.model.layers.reduce import ICumulativeLayer, IReduceLayer, ISoftMaxLayer
from netloop.model.layers.topk import ITopKLayer
from netloop.values.enums import ReduceOperation, TopKOperation
from netloop.values.types import INTEGERS, UNKNOWN, axes_of, numpy_type


@exports(IReduceLayer)
def reduce(layer: IReduceLayer, make: NodeBuilder, x: Value, axes: Value | None = None) -> Value:
    over = make.int64s(*axes_of(layer.axes, make.type(0).rank))
    if axes is not None:
        over = make.reshape(make.cast(axes, INT64), [-1])
    may_be_empty = over.array is None or min(_lengths(make, over), default=1) <= 0
    if x.dtype == BOOL and may_be_empty:
        # onnxruntime has no extreme of no bool; of no integer, it is the smallest or largest one
        return make.compare(
            "Greater", _reduced(make, layer.op, make.cast(x, INT32), over, layer), make.number(0, INT32)
        )
    if layer.op is not ReduceOperation.AVG:
        return _reduced(make, layer.op, x, over, layer)
    wide = make.cast(x, INT32) if x.dtype in INTEGERS and x.dtype.itemsize < INT32.itemsize else make.wide(x)
    if wide.dtype.kind == "f" and not may_be_empty:
        return make.cast(_reduced(make, ReduceOperation.AVG, wide, over, layer), x.dtype)
    total = _reduced(make, ReduceOperation.SUM, wide, over, layer)
    return make.cast(make.op("Div", total, _count(make, x, over, wide)), x.dtype)


def _reduced(make: NodeBuilder, op: ReduceOperation, x: Value, axes: Value, layer: IReduceLayer) -> Value:
    return make.op(REDUCTIONS.onnx.write[op], x, axes, keepdims=int(layer.keep_dims), noop_with_empty_axes=1)


def _lengths(make: NodeBuilder, axes: Value) -> list[int]:
    """The lengths of constant axes, with -1 for unknown ones."""
    assert axes.array is not None
    return [make.type(0).shape[axis] for axis in axes.array]


def _count(make: NodeBuilder, x: Value, axes: Value, wide: Value) -> Value:
    """The number of elements of a mean; for integers at least 1, so that nothing is divided by 0."""
    lengths = [UNKNOWN] if axes.array is None else _lengths(make, axes)
    if UNKNOWN not in lengths:
        count = math.prod(lengths)
        return make.number_like(count if wide.dtype.kind == "f" else max(count, 1), wide)
    value = make.gather(make.shape(x), axes, 0)
    count = make.cast(make.op("ReduceProd", value, keepdims=0), wide.dtype)
    return count if wide.dtype.kind == "f" else make.op("Max", count, make.number_like(1, wide))


@exports(ICumulativeLayer)
def cumulative(layer: ICumulativeLayer, make: NodeBuilder, x: Value, axis: Value) -> Value:
    op = CUMULATIVE.onnx.write[layer.op]
    return make.op(op, x, axis, exclusive=int(layer.exclusive), reverse=int(layer.reverse))


@exports(ISoftMaxLayer)
def softmax(layer: ISoftMaxLayer, make: NodeBuilder, x: Value) -> Value:
    return make.op("Softmax", x, axis=axes_of(layer.axes, make.type(0).rank)[0])


@exports(ITopKLayer)
def topk(layer: ITopKLayer, make: NodeBuilder, x: Value, k: Value | None = None) -> tuple[Value, Value]:
    axis = axes_of(layer.axes, make.type(0).rank)[0]
    count = make.int64s(layer.k) if k is None else make.reshape(make.cast(k, INT64), [1])
    wide = make.cast(x, carrier("TopK", x.dtype))
    values, indices = Value(wide.dtype), Value(INT64)
    make.node("TopK", [wide, count], [values, indices], axis=axis, largest=int(layer.op is TopKOperation.MAX))
    return make.cast(values, x.dtype), make.cast(indices, numpy_type(layer.indices_type))
