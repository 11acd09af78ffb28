"""Shuffle, squeeze, unsqueeze and concatenation."""

from collections.abc import Sequence

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.model.layers.rearrange import IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.values.types import UNKNOWN, Shape


@exports(IShuffleLayer)
def shuffle(layer: IShuffleLayer, make: NodeBuilder, x: Value, reshape: Value | None = None) -> Value:
    value = x if layer.first_transpose is None else make.transpose(x, layer.first_transpose)
    if reshape is not None or layer.reshape_dims is not None:
        value = make.op("Reshape", value, _dims(layer, make, reshape), allowzero=int(_means_zero(layer, make)))
    return value if layer.second_transpose is None else make.transpose(value, layer.second_transpose)


def _reshaped(layer: IShuffleLayer, make: NodeBuilder) -> Shape:
    """The shape between the reshape and the second transposition, as far as it is known."""
    shape = make.out().shape
    if layer.second_transpose is None:
        return shape
    order: Sequence[int] = layer.second_transpose
    return tuple(shape[order.index(axis)] for axis in range(len(shape)))


def _means_zero(layer: IShuffleLayer, make: NodeBuilder) -> bool:
    """Whether a length of 0 means 0, and not a copy of the input's length."""
    return not layer.zero_is_placeholder or UNKNOWN not in _reshaped(layer, make)


def _dims(layer: IShuffleLayer, make: NodeBuilder, reshape: Value | None) -> Value:
    shape = _reshaped(layer, make)
    if UNKNOWN not in shape:
        return make.int64s(*shape)
    if reshape is not None:
        return make.cast(reshape, INT64)
    assert layer.reshape_dims is not None
    return make.int64s(*layer.reshape_dims)


@exports(ISqueezeLayer)
def squeeze(layer: ISqueezeLayer, make: NodeBuilder, x: Value, axes: Value | None = None) -> Value:
    numbers = make.type(1).ints() if axes is not None else None
    if numbers is not None:
        return make.squeeze(x, numbers)
    if axes is not None:
        return make.op("Squeeze", x, make.cast(axes, INT64))
    return make.squeeze(x, [axis for axis, length in enumerate(make.type(0).shape) if length == 1])


@exports(IUnsqueezeLayer)
def unsqueeze(layer: IUnsqueezeLayer, make: NodeBuilder, x: Value, axes: Value) -> Value:
    flat = axes if make.type(1).rank == 1 else make.reshape(axes, [1])
    return make.op("Unsqueeze", x, make.cast(flat, INT64))


@exports(IConcatenationLayer)
def concatenation(layer: IConcatenationLayer, make: NodeBuilder, *inputs: Value) -> Value:
    return make.op("Concat", *inputs, axis=layer.axis)
