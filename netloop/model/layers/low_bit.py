"""Rounding to low-bit types, in numpy and in JAX."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.values.enums import DataType
from netloop.values.types import Array, numpy_type


class _Format(NamedTuple):
    """The value grid of a low-bit type: ``least`` to ``most``; integers, or floats with ``bits`` mantissa bits and the
    smallest exponent ``lowest``.
    """

    least: float
    most: float
    bits: int | None = None
    lowest: int = 0


# fmt: off
FORMATS: dict[DataType, _Format] = {
    DataType.INT8: _Format(-128, 127),
    DataType.INT4: _Format(  -8,   7),
    DataType.FP8:  _Format(-448, 448, bits=3, lowest=-6),
    DataType.FP4:  _Format(  -6,   6, bits=1, lowest=0),
}
# fmt: on


def quantized(x: Array, kind: DataType) -> Array:
    """Round ``x`` to the nearest numbers of a type: ties to even, clamped; NaN becomes 0 if the type has no NaN."""
    least, most, bits, _ = FORMATS[kind]
    inside = np.clip(x, least, most)
    if kind is not DataType.FP8:
        inside = np.where(np.isnan(inside), 0, inside)
    return (np.rint(inside) if bits is None else _nearest(inside, kind)).astype(numpy_type(kind))


def _nearest(x: Array, kind: DataType) -> Array:
    """Round by a search over all numbers of a type, which are in the order of their bits."""
    above_0 = np.arange(256, dtype=np.uint8)[: 127 if kind is DataType.FP8 else 8]
    numbers = above_0.view(numpy_type(kind)).astype(np.float64)
    size = np.abs(x.astype(np.float64))
    after = np.searchsorted(numbers, size).clip(1, len(numbers) - 1)
    half = (numbers[after - 1] + numbers[after]) / 2
    place = np.where((size > half) | ((size == half) & (after % 2 == 0)), after, after - 1)
    return np.where(np.isnan(x), np.nan, np.copysign(numbers[place], x))


def lower_quantized(x: Any, kind: DataType) -> jax.Array:
    """Round in JAX, in the type of ``x``, so that the final conversion is exact on every device."""
    least, most, bits, lowest = FORMATS[kind]
    inside = lax.stop_gradient(jnp.clip(x, least, most))
    if kind is not DataType.FP8:
        inside = jnp.where(jnp.isnan(inside), 0, inside)
    if bits is None:
        return jnp.round(inside).astype(numpy_type(kind))
    exponent = jnp.maximum(jnp.frexp(inside)[1] - 1, lowest) - bits
    one = jnp.ones((), inside.dtype)
    # products by powers of two are exact on every device, and quotients are not on GPUs
    return (jnp.round(inside * jnp.ldexp(one, -exponent)) * jnp.ldexp(one, exponent)).astype(numpy_type(kind))
