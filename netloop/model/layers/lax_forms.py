"""Functions of ``jnp`` by ``lax``: traced several times as fast, and not as calls in the traced program."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def quotient(xp: Any, a: Any, b: Any) -> Any:
    """``a / b``, rounded once: XLA multiplies by the reciprocal of a divisor that is constant or broadcast, which
    misses integers and ties.
    """
    if xp is np:
        return a / b
    a, b = _alike(a, b)
    if a.dtype != np.float32:
        return _divided((a, b))
    return on_platforms((a, b), {"cuda": _divided_in_float64}, _divided)


def _divided(pair: tuple[jax.Array, jax.Array]) -> jax.Array:
    a, b = pair
    of_each = lax.select(lax.ne(a, a), b, b)  # vmap gives it the axes of ``a``; XLA simplifies it to ``b``
    return lax.div(a, lax.optimization_barrier(of_each))


def _divided_in_float64(pair: tuple[jax.Array, jax.Array]) -> jax.Array:
    """The quotient of float32 on NVIDIA GPUs, where XLA's is off by up to two ulps (``div.full.f32``).

    In float64 it is off by so little that it is rounded to the float32 nearest to the true quotient. It is a product by
    the reciprocal, since LLVM would make a division of widened numbers one of float32 again.
    """
    with jax.enable_x64(True):
        a, b = (lax.convert_element_type(x, np.float64) for x in pair)
        return lax.convert_element_type(lax.mul(a, lax.div(lax.full_like(b, 1), b)), np.float32)


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands of JAX with one element type and shape."""
    if not (isinstance(a, jax.Array) and isinstance(b, jax.Array) and a.dtype == b.dtype):
        a, b = jnp.asarray(a), jnp.asarray(b)
        dtype = jnp.result_type(a, b)
        a, b = a.astype(dtype), b.astype(dtype)
    shape = np.broadcast_shapes(a.shape, b.shape)
    return jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape)


def sigmoid(xp: Any, x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return jax.nn.sigmoid(x) if xp is jnp else 1 / (1 + np.exp(-x))


def maximum(xp: Any, a: Any, b: Any) -> Any:
    """The larger elements of two arrays, or of an array and a number. NaN wins."""
    return xp.maximum(a, b) if xp is np else _extreme(a, b, is_max=True)


def minimum(xp: Any, a: Any, b: Any) -> Any:
    """The smaller elements of two arrays, or of an array and a number. NaN wins."""
    return xp.minimum(a, b) if xp is np else _extreme(a, b, is_max=False)


def _extreme(a: Any, b: Any, is_max: bool) -> Any:
    if isinstance(a, float | int):
        a, b = b, a
    if isinstance(b, float | int):
        return _extreme_of_number(a, b, is_max)
    return _extreme_of_arrays(*_alike(a, b), is_max)


# XLA's CPU gives an extreme that is summed to a library, whose instruction returns the second operand if one is NaN


@partial(jax.jit, static_argnames=("number", "is_max"), inline=True)  # traced once for each type
def _extreme_of_number(x: Any, number: float, is_max: bool) -> Any:
    """The extremes of elements and a number; on CPUs the number is the first operand, as no NaN may be."""

    def plain(x: Any) -> Any:
        return (lax.max if is_max else lax.min)(x, lax.full_like(x, number))

    def number_first(x: Any) -> Any:
        # the library makes one clamp of a minimum of a maximum, which loses NaN, so that both are maxima
        return _highest_of_hidden(number, x) if is_max else lax.neg(_highest_of_hidden(-number, lax.neg(x)))

    # elsewhere a barrier would keep XLA from fusing an activation with the product before it
    is_float = jnp.issubdtype(x.dtype, jnp.floating)
    return lax.platform_dependent(x, cpu=number_first, default=plain) if is_float else plain(x)


def _highest_of_hidden(number: float, x: Any) -> Any:
    """The maxima of elements and a number, which XLA cannot make the second operand, as it does with constants."""
    hidden = lax.optimization_barrier(lax.full((), number, x.dtype))
    return lax.max(lax.broadcast(hidden, x.shape), x)


@partial(jax.jit, static_argnames="is_max", inline=True)
def _extreme_of_arrays(a: jax.Array, b: jax.Array, is_max: bool) -> jax.Array:
    """The extremes of pairs of elements; on CPUs a selection, which the library does not compute."""
    combine = lax.max if is_max else lax.min
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return combine(a, b)
    return on_cpus((a, b), lambda pair: selected_extreme(pair[0], pair[1], is_max), lambda pair: combine(*pair))


def selected_extreme(a: Any, b: Any, is_max: bool) -> Any:
    """The extremes of pairs of elements, as a selection. NaN wins."""
    return lax.select(lax.bitwise_or(lax.gt(a, b) if is_max else lax.lt(a, b), lax.ne(a, a)), a, b)


def rounded(xp: Any, x: Any) -> Any:
    """Whole numbers, ties to even."""
    is_jax = xp is jnp and jnp.issubdtype(x.dtype, jnp.floating)
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN) if is_jax else xp.round(x)


def on_cpus(x: Any, fast: Callable[[Any], Any], plain: Callable[[Any], Any]) -> Any:
    """``plain(x)`` of an array or several, on CPUs as ``fast(x)``; the derivatives are those of ``plain``."""
    return on_platforms(x, {"cpu": fast}, plain)


def on_platforms(x: Any, forms: Mapping[str, Callable[[Any], Any]], plain: Callable[[Any], Any]) -> Any:
    """``plain(x)`` of an array or several, on some platforms in other forms; the derivatives are those of ``plain``."""

    @jax.custom_jvp
    def chosen(x: Any) -> Any:
        return lax.platform_dependent(x, **forms, default=plain)

    chosen.defjvp(lambda at, along: (chosen(*at), jax.jvp(plain, at, along)[1]))
    return chosen(x)
