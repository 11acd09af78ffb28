"""Elements read and written by index."""

import numpy as np

from netloop.diagnostics import require
from netloop.enums import ReduceOperation
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.types import normal_axis

REDUCTIONS = {
    "none": ReduceOperation.NONE,
    "add": ReduceOperation.SUM,
    "mul": ReduceOperation.PROD,
    "max": ReduceOperation.MAX,
    "min": ReduceOperation.MIN,
}


def _reduction(call: Call) -> ReduceOperation:
    name = call.attribute("reduction", "none")
    require(name in REDUCTIONS, f"the reduction is {name!r}, and must be one of {', '.join(REDUCTIONS)}")
    return REDUCTIONS[name]


@operator("Gather")
def gather(call: Call, x: ITensor, indices: ITensor) -> ITensor:
    """The slices that indices name."""
    return call.make.gather(x, indices, call.attribute("axis"))


@operator("GatherElements", since=11)
def gather_elements(call: Call, x: ITensor, indices: ITensor) -> ITensor:
    """The elements that indices name, each along its own line."""
    return call.make.gather_elements(x, indices, call.attribute("axis"))


@operator("GatherND", since=11)
@operator("GatherND", since=12)
def gather_nd(call: Call, x: ITensor, indices: ITensor) -> ITensor:
    """The slices at positions."""
    return call.make.gather_nd(x, indices, call.attribute("batch_dims", 0))


@operator("Scatter", since=9)
@operator("ScatterElements", since=11)
@operator("ScatterElements", since=16)
def scatter_elements(call: Call, x: ITensor, indices: ITensor, updates: ITensor) -> ITensor:
    """The tensor with elements written, or combined with updates, where indices say, each along its own line."""
    return call.make.scatter_elements(x, indices, updates, call.attribute("axis"), _reduction(call))


@operator("ScatterND", since=11)
@operator("ScatterND", since=16)
def scatter_nd(call: Call, x: ITensor, indices: ITensor, updates: ITensor) -> ITensor:
    """The tensor with slices written, or combined with updates, at positions."""
    return call.make.scatter_nd(x, indices, updates, _reduction(call))


@operator("TensorScatter", since=24)
def tensor_scatter(call: Call, cache: ITensor, update: ITensor, starts: ITensor | None = None) -> ITensor:
    """The cache with the update written along an axis, in each member of the batch from a place of its own on."""
    make, rank = call.make, cache.type.rank
    axis = normal_axis(call.attribute("axis"), rank)
    require(axis > 0, "the axis is 0, which is that of the batch")
    places = make.expand_dims(make.arange(make.length(update, axis)), range(1, rank - axis))
    if starts is not None:
        places = make.add(make.expand_dims(make.cast(starts, np.int64), range(1, rank)), places)
    if call.attribute("mode") == "circular":
        places = make.modulo(places, make.tensor(make.length(cache, axis)))
    return make.scatter_elements(cache, make.broadcast_to(places, make.shape(update)), update, axis)


@operator("OneHot", since=9)
def one_hot(call: Call, indices: ITensor, depth: ITensor, values: ITensor) -> ITensor:
    """One value at the place that an index names, and another elsewhere."""
    make = call.make
    count = make.scalar(make.cast(depth, np.int64))
    return make.one_hot(make.cast(indices, np.int64), count, values, call.attribute("axis"))


@operator("OneHot", since=11)
def one_hot_from_end(call: Call, indices: ITensor, depth: ITensor, values: ITensor) -> ITensor:
    """The same, negative indices counting from the end."""
    make = call.make
    count, places = make.scalar(make.cast(depth, np.int64)), make.cast(indices, np.int64)
    places = make.where(make.less(places, 0), make.add(places, count), places)
    return make.one_hot(places, count, values, call.attribute("axis"))


@operator("Compress", since=9)
def compress(call: Call, x: ITensor, condition: ITensor) -> ITensor:
    """The elements, or slices along an axis, for which the condition is true."""
    make, axis = call.make, call.attribute("axis")
    places = make.flat(make.nonzero(condition))
    return make.gather(make.flat(x), places) if axis is None else make.gather(x, places, axis)
