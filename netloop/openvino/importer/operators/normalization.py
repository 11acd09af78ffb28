"""Elements shifted and scaled by the mean and the variance of those around them, and divided by norms."""

from __future__ import annotations

from collections.abc import Sequence

from netloop.enums import UnaryOperation
from netloop.formulas import FormulaBuilder
from netloop.formulas.reduce import bitmask
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator
from netloop.openvino.importer.operators.rearrange import known_ints

EPSILONS = {"inside_sqrt": True, "outside_sqrt": False}


@operator("MVN", "opset6")
def mean_variance(call: Call, x: ITensor, axes: ITensor) -> ITensor:
    """Elements less the mean over some axes, and divided by the deviation."""
    inside = call.choice("eps_mode", EPSILONS, "inside_sqrt")
    return _normal(call, x, known_ints(call, axes, "axes"), inside)


@operator("MVN", "opset2")
def mean_variance_of_channels(call: Call, x: ITensor) -> ITensor:
    """The same over the axes of each channel, or of each member of the batch."""
    axes = call.ints("reduction_axes", []) or range(1 if call.flag("across_channels", True) else 2, x.type.rank)
    return _normal(call, x, axes, inside=False)


def _normal(call: Call, x: ITensor, axes: Sequence[int], inside: bool) -> ITensor:
    make, epsilon = call.make, call.number("eps", 1e-9)
    mean, variance = make.moments(x, axes)
    away = make.sub(x, mean)
    if not call.flag("normalize_variance", True):
        return away
    if inside:
        return make.mul(away, make.inverse_deviation(variance, epsilon))
    return make.div(away, make.add(make.unary(UnaryOperation.SQRT, variance), epsilon))


@operator("BatchNormInference", "opset1")
def batch_normalization_of_old(
    call: Call, scale: ITensor, bias: ITensor, x: ITensor, mean: ITensor, variance: ITensor
) -> ITensor:
    """Each channel shifted and scaled by a mean and a variance, and then anew; the input comes third."""
    return batch_normalization(call, x, scale, bias, mean, variance)


@operator("BatchNormInference", "opset5")
def batch_normalization(
    call: Call, x: ITensor, scale: ITensor, bias: ITensor, mean: ITensor, variance: ITensor
) -> ITensor:
    """Each channel shifted and scaled by a mean and a variance, and then anew."""
    return call.make.batch_normalized(x, scale, bias, mean, variance, call.number("epsilon"))


@operator("GroupNormalization", "opset12")
def group_normalization(call: Call, x: ITensor, scale: ITensor, bias: ITensor) -> ITensor:
    """Runs of channels shifted and scaled to mean 0 and variance 1, and then anew by a number for each channel."""
    make, rank = call.make, x.type.rank
    scale, bias = (make.expand_dims(each, [0, *range(2, rank)]) for each in (scale, bias))
    layer = make.network.add_normalization_v2(x, scale, bias, bitmask(*range(2, rank)))
    layer.epsilon, layer.num_groups = call.number("epsilon"), call.int("num_groups")
    return make.made(layer)


BOUNDS = {"add": FormulaBuilder.add, "max": FormulaBuilder.maximum}


@operator("NormalizeL2", "opset1")
def normalize(call: Call, x: ITensor, axes: ITensor) -> ITensor:
    """Elements divided by the root of the sum of the squares over some axes, which is kept from 0."""
    make, bound = call.make, call.choice("eps_mode", BOUNDS)
    along = known_ints(call, axes, "axes")
    square = make.sum(make.mul(x, x), along, True) if along else make.mul(x, x)
    return make.div(x, make.unary(UnaryOperation.SQRT, bound(make, square, call.number("eps"))))


@operator("GRN", "opset1")
def normalize_channels(call: Call, x: ITensor) -> ITensor:
    """Each vector of channels divided by its length."""
    make = call.make
    square = make.add(make.sum(make.mul(x, x), [1], True), call.number("bias"))
    return make.div(x, make.unary(UnaryOperation.SQRT, square))
