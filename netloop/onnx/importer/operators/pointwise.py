"""Element by element."""

from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.diagnostics import require
from netloop.enums import ActivationType, DataType, ElementWiseOperation, UnaryOperation
from netloop.formulas import FormulaBuilder, as_dtype
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.onnx.tensors import element_type
from netloop.types import TINY, normal_axis, numpy_type

# fmt: off
BINARY = {
    "Add": ElementWiseOperation.SUM,
    "Sub": ElementWiseOperation.SUB,
    "Mul": ElementWiseOperation.PROD,
    "Div": ElementWiseOperation.DIV,
    "Equal": ElementWiseOperation.EQUAL,
    "Less": ElementWiseOperation.LESS,
    "Greater": ElementWiseOperation.GREATER,
    "And": ElementWiseOperation.AND,
    "Or":  ElementWiseOperation.OR,
    "Xor": ElementWiseOperation.XOR,
}
UNARY = {
    "Abs":        UnaryOperation.ABS,
    "Acos":       UnaryOperation.ACOS,
    "Acosh":      UnaryOperation.ACOSH,
    "Asin":       UnaryOperation.ASIN,
    "Asinh":      UnaryOperation.ASINH,
    "Atan":       UnaryOperation.ATAN,
    "Atanh":      UnaryOperation.ATANH,
    "Ceil":       UnaryOperation.CEIL,
    "Cos":        UnaryOperation.COS,
    "Cosh":       UnaryOperation.COSH,
    "Erf":        UnaryOperation.ERF,
    "Exp":        UnaryOperation.EXP,
    "Floor":      UnaryOperation.FLOOR,
    "IsNaN":      UnaryOperation.ISNAN,
    "Log":        UnaryOperation.LOG,
    "Neg":        UnaryOperation.NEG,
    "Not":        UnaryOperation.NOT,
    "Reciprocal": UnaryOperation.RECIP,
    "Round":      UnaryOperation.ROUND,
    "Sign":       UnaryOperation.SIGN,
    "Sin":        UnaryOperation.SIN,
    "Sinh":       UnaryOperation.SINH,
    "Sqrt":       UnaryOperation.SQRT,
    "Tan":        UnaryOperation.TAN,
}
# fmt: on


