"""Helper of ``ICastLayer``: conversion between element types, in numpy and in JAX.

XLA converts correctly between floating-point types and signed integers of 32 and 64 bits; unsigned integers are
converted via these. On CPUs LLVM simplifies ``float(unsigned(int(x)))`` to x without its fraction, whatever its sign.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.layers.string_conversion import numbers_of, strings_of
from netloop.values.enums import DataType
from netloop.values.string_arrays import STRING
from netloop.values.types import TINY, Array, numpy_type

BF16, FP4, E8M0 = (numpy_type(number) for number in (DataType.BF16, DataType.FP4, DataType.E8M0))
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
U8, U32, U64 = np.dtype(np.uint8), np.dtype(np.uint32), np.dtype(np.uint64)


def convert(x: Array, dtype: np.dtype[Any]) -> Array:
    """``x`` converted to ``dtype``, as ``ICastLayer`` defines it: the reference.

    Raises:
        LayerError: a string is no number.
    """
    if dtype == STRING:
        return x if x.dtype == STRING else strings_of(x)
    x = numbers_of(x, is_float=bool(jnp.issubdtype(dtype, jnp.floating))) if x.dtype == STRING else x
    with np.errstate(all="ignore"):
        if jnp.issubdtype(x.dtype, jnp.floating) and jnp.issubdtype(dtype, jnp.integer):
            if dtype == U8:
                return _to_integer(x, np.dtype(np.int64)).clip(0, None).astype(dtype)
            return _to_integer(x, dtype)
        if jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize < F32.itemsize:
            return _to_odd(x).astype(dtype)
        return (x.astype(np.int32) if x.dtype in TINY else x).astype(dtype)


def _to_odd(x: Array) -> Array:
    """``x`` rounded to odd in float32, so that a second rounding to nearest gives the same result as one of ``x``."""
    near = x.astype(np.float32)
    again = near.astype(x.dtype)
    below = np.where(np.abs(again) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    inexact = np.isfinite(near) & (again != x)
    return (below.view(np.uint32) | inexact).view(np.float32)


def _to_integer(x: Array, dtype: np.dtype[Any]) -> Array:
    limits = jnp.iinfo(dtype)
    least, most = int(limits.min), int(limits.max)
    wide = np.trunc(np.nan_to_num(x.astype(np.float64), posinf=np.inf, neginf=-np.inf))
    below, above = wide < least, wide >= float(most) + 1
    largest = np.uint64 if dtype == U64 else np.int64
    inside = np.where(below | above, 0, wide).astype(largest).astype(dtype)
    return np.where(below, dtype.type(least), np.where(above, dtype.type(most), inside))


def lower_conversion(x: Any, dtype: np.dtype[Any]) -> jax.Array:
    """``x`` converted to ``dtype`` in JAX; subnormal numbers are 0, as for XLA."""
    x = jnp.asarray(x)
    x = x.astype(F32) if x.dtype == FP4 else x  # XLA converts float4 to an integer as if it were infinite
    if jnp.issubdtype(dtype, jnp.floating):
        return _lower_to_float(x, dtype)
    if jnp.issubdtype(x.dtype, jnp.floating) and jnp.issubdtype(dtype, jnp.integer):
        return _lower_to_integer(x, dtype)
    return x.astype(dtype)


def _lower_to_integer(x: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    if dtype == U8:
        return jnp.maximum(x.astype(jnp.int64), 0).astype(dtype)
    if dtype == U32:
        return jnp.clip(x.astype(jnp.int64), 0, 2**32 - 1).astype(dtype)
    if dtype == U64:
        x = x if x.dtype == F64 else x.astype(F32)
        low, high = (array.astype(jnp.int64).astype(dtype) for array in (jnp.maximum(x, 0), x - 2.0**63))
        return jnp.where(x >= 2.0**63, high + np.uint64(2**63), low)
    if jnp.issubdtype(dtype, jnp.unsignedinteger):
        # XLA's CPU gives the largest number for a NaN of 8 bits that was an integer before
        return jnp.clip(x.astype(jnp.int32), 0, jnp.iinfo(dtype).max).astype(dtype)
    return x.astype(dtype)


def _lower_to_float(x: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    if x.dtype == U32:
        signed = lax.bitcast_convert_type(x, jnp.int32)
        x = signed.astype(F64) + jnp.where(signed < 0, 2.0**32, 0)
    if dtype in (BF16, FP4, E8M0) and x.dtype.itemsize >= F32.itemsize and x.dtype != F32:
        x = _by_signed(_lower_to_odd, x)
    if dtype == FP4 and jnp.issubdtype(
        x.dtype, jnp.floating
    ):  # XLA folds an infinite constant to 0 instead of the largest number
        x = jnp.clip(x.astype(F32), -6, 6)
    if dtype == E8M0 != x.dtype:  # XLA folds constants that are not positive to powers of two instead of NaN
        x = jnp.where(x.astype(F32) > 0, x.astype(F32), np.nan)
    return _by_signed(lambda array: array.astype(dtype), x)


def _by_signed(convert: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """``x`` converted to floating-point; uint64 beyond int64 by way of its half, whose last bit is sticky."""
    if x.dtype != U64:
        return convert(x)
    half = (x >> np.uint64(1) | x & np.uint64(1)).astype(jnp.int64)
    signed = lax.bitcast_convert_type(x, jnp.int64)
    return jnp.where(signed < 0, convert(half) * 2, convert(signed))


def _lower_to_odd(x: jax.Array) -> jax.Array:
    """``_to_odd`` in JAX: XLA itself would round twice, to float32 and then to the narrow type."""
    near = x.astype(F32)
    again = near.astype(x.dtype)
    is_over = jnp.abs(again) > jnp.abs(x)
    bits = lax.bitcast_convert_type(near, jnp.uint32)
    odd = lax.bitcast_convert_type(bits - is_over.astype(np.uint32) | 1, F32)
    return jnp.where((again == x) | ~jnp.isfinite(near), near, odd)
