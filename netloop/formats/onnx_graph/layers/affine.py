"""Scale and parametric ReLU."""

from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import DOUBLE
from netloop.model.layers.affine import IParametricReLULayer, IScaleLayer
from netloop.values.enums import ScaleMode
from netloop.values.types import Array, normal_axis


@exports(IScaleLayer)
def scale(layer: IScaleLayer, make: NodeBuilder, x: Value) -> Value:
    value = make.wide(x)
    for op, weights in (("Mul", layer.scale), ("Add", layer.shift), ("Pow", layer.power)):
        if weights is not None and weights.size:
            value = make.op(op, value, _weights(layer, make, weights.astype(value.dtype), x))
    return make.cast(value, x.dtype)


def _weights(layer: IScaleLayer, make: NodeBuilder, weights: Array, x: Value) -> Value:
    """Weights in a shape that broadcasts to the input."""
    source = make.type(0)
    axis = normal_axis(layer.channel_axis, source.rank)
    if layer.mode is ScaleMode.UNIFORM:
        return make.constant(weights.reshape(()))
    if layer.mode is ScaleMode.CHANNEL:
        return make.constant(weights.reshape(-1, *(1,) * (source.rank - axis - 1)))
    if source.with_shape(source.shape[axis:]).is_fixed:
        return make.constant(weights.reshape(source.shape[axis:]))
    return make.op("Reshape", make.constant(weights), make.shape(x, axis))


@exports(IParametricReLULayer)
def parametric_relu(layer: IParametricReLULayer, make: NodeBuilder, x: Value, slopes: Value) -> Value:
    if x.dtype != DOUBLE:
        return make.op("PRelu", x, slopes)
    kept = make.compare("GreaterOrEqual", x, make.number_like(0, x))
    return make.where(kept, x, make.op("Mul", slopes, x))
