"""Activation functions."""

from __future__ import annotations

import math

import numpy as np

from netloop.enums import ActivationType
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator

# fmt: off
ACTIVATIONS: dict[str, tuple[str, ActivationType, tuple[float, ...]]] = {
    "ReLU":     ("opset1", ActivationType.RELU,         ()),
    "Sigmoid":  ("opset1", ActivationType.SIGMOID,      ()),
    "Tanh":     ("opset1", ActivationType.TANH,         ()),
    "SoftPlus": ("opset4", ActivationType.SOFTPLUS,     (1.0, 1.0)),
    "HSigmoid": ("opset5", ActivationType.HARD_SIGMOID, (1 / 6, 0.5)),
    "SoftSign": ("opset9", ActivationType.SOFTSIGN,     ()),
}
# fmt: on


def _enter(name: str, version: str, kind: ActivationType, numbers: tuple[float, ...]) -> None:
    @operator(name, version)
    def activation(call: Call, x: ITensor) -> ITensor:
        return call.make.activation(kind, x, *numbers)

    activation.__doc__ = f"An activation function of each element, ``{kind.name}``."


for _name, _entry in ACTIVATIONS.items():
    _enter(_name, *_entry)


@operator("Elu", "opset1")
def elu(call: Call, x: ITensor) -> ITensor:
    """Negative x as alpha (exp(x) - 1)."""
    return call.make.activation(ActivationType.ELU, x, call.number("alpha"))


@operator("Clamp", "opset1")
def clamp(call: Call, x: ITensor) -> ITensor:
    """Numbers between two."""
    low, high = call.number("min"), call.number("max")
    if not x.type.is_float:
        limits = np.iinfo(x.type.dtype)
        low, high = (int(min(max(each, limits.min), limits.max)) for each in (_up(low), _down(high)))
    return call.make.clip(x, low, high)


def _up(x: float) -> float:
    return math.ceil(x) if math.isfinite(x) else x


def _down(x: float) -> float:
    return math.floor(x) if math.isfinite(x) else x


@operator("HardSigmoid", "opset1")
def hard_sigmoid(call: Call, x: ITensor, alpha: ITensor, beta: ITensor) -> ITensor:
    """The line alpha x + beta, between 0 and 1."""
    make = call.make
    return make.clip(make.add(make.mul(x, make.scalar(alpha)), make.scalar(beta)), 0.0, 1.0)


@operator("Selu", "opset1")
def selu(call: Call, x: ITensor, alpha: ITensor, scale: ITensor) -> ITensor:
    """The scale times x, or times alpha (exp(x) - 1) where x is negative."""
    make = call.make
    curve = make.mul(make.scalar(alpha), make.activation(ActivationType.ELU, x, 1.0))
    return make.mul(make.scalar(scale), make.where(make.less(x, 0.0), curve, x))


@operator("PReLU", "opset1")
def prelu(call: Call, x: ITensor, slope: ITensor) -> ITensor:
    """Negative numbers multiplied by a slope; a list of slopes is of the channels."""
    make = call.make
    if slope.type.rank == 1 and slope.type.shape != (1,):
        slope = make.along(slope, x.type.rank, min(1, x.type.rank - 1))
    return make.parametric_relu(x, slope)


@operator("Swish", "opset4")
def swish(call: Call, x: ITensor, beta: ITensor | None = None) -> ITensor:
    """The number times sigmoid(beta x)."""
    make = call.make
    inside = x if beta is None else make.mul(x, make.scalar(beta))
    return make.mul(x, make.activation(ActivationType.SIGMOID, inside))


@operator("HSwish", "opset4")
def hard_swish(call: Call, x: ITensor) -> ITensor:
    """The number times (x + 3) / 6, that between 0 and 1."""
    return call.make.mul(x, call.make.activation(ActivationType.HARD_SIGMOID, x, 1 / 6, 0.5))


@operator("Mish", "opset4")
def mish(call: Call, x: ITensor) -> ITensor:
    """The number times tanh(log(1 + exp(x)))."""
    make = call.make
    return make.mul(x, make.activation(ActivationType.TANH, make.activation(ActivationType.SOFTPLUS, x, 1.0, 1.0)))


APPROXIMATIONS = {"erf": ActivationType.GELU_ERF, "tanh": ActivationType.GELU_TANH}


@operator("Gelu", "opset2", "opset7")
def gelu(call: Call, x: ITensor) -> ITensor:
    """The number times the normal distribution function of it."""
    return call.make.activation(call.choice("approximation_mode", APPROXIMATIONS, "erf"), x)
