"""Element-wise functions."""

import math

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.word_tables import (
    ACTIVATIONS,
    ELEMENTWISE,
    ELEMENTWISE_BITWISE,
    GELU_APPROXIMATIONS,
    OPENVINO_OPSETS,
    UNARY,
    UNARY_BITWISE,
)
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType, ElementWiseOperation, UnaryOperation

BROADCASTS = {"numpy": "numpy", "none": "none", "pdpd": "pdpd"}


def paired(call: LayerCall, a: ITensor, b: ITensor) -> tuple[ITensor, ITensor]:
    """Two inputs, with the axes aligned as ``auto_broadcast`` says."""
    how = call.choice("auto_broadcast", BROADCASTS, "numpy")
    if how == "none":
        require(a.type.rank == b.type.rank, f"the inputs are {a.type} and {b.type}, and ``auto_broadcast`` is none")
    if how == "pdpd" and a.type.rank > b.type.rank:
        axis = call.int("auto_broadcast.auto_broadcast_axis", call.int("axis", -1))
        start = a.type.rank - b.type.rank if axis == -1 else axis
        after = a.type.rank - b.type.rank - start
        require(start >= 0 and after >= 0, f"{b.type} does not fit axis {axis} of {a.type}")
        b = call.make.expand_dims(b, range(b.type.rank, b.type.rank + after))
    a, b = call.make.aligned(a, b)
    return a, b


IDENTITY_ON_INTEGERS = (UnaryOperation.CEIL, UnaryOperation.FLOOR)
"""The functions that leave integers unchanged."""


def _version(name: str) -> str:
    return f"opset{OPENVINO_OPSETS.get(name, 1)}"


def _enter_pair(name: str, op: ElementWiseOperation) -> None:
    @operator(name, _version(name))
    def pair(call: LayerCall, a: ITensor, b: ITensor) -> ITensor:
        return call.make.elementwise(op, *paired(call, a, b))

    pair.__doc__ = f"Element-wise ``{op.name}``."


def _enter_function(name: str, op: UnaryOperation) -> None:
    @operator(name, _version(name))
    def function(call: LayerCall, x: ITensor) -> ITensor:
        return x if op in IDENTITY_ON_INTEGERS and not x.type.is_float else call.make.unary(op, x)

    function.__doc__ = f"Element-wise ``{op.name}``."


for _name, _pair in (ELEMENTWISE.openvino.read | ELEMENTWISE_BITWISE.openvino.read).items():
    if _name != "Divide":
        _enter_pair(_name, _pair)
for _name, _function in (UNARY.openvino.read | UNARY_BITWISE.openvino.read).items():
    if _name not in ("IsInf", "Round"):
        _enter_function(_name, _function)


@operator("Divide", "opset1")
def divide(call: LayerCall, a: ITensor, b: ITensor) -> ITensor:
    """Quotient; of integers rounded towards minus infinity, unless ``m_pythondiv`` is false."""
    a, b = paired(call, a, b)
    floors = a.type.is_integer and call.flag("m_pythondiv", True)
    return call.make.floor_div(a, b) if floors else call.make.div(a, b)


@operator("LessEqual", "opset1")
def less_equal(call: LayerCall, a: ITensor, b: ITensor) -> ITensor:
    """Whether a <= b."""
    return call.make.less_equal(*paired(call, a, b))


@operator("GreaterEqual", "opset1")
def greater_equal(call: LayerCall, a: ITensor, b: ITensor) -> ITensor:
    """Whether a >= b."""
    return call.make.greater_equal(*paired(call, a, b))


@operator("NotEqual", "opset1")
def not_equal(call: LayerCall, a: ITensor, b: ITensor) -> ITensor:
    """Whether a differs from b."""
    return call.make.logical_not(call.make.equal(*paired(call, a, b)))


@operator("SquaredDifference", "opset1")
def squared_difference(call: LayerCall, a: ITensor, b: ITensor) -> ITensor:
    """Square of the difference."""
    difference = call.make.sub(*paired(call, a, b))
    return call.make.mul(difference, difference)


@operator("Select", "opset1")
def select(call: LayerCall, condition: ITensor, a: ITensor, b: ITensor) -> ITensor:
    """``a`` where the condition is true, ``b`` elsewhere."""
    condition = paired(call, a, condition)[1]
    return call.make.where(condition, *paired(call, a, b))


ROUNDINGS = {"half_to_even": True, "half_away_from_zero": False}


@operator("Round", "opset5")
def round_(call: LayerCall, x: ITensor) -> ITensor:
    """The nearest integer; halfway cases to the even one, or away from 0."""
    make = call.make
    if not x.type.is_float:
        return x
    if call.choice("mode", ROUNDINGS, "half_to_even"):
        return make.unary(UnaryOperation.ROUND, x)
    size = make.unary(UnaryOperation.ABS, x)
    below = make.unary(UnaryOperation.FLOOR, size)
    up = make.greater_equal(make.sub(size, below), 0.5)
    return make.mul(make.where(up, make.add(below, 1.0), below), make.unary(UnaryOperation.SIGN, x))


