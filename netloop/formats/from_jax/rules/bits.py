"""Shifts and other functions of bits."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.rules import EquationCall, defined, primitive
from netloop.formats.from_jax.rules.pointwise.elements import binary
from netloop.model.formulas import as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ElementWiseOperation


@primitive("bitcast_convert_type")
def bit_cast(call: EquationCall, x: ITensor) -> ITensor:
    """The bits of each element read as another type; of a smaller or larger one, along a last axis."""
    value = call.facts.scalar_of(x)
    if x.type.dtype.itemsize != call.dtype.itemsize:
        return call.define(lambda array: _regrouped(array, call.dtype), x)[0]
    if value is not None and x.type.rank == 0:
        return call.make.constant(value.view(call.dtype))
    return (
        x if x.type.dtype == call.dtype else call.make.output(call.make.network.add_bit_cast(x, as_dtype(call.dtype)))
    )


def _regrouped(x: Any, dtype: np.dtype[Any]) -> Any:
    """The bytes of elements as parts along a last axis, or the parts along the last axis as elements; lowest first."""
    own, wanted = (np.dtype(f"uint{8 * value.itemsize}") for value in (x.dtype, dtype))
    bits = lax.bitcast_convert_type(x, own)
    width, count = (
        8 * min(own.itemsize, wanted.itemsize),
        max(own.itemsize, wanted.itemsize) // min(own.itemsize, wanted.itemsize),
    )
    if own.itemsize > wanted.itemsize:
        array = jnp.stack([(bits >> own.type(width * part)).astype(wanted) for part in range(count)], -1)
    else:
        parts = [bits[..., part].astype(wanted) << wanted.type(width * part) for part in range(count)]
        array = parts[0]
        for part in parts[1:]:
            array = array | part
    return lax.bitcast_convert_type(array, dtype)


@primitive("shift_right_logical", "shift_right_arithmetic", broadcasts=True)
def shift_right(call: EquationCall, x: ITensor, by: ITensor) -> ITensor:
    """The bits shifted down, with zeros or the sign bit above."""
    own, bits = x.type.dtype, 8 * x.type.dtype.itemsize
    name = "uint" if call.name == "shift_right_logical" else "int"
    shifted = binary(
        call, ElementWiseOperation.SHIFT_RIGHT, *(_read_as(call, tensor, f"{name}{bits}") for tensor in (x, by))
    )
    return _read_as(call, shifted, own.name)


def _read_as(call: EquationCall, x: ITensor, name: str) -> ITensor:
    dtype = np.dtype(name)
    if x.type.dtype == dtype:
        return x
    value = call.facts.scalar_of(x)
    if value is not None:
        return call.make.constant(value.view(dtype))
    return call.make.output(call.make.network.add_bit_cast(x, as_dtype(dtype)))


def _unsigned(x: Any) -> Any:
    return lax.bitcast_convert_type(x, np.dtype(f"uint{8 * x.dtype.itemsize}"))


def _ones(x: Any) -> Any:
    """The number of bits that are 1, of unsigned integers: sums of ever more of them, side by side."""
    bits = 8 * x.dtype.itemsize
    width = 1
    while width < bits:
        mask = x.dtype.type(sum(((1 << width) - 1) << start for start in range(0, bits, 2 * width)))
        x = (x & mask) + ((x >> x.dtype.type(width)) & mask)
        width *= 2
    return x


@defined("population_count")
def population_count(x: Any) -> Any:
    """The number of bits that are 1."""
    return _ones(_unsigned(x)).astype(x.dtype)


@defined("clz")
def leading_zeros(x: Any) -> Any:
    """The number of zeros before the first bit that is 1."""
    result, bits = _unsigned(x), 8 * x.dtype.itemsize
    width = 1
    while width < bits:
        result = result | (result >> result.dtype.type(width))
        width *= 2
    return (bits - _ones(result)).astype(x.dtype)


@defined("mulhi")
def high_product(x: Any, y: Any) -> Any:
    """The upper half of the bits of a product."""
    half = 4 * x.dtype.itemsize
    low = x.dtype.type((1 << half) - 1)
    a, b, c, d = x >> half, x & low, y >> half, y & low
    middle = a * d + (
        (b * d).astype(x.dtype) >> half
        if x.dtype.kind == "u"
        else lax.shift_right_logical(b * d, jnp.asarray(half, x.dtype))
    )
    cross = (middle & low) + b * c
    return a * c + (middle >> half) + (cross >> half)


@defined("nextafter")
def next_after(x: Any, y: Any) -> Any:
    """The next number from x in the direction of y."""
    kind = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits, one = lax.bitcast_convert_type(x, kind), kind.type(1)
    smallest = lax.bitcast_convert_type(jnp.where(y > 0, one, one | np.iinfo(kind).min), x.dtype)
    away = jnp.where((y > x) == (x > 0), one, -one)
    moved = lax.bitcast_convert_type(bits + away, x.dtype)
    array = jnp.where(x == 0, smallest, moved)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), x + y, jnp.where(x == y, y, array))


@defined("reduce_precision")
def reduce_precision(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    """The nearest number of a floating-point format with fewer bits, ties to even."""
    info = jnp.finfo(x.dtype)
    kind = np.dtype(f"uint{info.bits}")
    if mantissa_bits < info.nmant:
        bits, drop = lax.bitcast_convert_type(x, kind), info.nmant - mantissa_bits
        last = (bits >> kind.type(drop)) & kind.type(1)
        rounded = (bits + last + kind.type((1 << (drop - 1)) - 1)) & kind.type(
            ~((1 << drop) - 1) & ((1 << info.bits) - 1)
        )
        x = jnp.where(jnp.isnan(x), x, lax.bitcast_convert_type(rounded, x.dtype))
    if exponent_bits < info.nexp:
        bias = (1 << (exponent_bits - 1)) - 1
        largest, least = 2.0**bias * (2 - 2.0**-mantissa_bits), 2.0 ** (1 - bias)
        x = jnp.where(abs(x) > largest, jnp.sign(x) * np.asarray(np.inf, x.dtype), x)
        x = jnp.where(abs(x) < least, x * 0, x)
    return x
