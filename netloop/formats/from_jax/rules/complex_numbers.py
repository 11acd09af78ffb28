"""Functions of complex numbers that are several of their parts: order, convolutions, indices, and roots."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from netloop.formats.from_jax.call import Call
from netloop.formats.from_jax.element_types import is_complex
from netloop.formats.from_jax.rule_table import complex_primitive
from netloop.formats.from_jax.rules.fourier import on_parts
from netloop.model.graph.tensor import ITensor


def _joined(real: Any, imaginary: Any) -> Any:
    return jnp.stack([real, imaginary], -1)


@complex_primitive("sort")
def sort(call: Call, *operands: ITensor) -> list[ITensor]:
    """Operands in the order of the real parts of the first ones, and of the imaginary parts where those are equal."""
    have_parts = [is_complex(result) for result in call.results]
    keys = call.params["num_keys"]

    def ordered(*arrays: Any) -> list[Any]:
        flat = [
            part
            for array, has_parts in zip(arrays, have_parts, strict=True)
            for part in ((array[..., 0], array[..., 1]) if has_parts else (array,))
        ]
        count = keys + sum(have_parts[:keys])
        result = iter(lax.sort(flat, dimension=call.params["dimension"], is_stable=True, num_keys=count))
        return [_joined(next(result), next(result)) if has_parts else next(result) for has_parts in have_parts]

    return call.define(ordered, *operands)


@complex_primitive("scatter", "scatter-add")
def written(call: Call, *operands: ITensor) -> list[ITensor]:
    """An array with other elements, or with some added to its own, at places."""
    params = call.params
    write = lax.scatter if call.equation.primitive.name == "scatter" else lax.scatter_add
    names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")

    def of_parts(x: Any, indices: Any, updates: Any) -> Any:
        values = {name: params[name] for name in names}
        return _joined(*(write(x[..., part], indices, updates[..., part], **values) for part in range(2)))

    return call.define(of_parts, *operands)


@on_parts("conv_general_dilated")
def _convolution(a: Any, b: Any, c: Any, d: Any, **params: Any) -> Any:
    def product(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated_p.bind(x, y, **(params | {"preferred_element_type": None}))

    return product(a, c) - product(b, d), product(a, d) + product(b, c)


@on_parts("cumsum")
def _running_sum(a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    return lax.cumsum(a, axis, reverse), lax.cumsum(b, axis, reverse)


# ---------------------------------------------------------------------- functions of each number


def _size(a: Any, b: Any) -> Any:
    largest = lax.max(abs(a), abs(b))
    unit = jnp.where(largest == 0, 1, largest)
    return unit * jnp.sqrt((a / unit) ** 2 + (b / unit) ** 2)


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


@on_parts("sin")
def _sine(a: Any, b: Any, **_: Any) -> Any:
    return jnp.sin(a) * jnp.cosh(b), jnp.cos(a) * jnp.sinh(b)


@on_parts("cos")
def _cosine(a: Any, b: Any, **_: Any) -> Any:
    return jnp.cos(a) * jnp.cosh(b), -jnp.sin(a) * jnp.sinh(b)
