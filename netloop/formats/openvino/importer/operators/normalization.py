"""Normalization."""

from collections.abc import Sequence

from netloop.formats.openvino.importer.operators import LayerCall, operator
from netloop.model.formulas import FormulaBuilder
from netloop.model.formulas.reduce import bitmask
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import UnaryOperation

EPSILONS = {"inside_sqrt": True, "outside_sqrt": False}


@operator("MVN", "opset6")
def mean_variance(call: LayerCall, x: ITensor, axes: ITensor) -> ITensor:
    """Mean-variance normalization over given axes."""
    inside = call.choice("eps_mode", EPSILONS, "inside_sqrt")
    return _normal(call, x, call.known_ints(axes, "axes"), inside)


@operator("MVN", "opset2")
def mean_variance_of_channels(call: LayerCall, x: ITensor) -> ITensor:
    """Mean-variance normalization over the spatial axes, or all axes but the first."""
    axes = call.ints("reduction_axes", []) or range(1 if call.flag("across_channels", True) else 2, x.type.rank)
    return _normal(call, x, axes, inside=False)


def _normal(call: LayerCall, x: ITensor, axes: Sequence[int], inside: bool) -> ITensor:
    make, epsilon = call.make, call.number("eps", 1e-9)
    mean, variance = make.moments(x, axes)
    centred = make.sub(x, mean)
    if not call.flag("normalize_variance", True):
        return centred
    if inside:
        return make.mul(centred, make.inverse_deviation(variance, epsilon))
    return make.div(centred, make.add(make.unary(UnaryOperation.SQRT, variance), epsilon))


@operator("BatchNormInference", "opset1")
def batch_normalization_of_third_input(
    call: LayerCall, scale: ITensor, bias: ITensor, x: ITensor, mean: ITensor, variance: ITensor
) -> ITensor:
    """Batch normalization with a given mean and variance."""
    return batch_normalization(call, x, scale, bias, mean, variance)


@operator("BatchNormInference", "opset5")
def batch_normalization(
    call: LayerCall, x: ITensor, scale: ITensor, bias: ITensor, mean: ITensor, variance: ITensor
) -> ITensor:
    """Batch normalization with a given mean and variance."""
    return call.make.batch_normalized(x, scale, bias, mean, variance, call.number("epsilon"))


@operator("GroupNormalization", "opset12")
def group_normalization(call: LayerCall, x: ITensor, scale: ITensor, bias: ITensor) -> ITensor:
    """Normalization of groups of channels, with a scale and bias for each channel."""
    make, rank = call.make, x.type.rank
    scale, bias = (make.expand_dims(tensor, [0, *range(2, rank)]) for tensor in (scale, bias))
    layer = make.network.add_normalization_v2(x, scale, bias, bitmask(*range(2, rank)))
    layer.epsilon, layer.num_groups = call.number("epsilon"), call.int("num_groups")
    return make.output(layer)


BOUNDS = {"add": FormulaBuilder.add, "max": FormulaBuilder.maximum}


@operator("NormalizeL2", "opset1")
def normalize(call: LayerCall, x: ITensor, axes: ITensor) -> ITensor:
    """Division by the L2 norm over given axes, bounded away from 0 by ``eps``."""
    make, bound = call.make, call.choice("eps_mode", BOUNDS)
    along = call.known_ints(axes, "axes")
    square = make.sum(make.mul(x, x), along, True) if along else make.mul(x, x)
    return make.div(x, make.unary(UnaryOperation.SQRT, bound(make, square, call.number("eps"))))


@operator("GRN", "opset1")
def normalize_channels(call: LayerCall, x: ITensor) -> ITensor:
    """Division by the L2 norm over the channels."""
    make = call.make
    square = make.add(make.sum(make.mul(x, x), [1], True), call.number("bias"))
    return make.div(x, make.unary(UnaryOperation.SQRT, square))
