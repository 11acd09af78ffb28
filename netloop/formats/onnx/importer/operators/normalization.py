"""Normalization."""

from collections.abc import Sequence

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.model.formulas import FormulaBuilder
from netloop.model.formulas.reduce import bitmask
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.normalization import INormalizationLayer
from netloop.values.diagnostics import require
from netloop.values.enums import UnaryOperation
from netloop.values.types import HALVES


def wide_of(make: FormulaBuilder, x: ITensor) -> ITensor:
    """``x``, in float32 if it has half precision."""
    return make.cast(x, np.float32) if x.type.dtype in HALVES else x


@operator("BatchNormalization", since=(1, 7, 9))
def batch_normalization_for_inference(call: NodeCall, x: ITensor, *factors: ITensor) -> ITensor:
    """Batch normalization with a given mean and variance."""
    require(call.attribute("spatial", 1) == 1, "spatial is 0", "mean and variance must be those of whole channels")
    require(not call.wants(1), f"{call.node.operator} is in training mode", fix="export it for inference")
    return _normalized(call, x, *factors)


@operator("BatchNormalization", since=14)
def batch_normalization(
    call: NodeCall, x: ITensor, scale: ITensor, bias: ITensor, mean: ITensor, variance: ITensor
) -> ITensor | list[ITensor]:
    """Batch normalization; in training mode by the batch's mean and variance, with the running ones."""
    if not call.attribute("training_mode"):
        return _normalized(call, x, scale, bias, mean, variance)
    make = call.make
    wide = wide_of(make, x)
    axes = [0, *range(2, x.type.rank)]
    tensors = [make.cast(make.squeeze(moment, axes), mean.type.dtype) for moment in make.moments(wide, axes)]
    momentum = call.attribute("momentum")
    running = [
        make.add(make.mul(old, momentum), make.mul(new, 1 - momentum))
        for old, new in zip((mean, variance), tensors, strict=True)
    ]
    return [_normalized(call, x, scale, bias, *tensors), *running]


def _normalized(call: NodeCall, x: ITensor, scale: ITensor, bias: ITensor, mean: ITensor, variance: ITensor) -> ITensor:
    return call.make.batch_normalized(x, scale, bias, mean, variance, call.attribute("epsilon"))


@operator("InstanceNormalization", since=(1, 6))
def instance_normalization(call: NodeCall, x: ITensor, scale: ITensor, bias: ITensor) -> ITensor:
    """Normalization over the spatial axes, with a scale and bias for each channel."""
    return call.make.output(_normalization(call, x, scale, bias))


@operator("GroupNormalization", since=18)
def group_normalization_by_groups(call: NodeCall, x: ITensor, scale: ITensor, bias: ITensor) -> ITensor:
    """Normalization of groups of channels, with a scale and bias for each group."""
    make, groups = call.make, call.attribute("num_groups")
    channels = make.length(x, 1)
    require(groups > 0, f"num_groups is {groups}, but must be positive")
    length = channels // groups if isinstance(channels, int) else make.div(channels, groups)
    shape = make.list_tensor([groups, length])
    columns = [make.broadcast_to(make.expand_dims(tensor, [1]), shape) for tensor in (scale, bias)]
    return group_normalization(call, x, *(make.reshape(column, [-1]) for column in columns))


@operator("GroupNormalization", since=21)
def group_normalization(call: NodeCall, x: ITensor, scale: ITensor, bias: ITensor) -> ITensor:
    """Normalization of groups of channels, with a scale and bias for each channel."""
    return group_normalized(call, x, scale, bias, call.attribute("num_groups"))


def group_normalized(call: NodeCall, x: ITensor, scale: ITensor, bias: ITensor, groups: int) -> ITensor:
    """``x`` with groups of channels, axis 1, normalized."""
    layer = _normalization(call, x, scale, bias)
    layer.num_groups = groups
    return call.make.output(layer)


def _normalization(call: NodeCall, x: ITensor, scale: ITensor, bias: ITensor) -> INormalizationLayer:
    """The layer that normalizes the axes after batch and channel."""
    make, rank = call.make, x.type.rank
    axes = bitmask(*range(2, rank))
    scale, bias = (make.expand_dims(tensor, [0, *range(2, rank)]) for tensor in (scale, bias))
    layer = make.network.add_normalization_v2(x, scale, bias, axes)
    layer.epsilon = call.attribute("epsilon")
    return layer


@operator("LayerNormalization", since=17)
def layer_normalization(call: NodeCall, x: ITensor, scale: ITensor, bias: Maybe = None) -> list[ITensor]:
    """Normalization over the last axes, with scale and bias; optionally also mean and inverse deviation."""
    make, axes = call.make, range(call.axis(x, "axis", -1), x.type.rank)
    epsilon = call.attribute("epsilon")
    normal = layer_normalized(make, x, scale, bias, axes, epsilon)
    if not (call.wants(1) or call.wants(2)):
        return [normal]
    mean, variance = make.moments(wide_of(make, x), axes)
    return [normal, mean, make.inverse_deviation(variance, epsilon)]


def layer_normalized(
    make: FormulaBuilder, x: ITensor, scale: ITensor, bias: Maybe, axes: Sequence[int], epsilon: float
) -> ITensor:
    """``x`` normalized over axes, with scale and bias."""
    rank = x.type.rank
    bias = make.constant(np.zeros(1, x.type.dtype)) if bias is None else bias
    scale, bias = (make.expand_dims(tensor, range(rank - tensor.type.rank)) for tensor in (scale, bias))
    layer = make.network.add_normalization_v2(x, scale, bias, bitmask(*axes))
    layer.epsilon = epsilon
    return make.output(layer)


@operator("RMSNormalization", since=23)
def rms_normalization(call: NodeCall, x: ITensor, scale: ITensor) -> ITensor:
    """Division by the root mean square over the last axes, then scaling."""
    return simplified_layer_normalization(call, x, scale)[0]


@operator("SimplifiedLayerNormalization")
def simplified_layer_normalization(call: NodeCall, x: ITensor, scale: ITensor) -> list[ITensor]:
    """RMSNormalization as onnxruntime writes it, optionally also with the inverse root mean square."""
    axes = range(call.axis(x, "axis", -1), x.type.rank)
    return rms_normalized(call.make, x, scale, axes, call.attribute("epsilon"))


def rms_normalized(
    make: FormulaBuilder, x: ITensor, scale: ITensor, axes: Sequence[int], epsilon: float
) -> list[ITensor]:
    """``x`` divided by its root mean square over axes, then scaled; and the inverse of the root mean square."""
    wide = wide_of(make, x)
    inverse = make.inverse_deviation(make.mean(make.mul(wide, wide), axes, keep=True), epsilon)
    return [make.mul(make.cast(make.mul(wide, inverse), x.type.dtype), scale), inverse]


@operator("LpNormalization")
def lp_normalization(call: NodeCall, x: ITensor) -> ITensor:
    """Each vector along an axis divided by its L1 or L2 norm; 0 where the norm is 0."""
    make, power, axes = call.make, call.attribute("p"), [call.attribute("axis")]
    require(power in (1, 2), f"p is {power}, but must be 1 or 2")
    total = make.sum(make.unary(UnaryOperation.ABS, x) if power == 1 else make.mul(x, x), axes, keep=True)
    norm = total if power == 1 else make.unary(UnaryOperation.SQRT, total)
    is_zero = make.equal(norm, 0)
    return make.where(is_zero, 0, make.div(x, make.where(is_zero, 1, norm)))
