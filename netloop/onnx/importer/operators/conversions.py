"""Elements in another type."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.diagnostics import require
from netloop.enums import ActivationType, DataType, ElementWiseOperation
from netloop.formulas import FormulaBuilder, as_dtype
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.onnx.tensors import element_type
from netloop.types import TINY, numpy_type

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
