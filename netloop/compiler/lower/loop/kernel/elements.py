"""Element-wise primitives with the results of XLA, where Triton's are others.

Triton's maximum of NaN and a number is the number; its division of integers by zero, its shifts past the width of a
type and its conversions of numbers outside of a type have no meaning; its remainder of floating-point numbers is off
for large quotients. It has no 16-bit division and tanh: numbers of 16 bits are computed in float32, as XLA does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.compiler.lower.loop.kernel.interpreter import KernelTrace, primitive
from netloop.compiler.lower.loop.kernel.jaxpr import BOOL, Equation, Refused
from netloop.compiler.lower.loop.kernel.lanes import AxisClasses

HALVES = np.dtype(jnp.bfloat16), np.dtype(np.float16)
SINGLES = *HALVES, np.dtype(np.float32)
ANY = "eq ne lt le gt ge select_n"
"""The primitives that take each type as it is."""
BITS = "and or xor not"
ARITHMETIC = "add add_any sub mul neg abs square"
FUNCTIONS = (
    "exp exp2 expm1 log log1p sqrt rsqrt cbrt pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh "
    "floor ceil is_finite"
)


def same_axes(classes: AxisClasses, equation: Equation) -> None:
    """Unite the axes of all operands with those of the result."""
    for operand in equation.inputs:
        classes.unite_all(operand, equation.outputs[0])


def _is_float(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating))


def _is_signed(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.signedinteger))


def operands_of(kernel: KernelTrace, equation: Equation, values: Sequence[Any]) -> list[Any]:
    """The operands of an element-wise primitive, in registers and with all axes."""
    block = kernel.block(equation.outputs[0])
    return [jnp.broadcast_to(kernel.array(value), block) for value in values]


def wide(compute: Callable[..., Any], *values: Any) -> Any:
    """A function of numbers, of 16 bits in float32."""
    halves = [value.dtype for value in values if value.dtype in HALVES]
    if not halves:
        return compute(*values)
    result = compute(*(value.astype(np.float32) if value.dtype in HALVES else value for value in values))
    return result.astype(halves[0]) if _is_float(result.dtype) else result


@primitive(*ANY.split(), *BITS.split(), *ARITHMETIC.split(), *FUNCTIONS.split(), axes=same_axes)
def _same(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    operands = operands_of(kernel, equation, values)
    is_function = equation.name in FUNCTIONS.split()
    if is_function and not _is_float(operands[0].dtype):
        raise Refused(f"kernels have no {equation.name} of {operands[0].dtype}")
    if equation.name == "select_n" and (len(operands) > 3 or operands[0].dtype != BOOL):
        raise Refused("it selects one of more than two values")
    bind = partial(equation.primitive.bind, **equation.params)
    return [bind(*operands) if equation.name in ANY.split() else wide(bind, *operands)]


Formula = Callable[..., Any]


def formula(*names: str) -> Callable[[Formula], Formula]:
    """A decorator for the formula of primitives, of the equation and of arrays of one shape."""

    def register(function: Formula) -> Formula:
        @primitive(*names, axes=same_axes)
        def _compute(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
            return [function(equation, *operands_of(kernel, equation, values))]

        return function

    return register


@formula("max", "min")
def _extreme(equation: Equation, x: Any, y: Any) -> Any:
    """The larger or smaller one; NaN if one is NaN."""
    if x.dtype == BOOL:
        return x | y if equation.name == "max" else x & y
    result = wide(lambda x, y: equation.primitive.bind(x, y), x, y)
    return jnp.where(x != x, x, jnp.where(y != y, y, result)) if _is_float(x.dtype) else result


@formula("population_count", "clz")
def _count(equation: Equation, x: Any) -> Any:
    """A number of bits."""
    if x.dtype not in (np.int32, np.int64):
        raise Refused(f"kernels have no {equation.name} of {x.dtype}")
    return equation.primitive.bind(x)


@formula("clamp")
def _clamp(equation: Equation, low: Any, x: Any, high: Any) -> Any:
    return jnp.where(x < low, low, jnp.where(x > high, high, x))


@formula("sign")
def _sign(equation: Equation, x: Any) -> Any:
    one = jnp.ones((), x.dtype)
    if not _is_float(x.dtype) and not _is_signed(x.dtype):
        return jnp.where(x == 0, x, one)
    return jnp.where(x > 0, one, jnp.where(x < 0, jnp.asarray(-1, x.dtype), x))


@formula("logistic")
def _logistic(equation: Equation, x: Any) -> Any:
    return wide(lambda x: 1 / (1 + jnp.exp(-x)), x)


@formula("nextafter")
def _nextafter(equation: Equation, x: Any, y: Any) -> Any:
    if x.dtype in HALVES:
        raise Refused(f"kernels have no nextafter of {x.dtype}")
    return equation.primitive.bind(x, y)


@formula("integer_pow")
def _integer_pow(equation: Equation, x: Any) -> Any:
    """A power by products, each of them rounded."""
    exponent, result = equation.params["y"], jnp.ones((), x.dtype)
    times = partial(wide, lax.mul)
    rest, is_one = abs(exponent), True
    while rest:
        if rest & 1:
            result, is_one = x if is_one else times(result, x), False
        rest >>= 1
        x = times(x, x) if rest else x
    if exponent < 0 and not _is_float(x.dtype):
        raise Refused(f"it has a negative power of {x.dtype}")
    return wide(lambda x: 1 / x, result) if exponent < 0 else jnp.broadcast_to(result, x.shape)


# ---------------------------------------------------------------------------- integers


@formula("div")
def _div(equation: Equation, x: Any, y: Any) -> Any:
    """A quotient; of integers by zero it is -1, and that of the smallest by -1 the smallest."""
    if _is_float(x.dtype):
        return wide(lax.div, x, y)
    zero, one = y == 0, jnp.ones((), y.dtype)
    if not _is_signed(x.dtype):
        return jnp.where(zero, jnp.asarray(np.iinfo(x.dtype).max, x.dtype), lax.div(x, jnp.where(zero, one, y)))
    overflows = (x == np.iinfo(x.dtype).min) & (y == -1)
    return jnp.where(zero, jnp.asarray(-1, x.dtype), lax.div(x, jnp.where(zero | overflows, one, y)))


@formula("rem")
def _rem(equation: Equation, x: Any, y: Any) -> Any:
    """A remainder; of integers by zero it is the dividend."""
    if x.dtype in SINGLES:
        return wide(_remainder, x, y)
    if _is_float(x.dtype):
        raise Refused(f"kernels have no rem of {x.dtype}")
    zero, one = y == 0, jnp.ones((), y.dtype)
    by_one = zero | (y == -1) if _is_signed(x.dtype) else zero
    return jnp.where(zero, x, lax.rem(x, jnp.where(by_one, one, y)))


BITS_A_STEP = 28
"""The bits of a quotient whose product with 24 bits of a divisor float64 holds, with one to spare."""
STEPS = 10
"""The number of steps for the largest quotient of float32, 2^277."""


def _remainder(x: Any, y: Any) -> Any:
    """The exact remainder of float32: from the largest multiples of the divisor to the smallest, in float64."""
    rest, divisor = jnp.abs(x).astype(np.float64), jnp.abs(y).astype(np.float64)
    is_plain = (rest < np.inf) & (divisor > 0) & (divisor < np.inf)
    rest, unit = jnp.where(is_plain, rest, 0.0), jnp.where(is_plain, divisor, 1.0)
    for step in reversed(range(STEPS)):
        multiple = unit * np.float64(2.0 ** (BITS_A_STEP * step))
        rest = rest - jnp.floor(rest / multiple) * multiple
        # the quotient may have been rounded up to a whole number
        rest = jnp.where(rest < 0, rest + multiple, rest)
    result = rest.astype(np.float32)
    result = jnp.where((x < 0) | (1 / x < 0), -result, result)
    # by infinity it is the dividend; of infinity, by zero and of NaN it is none
    by_infinity = (jnp.abs(x) < np.inf) & (jnp.abs(y) == np.inf)
    return jnp.where(is_plain, result, jnp.where(by_infinity, x, jnp.asarray(np.nan, np.float32)))


@formula("shift_left", "shift_right_arithmetic", "shift_right_logical")
def _shift(equation: Equation, x: Any, y: Any) -> Any:
    """A shift; past the width of the type all bits are gone."""
    bits = x.dtype.itemsize * 8
    fits = (y >= 0) & (y < bits) if _is_signed(y.dtype) else y < bits
    result = equation.primitive.bind(x, jnp.where(fits, y, jnp.zeros((), y.dtype)))
    if equation.name != "shift_right_arithmetic":
        return jnp.where(fits, result, jnp.zeros((), x.dtype))
    return jnp.where(fits, result, equation.primitive.bind(x, jnp.full(y.shape, bits - 1, y.dtype)))


# ---------------------------------------------------------------------------- conversions and rounding


@formula("convert_element_type")
def _convert(equation: Equation, x: Any) -> Any:
    """A conversion; a number outside of an integer type becomes its nearest one, and NaN zero."""
    dtype = np.dtype(equation.params["new_dtype"])
    if dtype == x.dtype:
        return x
    if dtype == BOOL:
        return x != 0
    if not _is_float(x.dtype) or _is_float(dtype):
        return lax.convert_element_type(x, dtype)
    return wide(lambda x: _whole(x, dtype), x)


def _whole(x: Any, dtype: Any) -> Any:
    """Floating-point numbers as integers."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    # 2^n, the first number that is too large, is one of x's type, unlike 2^n - 1
    too_large, too_small = x >= x.dtype.type(most + 1), x <= x.dtype.type(least)
    fits = lax.convert_element_type(jnp.where(too_large | too_small | (x != x), jnp.zeros((), x.dtype), x), dtype)
    result = jnp.where(too_large, jnp.asarray(most, dtype), jnp.where(too_small, jnp.asarray(least, dtype), fits))
    return jnp.where(x != x, jnp.zeros((), dtype), result)


