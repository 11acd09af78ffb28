"""Activation functions, and what clips."""

import jax.numpy as jnp
import numpy as np

from netloop.enums import ActivationType
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator

# fmt: off
PARAMETERS: dict[str, tuple[ActivationType, dict[str, float]]] = {
    "Elu":             (ActivationType.ELU,              {"alpha": 1.0}),
    "HardSigmoid":     (ActivationType.HARD_SIGMOID,     {"alpha": 0.2, "beta": 0.5}),
    "LeakyRelu":       (ActivationType.LEAKY_RELU,       {"alpha": 0.01}),
    "Relu":            (ActivationType.RELU,             {}),
    "Selu":            (ActivationType.SELU,             {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}),
    "Sigmoid":         (ActivationType.SIGMOID,          {}),
    "Softplus":        (ActivationType.SOFTPLUS,         {}),
    "Softsign":        (ActivationType.SOFTSIGN,         {}),
    "Tanh":            (ActivationType.TANH,             {}),
    "ThresholdedRelu": (ActivationType.THRESHOLDED_RELU, {"alpha": 1.0}),
}
# fmt: on
"""The activation of each operator, and its attributes: the first is alpha, the second beta."""


@operator(*PARAMETERS)
def activation(call: Call, x: ITensor) -> ITensor:
    """An activation function of each element."""
    type, parameters = PARAMETERS[call.node.op]
    given = [call.attribute(name, default) for name, default in parameters.items()]
    if type is ActivationType.SOFTPLUS:
        given = [1.0, 1.0]
    return call.make.activation(type, x, *given)


@operator("Gelu", since=20)
def gelu(call: Call, x: ITensor) -> ITensor:
    """The number times the normal distribution function of it."""
    through_tanh = call.attribute("approximate") == "tanh"
    return call.make.activation(ActivationType.GELU_TANH if through_tanh else ActivationType.GELU_ERF, x)


@operator("PRelu")
def prelu_by_channel(call: Call, x: ITensor, slope: ITensor) -> ITensor:
    """Negative numbers multiplied by the slope of their channel."""
    slope = call.make.expand_dims(slope, range(1, x.type.rank - 1)) if slope.type.rank == 1 else slope
    return call.make.parametric_relu(x, slope)


@operator("PRelu", since=7)
def prelu(call: Call, x: ITensor, slope: ITensor) -> ITensor:
    """Negative numbers multiplied by a slope."""
    return call.make.parametric_relu(x, slope)


@operator("Clip")
def clip_by_attributes(call: Call, x: ITensor) -> ITensor:
    """Numbers between two that are attributes; one beyond the type limits nothing."""
    most = float(jnp.finfo(x.type.dtype).max)
    for name, bounded in (("min", call.make.maximum), ("max", call.make.minimum)):
        bound = float(call.attribute(name, np.inf))
        x = bounded(x, bound) if abs(bound) <= most else x
    return x


@operator("Clip", since=11)
def clip(call: Call, x: ITensor, low: ITensor | None = None, high: ITensor | None = None) -> ITensor:
    """Numbers between two."""
    above = x if low is None else call.make.maximum(x, low)
    return above if high is None else call.make.minimum(above, high)


@operator("Shrink", since=9)
def shrink(call: Call, x: ITensor) -> ITensor:
    """Numbers moved towards 0 by the bias, and 0 where they are near."""
    make = call.make
    wide = x if x.type.is_float else make.cast(x, np.float32)
    limit, bias = call.attribute("lambd"), call.attribute("bias")
    below = make.where(make.less(wide, -limit), make.add(wide, bias), 0.0)
    return make.cast(make.where(make.greater(wide, limit), make.sub(wide, bias), below), x.type.dtype)
