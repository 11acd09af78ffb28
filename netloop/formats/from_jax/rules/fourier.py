"""Fourier transforms, and the complex numbers around them: real and imaginary parts along a last axis of length 2."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.call import Call
from netloop.formats.from_jax.element_types import is_complex
from netloop.formats.from_jax.rule_table import Outputs, complex_primitive, primitive
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor


@complex_primitive("complex")
def joined(call: Call, real: ITensor, imaginary: ITensor) -> ITensor:
    """The complex numbers with these parts."""
    wanted = jax.ShapeDtypeStruct(call.result.shape, real.type.dtype)
    parts = [call.facts.whole(tensor, wanted) for tensor in (real, imaginary)]
    return call.make.stack(parts, len(call.result.shape))


@complex_primitive("real")
def real_part(call: Call, x: ITensor) -> ITensor:
    """The real parts."""
    return _part(call, x, 0)


@complex_primitive("imag")
def imaginary_part(call: Call, x: ITensor) -> ITensor:
    """The imaginary parts."""
    return _part(call, x, 1)


def _part(call: Call, x: ITensor, number: int) -> ITensor:
    last = x.type.rank - 1
    return call.make.squeeze(call.make.slice(x, [number], [1], axes=[last]), [last])


def on_parts(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a JAX function of parts, ``f(a, b, ..)`` for ``a + bi``, for a primitive.

    It returns the parts of the result, or a real result.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        def rule(call: Call, *operands: ITensor) -> Outputs:
            complexes = [is_complex(variable.aval) for variable in call.equation.invars]

            def of_pairs(*pairs: Any) -> Any:
                parts = [_parts(*entry) for entry in zip(pairs, complexes, strict=True)]
                result = function(*(part for pair in parts for part in pair), **call.params)
                return jnp.stack(jnp.broadcast_arrays(*result), -1) if isinstance(result, tuple) else result

            return call.define(of_pairs, *operands)

        complex_primitive(name)(rule)
        return function

    return enter


def _parts(x: Any, has_parts: bool) -> tuple[Any, Any]:
    return (x[..., 0], x[..., 1]) if has_parts else (x, jnp.zeros_like(x))


@on_parts("mul")
def _product(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
    return a * c - b * d, a * d + b * c


@on_parts("div")
def _quotient(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
    size = c * c + d * d
    return (a * c + b * d) / size, (b * c - a * d) / size


@on_parts("conj")
def _conjugate(a: Any, b: Any, **_: Any) -> Any:
    return a, -b


@on_parts("square")
def _square(a: Any, b: Any, **_: Any) -> Any:
    return a * a - b * b, 2 * a * b


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


@on_parts("exp")
def _exponential(a: Any, b: Any, **_: Any) -> Any:
    return jnp.exp(a) * jnp.cos(b), jnp.exp(a) * jnp.sin(b)


@on_parts("log")
def _logarithm(a: Any, b: Any, **_: Any) -> Any:
    return jnp.log(_size(a, b)), lax.atan2(b, a)


@on_parts("eq")
def _equal(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
    return (a == c) & (b == d)


@on_parts("ne")
def _different(a: Any, b: Any, c: Any, d: Any, **_: Any) -> Any:
    return (a != c) | (b != d)


@on_parts("pad")
def _padded(a: Any, b: Any, c: Any, d: Any, *, padding_config: Any) -> Any:
    return lax.pad(a, c, padding_config), lax.pad(b, d, padding_config)


@on_parts("dot_general")
def _sum_of_products(a: Any, b: Any, c: Any, d: Any, *, dimension_numbers: Any, precision: Any, **_: Any) -> Any:
    def product(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, dimension_numbers, precision)

    return product(a, c) - product(b, d), product(a, d) + product(b, c)


@complex_primitive("select_n")
def chosen(call: Call, which: ITensor, *cases: ITensor) -> ITensor:
    """The case that ``which`` says, number by number."""
    result = cases[-1]
    wide = call.make.expand_dims(which, [which.type.rank]) if which.type.rank else which
    for number in reversed(range(len(cases) - 1)):
        other = wide if which.type.is_bool else call.make.logical_not(call.make.equal(wide, number))
        result = call.make.where(other, result, cases[number])
    return result


@complex_primitive("convert_element_type")
def converted(call: Call, x: ITensor) -> ITensor:
    """Real numbers as complex ones, the parts in another type, or the real parts alone."""
    if not is_complex(call.result):
        return call.make.cast(_part(call, x, 0), call.dtype)
    parts = call.make.cast(x, call.dtype)
    if is_complex(call.operand(0)):
        return parts
    zeros = call.facts.whole(call.make.constant(np.zeros((), call.dtype)), call.operand(0))
    return call.make.stack([parts, zeros], parts.type.rank)


@primitive("fft")
def transform(call: Call, x: ITensor) -> ITensor:
    """The discrete Fourier transform, its inverse, and those of real numbers, along the last axes."""
    kind, lengths = call.params["fft_type"].name, call.params["fft_lengths"]
    rank = len(call.operand(0).shape)
    axes = list(range(rank - len(lengths), rank))
    inverse = kind.startswith("I")
    if kind == "RFFT":
        x = _transformed(call, call.make.expand_dims(x, [rank]), axes.pop(), False, onesided=True)
    last = axes.pop() if kind == "IRFFT" else None
    for axis in reversed(axes):
        x = _transformed(call, x, axis, inverse)
    if last is None:
        return x
    (length,) = call.lengths(lengths[-1:])
    return call.make.squeeze(_transformed(call, x, last, True, onesided=True, length=length), [rank])


def _transformed(
    call: Call, x: ITensor, axis: int, inverse: bool, *, onesided: bool = False, length: Length | None = None
) -> ITensor:
    layer = call.make.network.add_dft(x, axis, inverse, onesided)
    if length is not None:
        layer.set_input(1, call.make.scalar(call.make.tensor(length)))
    return call.make.made(layer)