@formula("bitcast_convert_type")
def _bitcast(equation: Equation, x: Any) -> Any:
    dtype = np.dtype(equation.params["new_dtype"])
    if bool in (dtype, x.dtype) or dtype.itemsize != x.dtype.itemsize:
        raise Refused(f"it takes the bits of {x.dtype} as {dtype}")
    return lax.bitcast_convert_type(x, dtype)


@formula("reduce_precision")
def _reduce_precision(equation: Equation, x: Any) -> Any:
    bits = equation.params["exponent_bits"], equation.params["mantissa_bits"]
    if bits == (8, 23) and x.dtype in SINGLES:
        return x
    narrow = {(8, 7): jnp.bfloat16, (5, 10): np.float16}.get(bits)
    if narrow is None:
        raise Refused(f"it rounds to {bits[0]} bits of exponent and {bits[1]} of mantissa")
    return x.astype(narrow).astype(x.dtype)


@formula("round")
def _round(equation: Equation, x: Any) -> Any:
    is_even = int(equation.params["rounding_method"]) == int(lax.RoundingMethod.TO_NEAREST_EVEN)
    return wide(lambda x: _rounded(x, is_even), x)


def _rounded(x: Any, is_even: bool) -> Any:
    """The nearest whole numbers; halves to even ones, or away from zero."""
    size = jnp.abs(x)
    down = jnp.floor(size)
    rest, is_odd = size - down, down - 2 * jnp.floor(down * 0.5) == 1
    up = (rest > 0.5) | ((rest == 0.5) & is_odd) if is_even else rest >= 0.5
    result = jnp.where(up, down + 1, down)
    result = jnp.where((x < 0) | (1 / x < 0), -result, result)
    # from 2^52 on all numbers are whole; NaN stays
    return jnp.where(size < 2.0**52, result, x)


# ---------------------------------------------------------------------------- functions that Triton does not have

NUMERATOR = 0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145, 1.128379143519084
DENOMINATOR = (
    *(-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667),
    *(0.11098505178285362, 0.49746925110067538, 1.0),
)
"""The coefficients by which XLA computes erf, of x * P(x^2) / Q(x^2)."""
LARGEST_ERF = 3.832506856900711
"""From here on erf is 1 in float32."""


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    return reduce(lambda total, coefficient: total * x + coefficient, map(np.float32, coefficients))


@formula("erf", "erfc")
def _erf(equation: Equation, x: Any) -> Any:
    if x.dtype not in SINGLES or equation.name == "erfc":
        raise Refused(f"kernels have no {equation.name} of {x.dtype}")

    def compute(x: Any) -> Any:
        one, bound = np.float32(1), np.float32(LARGEST_ERF)
        result = x * _polynomial(x * x, NUMERATOR) / _polynomial(x * x, DENOMINATOR)
        return jnp.where(x < -bound, -one, jnp.where(x > bound, one, result))

    return wide(compute, x)
