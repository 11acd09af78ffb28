"""Remainders, powers and bits."""

from typing import Any

import numpy as np

from netloop.diagnostics import require
from netloop.enums import ElementWiseOperation, UnaryOperation
from netloop.formulas import as_dtype
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.onnx.importer.operators.pointwise import along_axis
from netloop.onnx.tensors import element_type


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


@operator("BitCast", since=26)
def bit_cast(call: Call, x: ITensor) -> ITensor:
    """The bits of each element read as another type; a bool is a byte, 0 or 1."""
    make, dtype = call.make, np.dtype(element_type(call.attribute("to")))
    if _is_bool(dtype) and x.type.is_bool:
        return x
    raw = make.cast(x, np.uint8) if x.type.is_bool else x
    read = make.made(make.network.add_bit_cast(raw, as_dtype(np.uint8 if _is_bool(dtype) else dtype)))
    return make.cast(read, dtype)


def _is_bool(dtype: np.dtype[Any]) -> bool:
    return dtype == np.bool_


@operator("IsInf", since=10)
def is_infinite(call: Call, x: ITensor) -> ITensor:
    """Whether it is infinite, with one sign or either."""
    return call.make.is_infinite(x, bool(call.attribute("detect_negative")), bool(call.attribute("detect_positive")))