@operator(*BINARY, since=1)
def binary_by_axis(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Two tensors combined; the axes of the second go with those of the first from an axis on."""
    return call.make.elementwise(BINARY[call.node.op], a, along_axis(call, a, b))


def along_axis(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """``b`` with axes of length 1 behind its own, so that these go with those of ``a`` from the attribute axis on."""
    axis = call.attribute("axis")
    if not call.attribute("broadcast") or axis is None:
        return b
    behind = a.type.rank - normal_axis(axis, a.type.rank) - b.type.rank
    return call.make.expand_dims(b, range(b.type.rank, b.type.rank + max(0, behind)))


@operator(*BINARY, since=7)
def binary(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Two tensors combined."""
    return call.make.elementwise(BINARY[call.node.op], a, b)


@operator("LessOrEqual", since=12)
def less_or_equal(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Whether a <= b."""
    return call.make.less_equal(a, b)


@operator("GreaterOrEqual", since=12)
def greater_or_equal(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Whether a >= b."""
    return call.make.greater_equal(a, b)


@operator("Sum")
def total(call: Call, *terms: ITensor) -> ITensor:
    """The sum of tensors."""
    return reduce(call.make.add, terms)


@operator("Mean")
def mean(call: Call, *terms: ITensor) -> ITensor:
    """The mean of tensors."""
    return call.make.div(reduce(call.make.add, terms), len(terms))


@operator("Max")
def largest(call: Call, *terms: ITensor) -> ITensor:
    """The largest of tensors."""
    return reduce(call.make.maximum, terms)


@operator("Min")
def smallest(call: Call, *terms: ITensor) -> ITensor:
    """The smallest of tensors."""
    return reduce(call.make.minimum, terms)


@operator("Where", since=9)
def where(call: Call, condition: ITensor, a: ITensor, b: ITensor) -> ITensor:
    """``a`` where the condition is true, ``b`` elsewhere."""
    return call.make.where(condition, a, b)


@operator(*UNARY)
def unary(call: Call, x: ITensor) -> ITensor:
    """A function of each element."""
    return call.make.unary(UNARY[call.node.op], x)


@operator("Identity")
def identity(call: Call, x: ITensor) -> ITensor:
    """The tensor itself."""
    return x


PARAMETERS: dict[str, tuple[ActivationType, dict[str, float]]] = {
    "Elu": (ActivationType.ELU, {"alpha": 1.0}),
    "HardSigmoid": (ActivationType.HARD_SIGMOID, {"alpha": 0.2, "beta": 0.5}),
    "LeakyRelu": (ActivationType.LEAKY_RELU, {"alpha": 0.01}),
    "Relu": (ActivationType.RELU, {}),
    "Selu": (ActivationType.SELU, {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}),
    "Sigmoid": (ActivationType.SIGMOID, {}),
    "Softplus": (ActivationType.SOFTPLUS, {}),
    "Softsign": (ActivationType.SOFTSIGN, {}),
    "Tanh": (ActivationType.TANH, {}),
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


@operator("Mod", since=10)
def modulo(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """The rest of a division, with the sign of the divisor, or with that of the dividend."""
    op = ElementWiseOperation.FMOD if call.attribute("fmod") else ElementWiseOperation.MOD
    return call.make.elementwise(op, a, b)


@operator("Pow")
def power_by_axis(call: Call, base: ITensor, exponent: ITensor) -> ITensor:
    """Powers; the axes of the exponent go with those of the base from an axis on."""
    return call.make.power(base, along_axis(call, base, exponent))


@operator("Pow", since=7)
def power(call: Call, base: ITensor, exponent: ITensor) -> ITensor:
    """Powers, of the type of the base."""
    make, dtype = call.make, base.type.dtype
    wide = np.dtype(np.float64) if exponent.type.is_float and not base.type.is_float else dtype
    return make.cast(make.power(make.cast(base, wide), make.cast(exponent, wide)), dtype)


@operator("BitShift", since=11)
def shift(call: Call, x: ITensor, by: ITensor) -> ITensor:
    """The bits moved to the left or right."""
    direction = call.attribute("direction")
    require(direction in ("LEFT", "RIGHT"), f"the direction is {direction!r}, and must be LEFT or RIGHT")
    left = direction == "LEFT"
    return call.make.elementwise(ElementWiseOperation.SHIFT_LEFT if left else ElementWiseOperation.SHIFT_RIGHT, x, by)


BITWISE = {
    "BitwiseAnd": ElementWiseOperation.AND,
    "BitwiseOr": ElementWiseOperation.OR,
    "BitwiseXor": ElementWiseOperation.XOR,
}


@operator(*BITWISE, since=18)
def bitwise(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Two integers combined bit by bit."""
    return call.make.elementwise(BITWISE[call.node.op], a, b)


@operator("BitwiseNot", since=18)
def bitwise_not(call: Call, x: ITensor) -> ITensor:
    """Every bit turned."""
    return call.make.unary(UnaryOperation.NOT, x)


@operator("IsInf", since=10)
def is_infinite(call: Call, x: ITensor) -> ITensor:
    """Whether it is infinite, with one sign or either."""
    return call.make.is_infinite(x, bool(call.attribute("detect_negative")), bool(call.attribute("detect_positive")))


SATURATING = {numpy_type(each) for each in (DataType.FP8, DataType.E4M3FNUZ, DataType.E5M2, DataType.E5M2FNUZ)}


E8M0 = numpy_type(DataType.E8M0)


LARGEST, NAN = 254, 255
"""The largest power of two of E8M0, and NaN."""


FRACTION_BITS, FRACTION, HALF = 23, 0x7FFFFF, 0x400000
"""The bits of a float32 behind its exponent, all of them, and the first of them."""


COUNTED = {"up": FRACTION, "nearest": HALF, "down": 0}
"""The bits of a fraction of which one that is set makes the power of two the next one, by the way of rounding."""


@operator("Cast", since=6)
@operator("Cast", since=19)
@operator("Cast", since=24)
def cast(call: Call, x: ITensor) -> ITensor:
    """Each element in another type."""
    dtype = element_type(call.attribute("to"))
    as_dtype(dtype)
    return _converted(call, x, np.dtype(dtype))


@operator("CastLike", since=15)
@operator("CastLike", since=19)
@operator("CastLike", since=24)
def cast_like(call: Call, x: ITensor, like: ITensor) -> ITensor:
    """Each element in the type of another tensor."""
    return _converted(call, x, like.type.dtype)


def _converted(call: Call, x: ITensor, dtype: np.dtype[Any]) -> ITensor:
    """Each element in another type: tiny integers wrap, and float8 saturate."""
    make, saturates = call.make, bool(call.attribute("saturate", 1))
    if dtype == E8M0 and x.type.dtype != E8M0:
        return _power_of_two(make, make.cast(x, np.float32), call.attribute("round_mode", "up"), saturates)
    if x.type.is_float and dtype in TINY:
        x = make.cast(x, np.int32)
    if x.type.is_float and saturates and dtype in SATURATING:
        most = float(jnp.finfo(dtype).max)
        x = make.activation(ActivationType.CLIP, x, -most, most)
    return make.cast(x, dtype)


def _power_of_two(make: FormulaBuilder, x: ITensor, rounding: str, saturates: bool) -> ITensor:
    """The exponents of float32, rounded; what is too large or too small is the next power of two, or NaN."""
    require(rounding in COUNTED, f"round_mode is {rounding!r}, and must be one of {', '.join(COUNTED)}")
    bits = make.made(make.network.add_bit_cast(x, DataType.INT32))
    power = make.elementwise(ElementWiseOperation.AND, _shifted(make, bits), 0xFF)
    counted = make.elementwise(ElementWiseOperation.AND, bits, COUNTED[rounding])
    rounded = make.add(power, make.cast(make.logical_not(make.equal(counted, 0)), np.int32))
    if saturates:
        rounded = make.minimum(rounded, LARGEST)
    else:
        inside = make.logical_and(make.greater(power, 0), make.less_equal(rounded, LARGEST))
        rounded = make.where(inside, rounded, NAN)
    fraction = make.elementwise(ElementWiseOperation.AND, bits, FRACTION)
    is_nan = make.logical_and(make.equal(power, NAN), make.greater(fraction, 0))
    code = make.cast(make.where(is_nan, NAN, rounded), np.uint8)
    return make.made(make.network.add_bit_cast(code, DataType.E8M0))


def _shifted(make: FormulaBuilder, bits: ITensor) -> ITensor:
    return make.elementwise(ElementWiseOperation.SHIFT_RIGHT, bits, FRACTION_BITS)
