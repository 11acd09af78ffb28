"""Gather, scatter and one-hot."""

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.formats.shared.word_tables import SCATTER_REDUCTIONS
from netloop.model.layers.gather import IGatherLayer, IOneHotLayer, IScatterLayer
from netloop.values.enums import GatherMode, ReduceOperation, ScatterMode


@exports(IGatherLayer)
def gather(layer: IGatherLayer, make: NodeBuilder, data: Value, indices: Value) -> Value:
    match layer.mode:
        case GatherMode.DEFAULT if layer.num_elementwise_dims:
            return _gather_in_batch(layer, make, data, make.cast(indices, INT64))
        case GatherMode.DEFAULT:
            return make.op("Gather", data, indices, axis=layer.axis)
        case GatherMode.ELEMENT:
            return make.op("GatherElements", data, indices, axis=layer.axis)
        case GatherMode.ND:
            return make.op("GatherND", data, make.cast(indices, INT64), batch_dims=layer.num_elementwise_dims)


def _gather_in_batch(layer: IGatherLayer, make: NodeBuilder, data: Value, indices: Value) -> Value:
    """Gather with a batch axis, by GatherND on the axis after that."""
    source, places = make.type(0), make.type(1)
    axis = layer.axis % source.rank
    rows = make.move_axis(_broadcast(make, data, 0, 1, indices), source.rank, axis, 1)
    value = make.op("GatherND", rows, make.expand_dims(_broadcast(make, indices, 1, 0, data), [-1]), batch_dims=1)
    width = places.rank - 1
    rank = source.rank + width - 1
    moved = [0, *range(width + 1, width + axis), *range(1, width + 1), *range(width + axis, rank)]
    return make.transpose(value, moved)


def _broadcast(make: NodeBuilder, x: Value, position: int, other: int, like: Value) -> Value:
    """``x`` with its batch axis broadcast to that of another input, if its length may be 1."""
    own, wanted = make.type(position), make.type(other)
    if own.shape[0] not in (1, -1) or own.shape[0] == wanted.shape[0] == 1:
        return x
    lengths = make.concat([make.length(like, wanted, 0), make.int64s(*(1,) * (own.rank - 1))], 0)
    return make.op("Expand", x, lengths)


@exports(IScatterLayer)
def scatter(layer: IScatterLayer, make: NodeBuilder, data: Value, indices: Value, updates: Value) -> Value:
    combines = layer.reduction is not ReduceOperation.NONE
    word = SCATTER_REDUCTIONS.onnx.write[layer.reduction] if combines else None
    if layer.mode is ScatterMode.ELEMENT:
        return make.op("ScatterElements", data, indices, updates, axis=layer.axis, reduction=word)
    return make.op("ScatterND", data, make.cast(indices, INT64), updates, reduction=word)


@exports(IOneHotLayer)
def one_hot(layer: IOneHotLayer, make: NodeBuilder, indices: Value, values: Value, depth: Value) -> Value:
    """Write one-hot as a comparison: in ONNX's OneHot negative indices count from the end."""
    rank = make.type(0).rank + 1
    axis = layer.axis % rank
    places = make.cast(make.arange(make.reshape(make.cast(depth, INT64), [1])), indices.dtype)
    places = make.expand_dims(places, range(1, rank - axis))
    hot = make.compare("Equal", make.expand_dims(indices, [axis]), places)
    off, on = (make.gather(values, make.number(number, INT64), 0) for number in (0, 1))
    return make.where(hot, on, off)
