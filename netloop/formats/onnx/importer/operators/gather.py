"""Gather and scatter."""

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.shared.word_tables import SCATTER_REDUCTIONS
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require


@operator("Gather")
def gather(call: NodeCall, x: ITensor, indices: ITensor) -> ITensor:
    """Slices along an axis, selected by index."""
    return call.make.gather(x, indices, call.attribute("axis"))


@operator("GatherElements", since=11)
def gather_elements(call: NodeCall, x: ITensor, indices: ITensor) -> ITensor:
    """Elements along an axis, one index for each output element."""
    return call.make.gather_elements(x, indices, call.attribute("axis"))


@operator("GatherND", since=(11, 12))
def gather_nd(call: NodeCall, x: ITensor, indices: ITensor) -> ITensor:
    """Slices selected by index tuples."""
    return call.make.gather_nd(x, indices, call.attribute("batch_dims", 0))


@operator("Scatter", since=9)
@operator("ScatterElements", since=(11, 16))
def scatter_elements(call: NodeCall, x: ITensor, indices: ITensor, updates: ITensor) -> ITensor:
    """The input with elements along an axis written, or combined with updates, by index."""
    reduction = call.choice("reduction", SCATTER_REDUCTIONS.onnx.read, "none")
    return call.make.scatter_elements(x, indices, updates, call.attribute("axis"), reduction)


@operator("ScatterND", since=(11, 16))
def scatter_nd(call: NodeCall, x: ITensor, indices: ITensor, updates: ITensor) -> ITensor:
    """The input with slices written, or combined with updates, by index tuples."""
    return call.make.scatter_nd(x, indices, updates, call.choice("reduction", SCATTER_REDUCTIONS.onnx.read, "none"))


@operator("TensorScatter", since=24)
def tensor_scatter(call: NodeCall, cache: ITensor, update: ITensor, starts: Maybe = None) -> ITensor:
    """A cache with an update written along an axis, from a start index for each batch item."""
    make, rank = call.make, cache.type.rank
    axis = call.axis(cache)
    require(axis > 0, "the axis is 0, which is the batch axis")
    indices = make.expand_dims(make.arange(make.length(update, axis)), range(1, rank - axis))
    if starts is not None:
        indices = make.add(make.expand_dims(make.cast(starts, np.int64), range(1, rank)), indices)
    if call.attribute("mode") == "circular":
        indices = make.modulo(indices, make.tensor(make.length(cache, axis)))
    return make.scatter_elements(cache, make.broadcast_to(indices, make.shape(update)), update, axis)


@operator("OneHot", since=9)
def one_hot(call: NodeCall, indices: ITensor, depth: ITensor, values: ITensor) -> ITensor:
    """One value at each index along a new axis, another elsewhere."""
    make = call.make
    count = make.scalar(make.cast(depth, np.int64))
    return make.one_hot(make.cast(indices, np.int64), count, values, call.attribute("axis"))


@operator("OneHot", since=11)
def one_hot_from_end(call: NodeCall, indices: ITensor, depth: ITensor, values: ITensor) -> ITensor:
    """One value at each index along a new axis, another elsewhere; negative indices count from the end."""
    make = call.make
    count, indices = make.scalar(make.cast(depth, np.int64)), make.cast(indices, np.int64)
    indices = make.where(make.less(indices, 0), make.add(indices, count), indices)
    return make.one_hot(indices, count, values, call.attribute("axis"))


@operator("Compress", since=9)
def compress(call: NodeCall, x: ITensor, condition: ITensor) -> ITensor:
    """The elements, or slices along an axis, for which a condition is true."""
    make, axis = call.make, call.attribute("axis")
    indices = make.flat(make.nonzero(condition))
    return make.gather(make.flat(x), indices) if axis is None else make.gather(x, indices, axis)
