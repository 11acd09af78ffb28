"""Functions of complex numbers, which have their real and imaginary parts along a last axis of length 2."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.element_types import is_complex
from netloop.formats.from_jax.rules import EquationCall, complex_primitive, on_parts
from netloop.model.graph.tensor import ITensor


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
def _product(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
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
        real, imaginary = _product(real, imaginary, a, b)
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


FORMULAS: dict[str, Callable[..., Any]] = {
    "square": lambda a, b, **_: (a * a - b * b, 2 * a * b),
    "exp": lambda a, b, **_: (jnp.exp(a) * jnp.cos(b), jnp.exp(a) * jnp.sin(b)),
    "log": lambda a, b, **_: (jnp.log(_size(a, b)), lax.atan2(b, a)),
    "sin": lambda a, b, **_: (jnp.sin(a) * jnp.cosh(b), jnp.cos(a) * jnp.sinh(b)),
    "cos": lambda a, b, **_: (jnp.cos(a) * jnp.cosh(b), -jnp.sin(a) * jnp.sinh(b)),
    "eq": lambda a, b, c, d, **_: (a == c) & (b == d),
    "ne": lambda a, b, c, d, **_: (a != c) | (b != d),
}
"""The parts of the results, from those of the operands."""

for _name, _formula in FORMULAS.items():
    on_parts(_name)(_formula)
