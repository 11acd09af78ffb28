"""Reduce, cumulative, softmax, top-k."""

import math

from netloop.enums import ReduceOperation, TopKOperation
from netloop.layers.reduce import ICumulativeLayer, IReduceLayer, ISoftMaxLayer, ITopKLayer
from netloop.onnx.save.graph import Value
from netloop.onnx.save.make import INT8, INT32, INT64, UINT8, Make
from netloop.onnx.save.table import exports
from netloop.types import UNKNOWN, axes_of, numpy_type

# fmt: off
REDUCTIONS = {
    ReduceOperation.SUM:  "ReduceSum",
    ReduceOperation.PROD: "ReduceProd",
    ReduceOperation.MAX:  "ReduceMax",
    ReduceOperation.MIN:  "ReduceMin",
}
# fmt: on


@exports(IReduceLayer)
def reduce(layer: IReduceLayer, make: Make, x: Value) -> Value:
    axes = axes_of(layer.axes, make.type(0).rank)
    if layer.op is not ReduceOperation.AVG:
        return make.reduce(REDUCTIONS[layer.op], x, axes, layer.keep_dims)
    lengths = [make.type(0).shape[axis] for axis in axes]
    wide = make.cast(x, INT32) if x.dtype in (INT8, UINT8) else make.wide(x)
    if wide.dtype.kind == "f" and min(lengths) > 0:
        return make.cast(make.reduce("ReduceMean", wide, axes, layer.keep_dims), x.dtype)
    total = make.reduce("ReduceSum", wide, axes, layer.keep_dims)
    return make.cast(make.op("Div", total, _count(make, x, axes, wide)), x.dtype)


def _count(make: Make, x: Value, axes: tuple[int, ...], wide: Value) -> Value:
    """The number of elements that a mean is of; for integers at least 1."""
    lengths = [make.type(0).shape[axis] for axis in axes]
    if UNKNOWN not in lengths:
        count = math.prod(lengths)
        return make.alike(count if wide.dtype.kind == "f" else max(count, 1), wide)
    found = make.take(make.shape(x), make.ints(*axes), 0)
    count = make.cast(make.op("ReduceProd", found, keepdims=0), wide.dtype)
    return count if wide.dtype.kind == "f" else make.op("Max", count, make.alike(1, wide))


@exports(ICumulativeLayer)
def cumulative(layer: ICumulativeLayer, make: Make, x: Value, axis: Value) -> Value:
    return make.op("CumSum", x, axis, exclusive=int(layer.exclusive), reverse=int(layer.reverse))


@exports(ISoftMaxLayer)
def softmax(layer: ISoftMaxLayer, make: Make, x: Value) -> Value:
    return make.op("Softmax", x, axis=axes_of(layer.axes, make.type(0).rank)[0])


@exports(ITopKLayer)
def topk(layer: ITopKLayer, make: Make, x: Value, k: Value | None = None) -> tuple[Value, Value]:
    axis = axes_of(layer.axes, make.type(0).rank)[0]
    count = make.ints(layer.k) if k is None else make.reshape(make.cast(k, INT64), 1)
    wide = make.wide(x)
    values, indices = Value(wide.dtype), Value(INT64)
    make.node("TopK", [wide, count], [values, indices], axis=axis, largest=int(layer.op is TopKOperation.MAX))
    return make.cast(values, x.dtype), make.cast(indices, numpy_type(layer.indices_type))
