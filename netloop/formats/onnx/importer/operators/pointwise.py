"""Element-wise functions."""

from functools import partial, reduce
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.onnx.tensors import element_type
from netloop.formats.shared.word_tables import (
    ACTIVATION_PARAMETERS,
    ACTIVATIONS,
    ELEMENTWISE,
    ELEMENTWISE_BITWISE,
    GELU_APPROXIMATIONS,
    SHIFT_DIRECTIONS,
    UNARY,
)
from netloop.model.formulas import FormulaBuilder, as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ActivationType, DataType, ElementWiseOperation, UnaryOperation
from netloop.values.types import TINY, normal_axis, numpy_type

BINARY = ("Add", "Sub", "Mul", "Div", "Equal", "Less", "Greater", "And", "Or", "Xor")
"""The functions of two tensors whose version 1 has the attribute ``axis``."""


@operator(*BINARY, since=1)
def binary_by_axis(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """Element-wise function of this name, with the axes of the second input aligned from ``axis`` on."""
    return call.make.elementwise(ELEMENTWISE.onnx.read[call.node.op], a, along_axis(call, a, b))


def along_axis(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """``b`` with trailing axes of length 1, so that its axes align with those of ``a`` from ``axis`` on."""
    axis = call.attribute("axis")
    if not call.attribute("broadcast") or axis is None:
        return b
    behind = a.type.rank - normal_axis(axis, a.type.rank) - b.type.rank
    return call.make.expand_dims(b, range(b.type.rank, b.type.rank + max(0, behind)))


@operator(*BINARY, since=7)
def binary(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """Element-wise function of this name."""
    return call.make.elementwise(ELEMENTWISE.onnx.read[call.node.op], a, b)


@operator("LessOrEqual", since=12)
def less_or_equal(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """Whether a <= b."""
    return call.make.less_equal(a, b)


@operator("GreaterOrEqual", since=12)
def greater_or_equal(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """Whether a >= b."""
    return call.make.greater_equal(a, b)


FOLDS = {"Sum": ElementWiseOperation.SUM, "Max": ElementWiseOperation.MAX, "Min": ElementWiseOperation.MIN}
"""The functions of any number of tensors."""


@operator(*FOLDS)
def fold(call: NodeCall, *terms: ITensor) -> ITensor:
    """Element-wise function of this name, of any number of inputs."""
    return reduce(partial(call.make.elementwise, FOLDS[call.node.op]), terms)


@operator("Mean")
def mean(call: NodeCall, *terms: ITensor) -> ITensor:
    """Mean of the inputs."""
    return call.make.div(reduce(call.make.add, terms), len(terms))


@operator("Where", since=9)
def where(call: NodeCall, condition: ITensor, a: ITensor, b: ITensor) -> ITensor:
    """``a`` where the condition is true, ``b`` elsewhere."""
    return call.make.where(condition, a, b)


@operator(*UNARY.onnx.read.keys() - {"IsInf"})
def unary(call: NodeCall, x: ITensor) -> ITensor:
    """Element-wise function of this name."""
    return call.make.unary(UNARY.onnx.read[call.node.op], x)


@operator("Identity")
def identity(call: NodeCall, x: ITensor) -> ITensor:
    """The input itself."""
    return x


# ---------------------------------------------------------------------------- activation functions


@operator(*ACTIVATIONS.onnx.read.keys() - {"Clip"})
def activation(call: NodeCall, x: ITensor) -> ITensor:
    """Element-wise function of this name."""
    type = ACTIVATIONS.onnx.read[call.node.op]
    values = [call.attribute(name, default) for name, default in ACTIVATION_PARAMETERS.get(type, {}).items()]
    return call.make.activation(type, x, *([1.0, 1.0] if type is ActivationType.SOFTPLUS else values))


@operator("Gelu", since=20)
def gelu(call: NodeCall, x: ITensor) -> ITensor:
    """``x * Phi(x)``, with the Gaussian CDF Phi exact (erf) or in its tanh approximation."""
    return call.make.activation(call.choice("approximate", GELU_APPROXIMATIONS.onnx.read), x)


@operator("Clip")
def clip_by_attributes(call: NodeCall, x: ITensor) -> ITensor:
    """``x`` limited to a range; a bound beyond the type's largest number limits nothing."""
    most = float(jnp.finfo(x.type.dtype).max)
    for name, bounded in (("min", call.make.maximum), ("max", call.make.minimum)):
        bound = float(call.attribute(name, np.inf))
        x = bounded(x, bound) if abs(bound) <= most else x
    return x


@operator("Clip", since=11)
def clip(call: NodeCall, x: ITensor, low: Maybe = None, high: Maybe = None) -> ITensor:
    """``x`` limited to a range."""
    above = x if low is None else call.make.maximum(x, low)
    return above if high is None else call.make.minimum(above, high)


@operator("Shrink", since=9)
def shrink(call: NodeCall, x: ITensor) -> ITensor:
    """``x`` moved towards 0 by the bias, and 0 where its absolute value is at most ``lambd``."""
    make = call.make
    wide = x if x.type.is_float else make.cast(x, np.float32)
    limit, bias = call.attribute("lambd"), call.attribute("bias")
    below = make.where(make.less(wide, -limit), make.add(wide, bias), 0.0)
    return make.cast(make.where(make.greater(wide, limit), make.sub(wide, bias), below), x.type.dtype)


# ---------------------------------------------------------------------------- arithmetic and bits


@operator("Mod", since=10)
def modulo(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """Remainder of a division, with the sign of the divisor, or of the dividend with ``fmod``."""
    op = ElementWiseOperation.FMOD if call.attribute("fmod") else ElementWiseOperation.MOD
    return call.make.elementwise(op, a, b)


@operator("Pow")
def power_by_axis(call: NodeCall, base: ITensor, exponent: ITensor) -> ITensor:
    """Power, with the axes of the exponent aligned from ``axis`` on."""
    return call.make.power(base, along_axis(call, base, exponent))


@operator("Pow", since=7)
def power(call: NodeCall, base: ITensor, exponent: ITensor) -> ITensor:
    """Power, of the type of the base."""
    make, dtype = call.make, base.type.dtype
    wide = np.dtype(np.float64) if exponent.type.is_float and not base.type.is_float else dtype
    return make.cast(make.power(make.cast(base, wide), make.cast(exponent, wide)), dtype)


@operator("BitShift", since=11)
def shift(call: NodeCall, x: ITensor, by: ITensor) -> ITensor:
    """Bits shifted left or right."""
    return call.make.elementwise(call.choice("direction", SHIFT_DIRECTIONS.onnx.read), x, by)


@operator(*ELEMENTWISE_BITWISE.onnx.read, since=18)
def bitwise(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """Bitwise function of this name."""
    return call.make.elementwise(ELEMENTWISE_BITWISE.onnx.read[call.node.op], a, b)


@operator("BitwiseNot", since=18)
def bitwise_not(call: NodeCall, x: ITensor) -> ITensor:
    """All bits inverted."""
    return call.make.unary(UnaryOperation.NOT, x)


@operator("IsInf", since=10)
def is_infinite(call: NodeCall, x: ITensor) -> ITensor:
    """Whether x is infinite, with one sign or either."""
    return call.make.is_infinite(x, call.flag("detect_negative"), call.flag("detect_positive"))


# ---------------------------------------------------------------------------- type conversions

SATURATING = {numpy_type(number) for number in (DataType.FP8, DataType.E4M3FNUZ, DataType.E5M2, DataType.E5M2FNUZ)}
E8M0 = numpy_type(DataType.E8M0)
LARGEST, NAN = 254, 255
"""The largest power of two of E8M0, and NaN."""
FRACTION_BITS, FRACTION, HALF = 23, 0x7FFFFF, 0x400000
"""The fraction of a float32: its number of bits, the mask of it, and its highest bit."""
ROUNDING_BITS = {"up": FRACTION, "nearest": HALF, "down": 0}
"""The bits of the fraction that round the exponent up if one of them is set, for each way of rounding."""


@operator("Cast", since=(6, 19, 24))
def cast(call: NodeCall, x: ITensor) -> ITensor:
    """Conversion to another type."""
    dtype = element_type(call.attribute("to"))
    as_dtype(dtype)
    return _converted(call, x, np.dtype(dtype))


@operator("CastLike", since=(15, 19, 24))
def cast_like(call: NodeCall, x: ITensor, like: ITensor) -> ITensor:
    """Conversion to the type of another tensor."""
    return _converted(call, x, like.type.dtype)


def _converted(call: NodeCall, x: ITensor, dtype: np.dtype[Any]) -> ITensor:
    """``x`` converted to ``dtype``: sub-byte integers wrap, and float8 saturate."""
    make, saturates = call.make, call.flag("saturate", True)
    if dtype == E8M0 and x.type.dtype != E8M0:
        return _power_of_two(make, make.cast(x, np.float32), call.choice("round_mode", ROUNDING_BITS, "up"), saturates)
    if x.type.is_float and dtype in TINY:
        x = make.cast(x, np.int32)
    if x.type.is_float and saturates and dtype in SATURATING:
        most = float(jnp.finfo(dtype).max)
        x = make.activation(ActivationType.CLIP, x, -most, most)
    return make.cast(x, dtype)


def _power_of_two(make: FormulaBuilder, x: ITensor, rounding_bits: int, saturates: bool) -> ITensor:
    """float32 as E8M0: the rounded exponent, saturating or NaN where it is out of range."""
    bits = make.output(make.network.add_bit_cast(x, DataType.INT32))
    shifted = make.elementwise(ElementWiseOperation.SHIFT_RIGHT, bits, FRACTION_BITS)
    power = make.elementwise(ElementWiseOperation.AND, shifted, 0xFF)
    counted = make.elementwise(ElementWiseOperation.AND, bits, rounding_bits)
    rounded = make.add(power, make.cast(make.logical_not(make.equal(counted, 0)), np.int32))
    if saturates:
        rounded = make.minimum(rounded, LARGEST)
    else:
        inside = make.logical_and(make.greater(power, 0), make.less_equal(rounded, LARGEST))
        rounded = make.where(inside, rounded, NAN)
    fraction = make.elementwise(ElementWiseOperation.AND, bits, FRACTION)
    is_nan = make.logical_and(make.equal(power, NAN), make.greater(fraction, 0))
    code = make.cast(make.where(is_nan, NAN, rounded), np.uint8)
    return make.output(make.network.add_bit_cast(code, DataType.E8M0))
