"""Functions of complex numbers, which have their real and imaginary parts along a last axis of length 2."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.element_types import is_complex
from netloop.formats.from_jax.rules import EquationCall, complex_primitive, on_parts
from netloop.model.graph.tensor import ITensor

LOG_2 = math.log(2)


@complex_primitive("complex")
def joined(call: EquationCall, real: ITensor, imaginary: ITensor) -> ITensor:
    """The complex numbers with these parts."""
    wanted = jax.ShapeDtypeStruct(call.result.shape, real.type.dtype)
    parts = [call.facts.whole(tensor, wanted) for tensor in (real, imaginary)]
    return call.make.stack(parts, len(call.result.shape))


@complex_primitive("real")
def real_part(call: EquationCall, x: ITensor) -> ITensor:
    """The real parts."""
    return _part(call, x, 0)


@complex_primitive("imag")
def imaginary_part(call: EquationCall, x: ITensor) -> ITensor:
    """The imaginary parts."""
    return _part(call, x, 1)


def _part(call: EquationCall, x: ITensor, number: int) -> ITensor:
    last = x.type.rank - 1
    return call.make.squeeze(call.make.slice(x, [number], [1], axes=[last]), [last])


@complex_primitive("select_n")
def chosen(call: EquationCall, which: ITensor, *cases: ITensor) -> ITensor:
    """The case that ``which`` says, number by number."""
    result = cases[-1]
    wide = call.make.expand_dims(which, [which.type.rank]) if which.type.rank else which
    for number in reversed(range(len(cases) - 1)):
        other = wide if which.type.is_bool else call.make.logical_not(call.make.equal(wide, number))
        result = call.make.where(other, result, cases[number])
    return result


@complex_primitive("convert_element_type")
def converted(call: EquationCall, x: ITensor) -> ITensor:
    """Real numbers as complex ones, the parts in another type, or the real parts alone."""
    if not is_complex(call.result):
        return call.make.cast(_part(call, x, 0), call.dtype)
    parts = call.make.cast(x, call.dtype)
    if is_complex(call.operand(0)):
        return parts
    zeros = call.facts.whole(call.make.constant(np.zeros((), call.dtype)), call.operand(0))
    return call.make.stack([parts, zeros], parts.type.rank)


@on_parts("mul")
def product(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
    """The parts of the product of ``a + bi`` and ``c + di``."""
    return a * c - b * d, a * d + b * c


@on_parts("div")
def _quotient(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
    size = c * c + d * d
    return (a * c + b * d) / size, (b * c - a * d) / size


@on_parts("conj")
def _conjugate(a: Any, b: Any, **_: Any) -> Any:
    """The numbers with their imaginary parts negated."""
    return a, -b


@on_parts("integer_pow")
def _power(a: Any, b: Any, *, y: int, **_: Any) -> Any:
    real, imaginary = jnp.ones_like(a), jnp.zeros_like(b)
    for _turn in range(abs(y)):
        real, imaginary = product(real, imaginary, a, b)
    return (real, imaginary) if y >= 0 else _quotient(jnp.ones_like(a), jnp.zeros_like(b), real, imaginary)


@on_parts("abs")
def _size(a: Any, b: Any, **_: Any) -> Any:
    largest = lax.max(abs(a), abs(b))
    scale = jnp.where(largest == 0, 1, largest)
    return scale * jnp.sqrt((a / scale) ** 2 + (b / scale) ** 2)


@on_parts("sqrt")
def _root(a: Any, b: Any, **_: Any) -> Any:
    """The square root: its larger part from a sum that cancels nothing, and the other one from it."""
    larger = jnp.sqrt((_size(a, b) + abs(a)) / 2)
    other = abs(b) / (2 * jnp.where(larger == 0, 1, larger))
    real, imaginary = jnp.where(a < 0, other, larger), jnp.where(a < 0, larger, other)
    return real, jnp.where(b < 0, -imaginary, imaginary)


@on_parts("rsqrt")
def _inverse_root(a: Any, b: Any, **_: Any) -> Any:
    real, imaginary = _root(a, b)
    size = real * real + imaginary * imaginary
    return real / size, -imaginary / size


@on_parts("sign")
def _direction(a: Any, b: Any) -> Any:
    size = _size(a, b)
    unit = jnp.where(size == 0, 1, size)
    return a / unit, b / unit


@on_parts("pow")
def _complex_power(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
    """exp(y log x); 0 to the power 0 is 1, and to other powers 0."""
    size, angle = _size(a, b), lax.atan2(b, a)
    logarithm = jnp.log(jnp.where(size == 0, 1, size))
    length, turned = jnp.exp(c * logarithm - d * angle), d * logarithm + c * angle
    at_zero = jnp.where((c == 0) & (d == 0), 1, 0).astype(a.dtype)
    is_zero = size == 0
    return jnp.where(is_zero, at_zero, length * jnp.cos(turned)), jnp.where(is_zero, 0, length * jnp.sin(turned))


@on_parts("tanh")
def _hyperbolic_tangent(a: Any, b: Any, **_: Any) -> Any:
    """From the tangents of both parts, which do not overflow as their sines and cosines do."""
    real, imaginary = jnp.tanh(a), jnp.tan(b)
    size = 1 + (real * imaginary) ** 2
    return real * (1 + imaginary**2) / size, imaginary / jnp.cosh(a) ** 2 / size


@on_parts("logistic")
def _logistic(a: Any, b: Any, **_: Any) -> Any:
    real, imaginary = _hyperbolic_tangent(a / 2, b / 2)
    return (1 + real) / 2, imaginary / 2


# The inverse functions are Kahan's, "Branch Cuts for Complex Elementary Functions", 1987: sums cancel in others.


@on_parts("acos")
def _inverse_cosine(a: Any, b: Any, **_: Any) -> Any:
    (p, q), (r, s) = _root(1 - a, -b), _root(1 + a, b)
    return 2 * lax.atan2(p, r), jnp.arcsinh(r * q - s * p)


@on_parts("asin")
def _inverse_sine(a: Any, b: Any, **_: Any) -> Any:
    (p, q), (r, s) = _root(1 - a, -b), _root(1 + a, b)
    return lax.atan2(a, p * r - q * s), jnp.arcsinh(p * s - q * r)


@on_parts("acosh")
def _inverse_hyperbolic_cosine(a: Any, b: Any, **_: Any) -> Any:
    (p, q), (r, s) = _root(a - 1, b), _root(a + 1, b)
    return jnp.arcsinh(p * r + q * s), 2 * lax.atan2(q, r)


@on_parts("atanh")
def _inverse_hyperbolic_tangent(a: Any, b: Any, **_: Any) -> Any:
    return jnp.log1p(4 * a / ((1 - a) ** 2 + b * b)) / 4, lax.atan2(2 * b, (1 - a) * (1 + a) - b * b) / 2


@on_parts("max")
def _larger(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
    """The numbers with the larger real part, and of those with the larger imaginary part."""
    first = (a > c) | ((a == c) & (b >= d))
    return jnp.where(first, a, c), jnp.where(first, b, d)


@on_parts("min")
def _smaller(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
    first = (a < c) | ((a == c) & (b <= d))
    return jnp.where(first, a, c), jnp.where(first, b, d)


def _turned(function: Callable[..., Any]) -> Callable[..., Any]:
    """-i f(iz), which is the circular function of a hyperbolic one and the other way around."""

    def of_parts(a: Any, b: Any, **_: Any) -> Any:
        real, imaginary = function(-b, a)
        return imaginary, -real

    return of_parts


FORMULAS: dict[str, Callable[..., Any]] = {
    "square": lambda a, b, **_: (a * a - b * b, 2 * a * b),
    "exp": lambda a, b, **_: (jnp.exp(a) * jnp.cos(b), jnp.exp(a) * jnp.sin(b)),
    "log": lambda a, b, **_: (jnp.log(_size(a, b)), lax.atan2(b, a)),
    "sin": lambda a, b, **_: (jnp.sin(a) * jnp.cosh(b), jnp.cos(a) * jnp.sinh(b)),
    "cos": lambda a, b, **_: (jnp.cos(a) * jnp.cosh(b), -jnp.sin(a) * jnp.sinh(b)),
    "sinh": lambda a, b, **_: (jnp.sinh(a) * jnp.cos(b), jnp.cosh(a) * jnp.sin(b)),
    "cosh": lambda a, b, **_: (jnp.cosh(a) * jnp.cos(b), jnp.sinh(a) * jnp.sin(b)),
    "exp2": lambda a, b, **_: (jnp.exp2(a) * jnp.cos(LOG_2 * b), jnp.exp2(a) * jnp.sin(LOG_2 * b)),
    "tan": _turned(_hyperbolic_tangent),
    "asinh": _turned(_inverse_sine),
    "atan": _turned(_inverse_hyperbolic_tangent),
    "eq": lambda a, b, c, d, **_: (a == c) & (b == d),
    "ne": lambda a, b, c, d, **_: (a != c) | (b != d),
}
"""The parts of the results, from those of the operands."""

for _name, _formula in FORMULAS.items():
    on_parts(_name)(_formula)