@operator("IsInf", "opset10")
def is_infinite(call: LayerCall, x: ITensor) -> ITensor:
    """Whether x is infinite, with one sign or either."""
    signs = call.flag("detect_negative", True), call.flag("detect_positive", True)
    return call.make.is_infinite(x, *signs)


@operator("IsFinite", "opset10")
def is_finite(call: LayerCall, x: ITensor) -> ITensor:
    """Whether x is neither infinite nor NaN."""
    tensors = [call.make.unary(number, x) for number in (UnaryOperation.ISINF, UnaryOperation.ISNAN)]
    return call.make.logical_not(call.make.logical_or(*tensors))


@operator("Identity", "opset16")
def identity(call: LayerCall, x: ITensor) -> ITensor:
    """The input itself."""
    return x


@operator("Convert", "opset1")
def convert(call: LayerCall, x: ITensor) -> ITensor:
    """Conversion to another type; to bool, whether x is not 0."""
    return call.make.cast(x, call.element_type("destination_type"))


@operator("ConvertLike", "opset1")
def convert_like(call: LayerCall, x: ITensor, like: ITensor) -> ITensor:
    """Conversion to the type of another tensor."""
    return call.make.cast(x, like.type.dtype)


def _enter_activation(name: str, kind: ActivationType, *parameters: float) -> None:
    @operator(name, _version(name))
    def activation(call: LayerCall, x: ITensor) -> ITensor:
        return call.make.activation(kind, x, *parameters)

    activation.__doc__ = f"Element-wise ``{kind.name}``."


for _name in ("ReLU", "Sigmoid", "SoftSign", "Tanh"):
    _enter_activation(_name, ACTIVATIONS.openvino.read[_name])
_enter_activation("SoftPlus", ActivationType.SOFTPLUS, 1.0, 1.0)


@operator("Elu", "opset1")
def elu(call: LayerCall, x: ITensor) -> ITensor:
    """``x``, or ``alpha * (exp(x) - 1)`` where x is negative."""
    return call.make.activation(ActivationType.ELU, x, call.number("alpha"))


@operator("Clamp", "opset1")
def clamp(call: LayerCall, x: ITensor) -> ITensor:
    """``x`` limited to a range."""
    low, high = call.number("min"), call.number("max")
    if not x.type.is_float:
        limits = np.iinfo(x.type.dtype)
        low, high = (int(min(max(number, limits.min), limits.max)) for number in (_up(low), _down(high)))
    return call.make.clip(x, low, high)


def _up(x: float) -> float:
    return math.ceil(x) if math.isfinite(x) else x


def _down(x: float) -> float:
    return math.floor(x) if math.isfinite(x) else x


@operator("HardSigmoid", "opset1")
def hard_sigmoid(call: LayerCall, x: ITensor, alpha: ITensor, beta: ITensor) -> ITensor:
    """``alpha * x + beta``, limited to between 0 and 1."""
    make = call.make
    return make.clip(make.add(make.mul(x, make.scalar(alpha)), make.scalar(beta)), 0.0, 1.0)


@operator("Selu", "opset1")
def selu(call: LayerCall, x: ITensor, alpha: ITensor, scale: ITensor) -> ITensor:
    """``scale * x``, or ``scale * alpha * (exp(x) - 1)`` where x is negative."""
    make = call.make
    curve = make.mul(make.scalar(alpha), make.activation(ActivationType.ELU, x, 1.0))
    return make.mul(make.scalar(scale), make.where(make.less(x, 0.0), curve, x))


@operator("Swish", "opset4")
def swish(call: LayerCall, x: ITensor, beta: Maybe = None) -> ITensor:
    """``x * sigmoid(beta * x)``."""
    make = call.make
    inside = x if beta is None else make.mul(x, make.scalar(beta))
    return make.mul(x, make.activation(ActivationType.SIGMOID, inside))


@operator("HSigmoid", "opset5")
def limited_sigmoid(call: LayerCall, x: ITensor) -> ITensor:
    """``min(max(x + 3, 0), 6) / 6``."""
    return call.make.activation(ActivationType.HARD_SIGMOID, x, 1 / 6, 0.5)


@operator("HSwish", "opset4")
def hard_swish(call: LayerCall, x: ITensor) -> ITensor:
    """``x * min(max(x + 3, 0), 6) / 6``."""
    return call.make.mul(x, limited_sigmoid(call, x))


@operator("Mish", "opset4")
def mish(call: LayerCall, x: ITensor) -> ITensor:
    """``x * tanh(log(1 + exp(x)))``."""
    make = call.make
    return make.mul(x, make.activation(ActivationType.TANH, make.activation(ActivationType.SOFTPLUS, x, 1.0, 1.0)))


@operator("Gelu", "opset2", "opset7")
def gelu(call: LayerCall, x: ITensor) -> ITensor:
    """``x * Phi(x)``, with the Gaussian CDF Phi exact (erf) or in its tanh approximation."""
    return call.make.activation(call.choice("approximation_mode", GELU_APPROXIMATIONS.openvino.read, "erf"), x)
