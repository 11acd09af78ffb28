"""Bounds of the numbers of a tensor, and of the difference that rounding makes between an engine and the reference."""

from collections.abc import Iterator
from math import log2
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

import netloop as trt
from netloop.values.types import numpy_type


class Bounds(NamedTuple):
    """Bounds of the finite numbers of a tensor.

    Attributes:
        size: the largest absolute value.
        unit: a power of two of which all of them are multiples; 0 if there is none.
        error: the largest difference between engine and reference.
    """

    size: float
    unit: float = 0
    error: float = 0


def is_float(dtype: trt.DataType) -> bool:
    return bool(jnp.issubdtype(numpy_type(dtype), jnp.floating))


def largest(dtype: trt.DataType) -> float:
    return float(jnp.finfo(numpy_type(dtype)).max)


def of_array(array: np.ndarray) -> Bounds:
    """The bounds of numbers that are given; a unit of less than 1/64 is none."""
    numbers = array[np.isfinite(array.astype(np.float64))].astype(np.float64)
    unit = next((unit for unit in units() if not (numbers % unit).any()), 0)
    return Bounds(float(np.abs(numbers).max(initial=0)), unit)


def units() -> Iterator[float]:
    yield from (2.0**-power for power in range(7))


def rounded(dtype: trt.DataType, size: float, unit: float = 0, error: float = 0, steps: float = 1) -> Bounds:
    """The bounds of results that are rounded at each of some steps, unless their type holds every multiple of the unit.

    Integers wrap alike everywhere.
    """
    if not is_float(dtype):
        return Bounds(min(size, 2.0**31), 1)
    eps = float(jnp.finfo(numpy_type(dtype)).eps)
    if unit and not error and size <= unit / eps:
        return Bounds(size, unit)
    return Bounds(size, 0, error + steps * eps * size)


def total(dtype: trt.DataType, a: Bounds, b: Bounds) -> Bounds:
    """Of sums and differences."""
    return rounded(dtype, a.size + b.size, min(a.unit, b.unit), a.error + b.error)


def product(dtype: trt.DataType, a: Bounds, b: Bounds, length: int = 1) -> Bounds:
    """Of sums of some products each."""
    error = length * (a.error * b.size + a.size * b.error)
    return rounded(dtype, length * a.size * b.size, a.unit * b.unit, error, 2 + steps_of_sum(length))


def steps_of_sum(length: int) -> float:
    """The steps of the whole sum by which a sum of some numbers is off.

    Equal numbers that are added one after the other are rounded to the same side each time: at half of the sum on
    average, by half a step. XLA adds more than about a thousand numbers in parts.
    """
    return min(length, 1024) / 4


def mean(dtype: trt.DataType, a: Bounds, length: int) -> Bounds:
    is_exact = log2(length).is_integer() and a.unit and rounded(dtype, length * a.size, a.unit, a.error).unit
    unit = a.unit / length if is_exact else 0
    return rounded(dtype, a.size, unit, a.error, 3 + steps_of_sum(length))


def either(*bounds: Bounds) -> Bounds:
    """Of numbers that are one or the other."""
    return Bounds(*(max(entry) for entry in zip(*bounds, strict=True)))._replace(
        unit=min(bound.unit for bound in bounds)
    )
