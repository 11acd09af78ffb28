"""Normalizations and ragged softmax."""

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.model.layers.normalization import INormalizationLayer, IRaggedSoftMaxLayer
from netloop.values.types import axes_of


@exports(INormalizationLayer)
def normalization(layer: INormalizationLayer, make: NodeBuilder, x: Value, scale: Value, bias: Value) -> Value:
    source = make.type(0)
    axes = axes_of(layer.axes, source.rank)
    if layer.num_groups == 1 and _is_layer_normalization(make, axes):
        own = source.shape[axes[0] :]
        factors = [make.reshape(value, own) for value in (scale, bias)]
        return make.op("LayerNormalization", x, *factors, axis=axes[0], epsilon=layer.epsilon)
    wide = make.wide(x)
    if layer.num_groups == 1:
        normal = _normal(layer, make, wide, axes)
    else:
        groups = make.reshape(wide, [0, layer.num_groups, -1], zero_copies=True)
        normal = make.reshape(_normal(layer, make, groups, (2,)), make.lengths(x, source))
    factors = [_for_channels(layer, make, make.wide(value), n, x) for n, value in ((1, scale), (2, bias))]
    return make.cast(make.op("Add", make.op("Mul", normal, factors[0]), factors[1]), x.dtype)


def _is_layer_normalization(make: NodeBuilder, axes: tuple[int, ...]) -> bool:
    """Whether the axes are the last ones, and scale and bias have a number for each of their elements."""
    source = make.type(0)
    own = source.shape[axes[0] :]
    wanted = (1,) * axes[0] + own
    is_whole = make.type(1).shape == make.type(2).shape == wanted
    return axes == tuple(range(axes[0], source.rank)) and is_whole and min(own) > 0


def _normal(layer: INormalizationLayer, make: NodeBuilder, x: Value, axes: tuple[int, ...]) -> Value:
    centred = make.op("Sub", x, make.reduce("ReduceMean", x, axes, keep=True))
    variance = make.reduce("ReduceMean", make.op("Mul", centred, centred), axes, keep=True)
    deviation = make.op("Sqrt", make.op("Add", variance, make.number_like(layer.epsilon, x)))
    return make.op("Div", centred, deviation)


def _for_channels(layer: INormalizationLayer, make: NodeBuilder, factor: Value, position: int, x: Value) -> Value:
    """A scale or bias of groups, repeated for each of their channels."""
    if layer.num_groups == 1 or layer.is_v2 or make.type(position).shape[1] == 1:
        return factor
    channels, own = make.length(x, make.type(0), 1), make.length(factor, make.type(position), 1)
    places = make.op("Div", make.op("Mul", make.arange(channels), own), channels)
    return make.gather(factor, places, 1)


@exports(IRaggedSoftMaxLayer)
def ragged_softmax(layer: IRaggedSoftMaxLayer, make: NodeBuilder, x: Value, bounds: Value) -> Value:
    wide = make.wide(x)
    zero = make.number_like(0, wide)
    inside = make.compare("Less", make.arange(make.length(x, make.type(0), 2)), make.cast(bounds, INT64))
    row = make.where(inside, wide, make.number_like(float("-inf"), wide))
    powers = make.op("Exp", make.op("Sub", row, make.reduce("ReduceMax", row, (2,), keep=True)))
    total = make.reduce("ReduceSum", make.where(inside, powers, zero), (2,), keep=True)
    return make.cast(make.where(inside, make.op("Div", powers, total), zero), x.dtype)
