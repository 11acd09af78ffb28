"""Arithmetic of integers of every width, against Python's integers."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from netloop.model.layers.pointwise import COMPARISONS, IActivationLayer, IElementWiseLayer, IUnaryLayer
from netloop.values.diagnostics import LayerError
from netloop.values.enums import ActivationType, ElementWiseOperation, UnaryOperation
from netloop.values.types import INTEGERS
from tests.support.laws import Case, check_laws

Op = ElementWiseOperation
WIDTHS = sorted(INTEGERS, key=str)
OTHERS = [np.dtype(other) for other in (np.int16, np.uint8, np.uint32, np.uint64)]
"""Those that the tests of the layers themselves do not go through."""


def wrapped(value: int, dtype: np.dtype[Any]) -> int:
    """The number of a type with the lowest bits of ``value``."""
    bits = 8 * dtype.itemsize
    value %= 1 << bits
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def power(a: int, b: int) -> int:
    return a**b if b >= 0 else quotient(1, a**-b)


# fmt: off
ARITHMETIC: dict[Op, Callable[[int, int], Any]] = {
    Op.SUM:       operator.add,
    Op.PROD:      operator.mul,
    Op.MAX:       max,
    Op.MIN:       min,
    Op.SUB:       operator.sub,
    Op.DIV:       quotient,
    Op.FLOOR_DIV: operator.floordiv,
    Op.POW:       power,
    Op.AND:       operator.and_,
    Op.OR:        operator.or_,
    Op.XOR:       operator.xor,
    Op.EQUAL:     operator.eq,
    Op.GREATER:   operator.gt,
    Op.LESS:      operator.lt,
    Op.MOD:       operator.mod,
    Op.FMOD:      lambda a, b: a - quotient(a, b) * b,
}
UNARY: dict[UnaryOperation, Callable[[int], int]] = {
    UnaryOperation.ABS:  abs,
    UnaryOperation.NEG:  operator.neg,
    UnaryOperation.SIGN: lambda x: (x > 0) - (x < 0),
    UnaryOperation.NOT:  operator.invert,
}
# fmt: on


def edges(dtype: np.dtype[Any]) -> list[int]:
    """The smallest and largest numbers of a type, and small ones."""
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return [least, least + 1, 1, 3, 100, most - 1, most, *([-1, -3] if least < 0 else [])]


def table(op: Op, function: Callable[[int, int], Any], dtype: np.dtype[Any], right: list[int]) -> Case:
    left = edges(dtype)
    found = [[wrapped(int(function(a, b)), dtype) for b in right] for a in left]
    expected = np.array(found, object).astype(bool if op in COMPARISONS else dtype)
    arrays = np.array(left, dtype)[:, None], np.array(right, dtype)[None]
    return Case(f"{op.name} of {dtype}", IElementWiseLayer(op=op), arrays, expected)


def divisors(op: Op, dtype: np.dtype[Any]) -> list[int]:
    return [1, 2, 7, 100, *([-1, -2, -7] if dtype.kind == "i" and op is not Op.POW else [])]


def of_each(layer: IUnaryLayer | IActivationLayer, function: Callable[[int], int], dtype: np.dtype[Any]) -> Case:
    expected = np.array([wrapped(function(x), dtype) for x in edges(dtype)], dtype)
    return Case(str(dtype), layer, (np.array(edges(dtype), dtype),), expected)


# parameters of one test are compiled together
@pytest.mark.parametrize(
    "case",
    [
        *(table(op, ARITHMETIC[op], dtype, divisors(op, dtype)) for op in ARITHMETIC for dtype in OTHERS),
        *(table(op, ARITHMETIC[op], dtype, divisors(op, dtype)) for op in (Op.AND, Op.XOR, Op.POW) for dtype in WIDTHS),
    ],
    ids=str,
)
def test_arithmetic_of_integers_wraps(case):
    check_laws(case)


@pytest.mark.parametrize(
    "case", [of_each(IUnaryLayer(op=op), UNARY[op], dtype) for op in UNARY for dtype in WIDTHS], ids=str
)
def test_unary_of_integers_wraps(case):
    check_laws(case)


@pytest.mark.parametrize(
    "case",
    [of_each(IActivationLayer(type=ActivationType.RELU), lambda x: max(x, 0), dtype) for dtype in WIDTHS],
    ids=str,
)
def test_relu_of_integers(case):
    check_laws(case)


# ---------------------------------------------------------------------------- shifts


def shifts(op: Op, function: Callable[[int, int], Any]) -> list[Case]:
    amounts = {dtype: [0, 1, 8 * dtype.itemsize - 1, 8 * dtype.itemsize, 8 * dtype.itemsize + 1] for dtype in WIDTHS}
    return [table(op, function, dtype, amounts[dtype]) for dtype in WIDTHS]


@pytest.mark.parametrize("case", shifts(Op.SHIFT_LEFT, lambda a, b: a << b), ids=str)
def test_shift_to_the_left_drops_bits(case):
    check_laws(case)


@pytest.mark.parametrize("case", shifts(Op.SHIFT_RIGHT, lambda a, b: a >> b), ids=str)
def test_shift_to_the_right_keeps_the_sign(case):
    check_laws(case)


def test_shift_by_a_negative_number_counts_as_one_of_all_bits():
    arrays = np.array([5, -5], np.int32), np.array([-1, -40], np.int32)

    check_laws(Case("left", IElementWiseLayer(op=Op.SHIFT_LEFT), arrays, [0, 0]))
    check_laws(Case("right", IElementWiseLayer(op=Op.SHIFT_RIGHT), arrays, [0, -1]))


# ---------------------------------------------------------------------------- powers, remainders


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_negative_power_is_the_quotient_of_one(dtype):
    bases, powers = [1, -1, -1, 2, -3], [-5, -3, -2, -1, -2]
    expected = [power(a, b) for a, b in zip(bases, powers, strict=True)]

    layer = IElementWiseLayer(op=Op.POW)
    check_laws(Case("negative", layer, (np.array(bases, dtype), np.array(powers, dtype)), expected))


def test_zero_to_a_negative_power_is_an_error():
    with pytest.raises(LayerError, match="an integer is divided by zero"):
        IElementWiseLayer(op=Op.POW).evaluate(np.array([0]), np.array([-1]))


@pytest.mark.parametrize("op", [Op.MOD, Op.FMOD])
def test_rest_of_a_division_by_zero_is_an_error(op):
    with pytest.raises(LayerError, match="an integer is divided by zero"):
        IElementWiseLayer(op=op).evaluate(np.array([1]), np.array([0]))


@pytest.mark.parametrize(("a", "b"), [(5.3, 2.1), (-5.3, 2.1), (5.3, -2.1), (1e20, 3.0), (-4.0, 2.0)])
def test_rests_of_real_divisions_are_exact(a, b):
    arrays = np.array([a]), np.array([b])

    check_laws(Case("FMOD", IElementWiseLayer(op=Op.FMOD), arrays, [math.fmod(a, b)], 0))
    check_laws(Case("MOD", IElementWiseLayer(op=Op.MOD), arrays, [a % b], 0))
