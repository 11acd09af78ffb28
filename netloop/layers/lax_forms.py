"""Functions of ``jnp`` by ``lax``: traced several times as fast, and not as calls in the traced program."""

from collections.abc import Callable
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
    of_each = lax.select(lax.ne(a, a), b, b)  # vmap gives it the axes of ``a``; XLA simplifies it to ``b``
    return lax.div(a, lax.optimization_barrier(of_each))


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands of JAX with one element type and shape."""
    if not (isinstance(a, jax.Array) and isinstance(b, jax.Array) and a.dtype == b.dtype):
        a, b = jnp.asarray(a), jnp.asarray(b)
        dtype = jnp.result_type(a, b)
        a, b = a.astype(dtype), b.astype(dtype)
    shape = np.broadcast_shapes(a.shape, b.shape)
    return jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape)


def maximum(xp: Any, a: Any, b: Any) -> Any:
    """The maximum of an array and a number; ``jnp`` takes five times as long to trace."""
    return xp.maximum(a, b) if xp is np else lax.max(*_both_arrays(a, b))


def minimum(xp: Any, a: Any, b: Any) -> Any:
    """The minimum of an array and a number."""
    return xp.minimum(a, b) if xp is np else lax.min(*_both_arrays(a, b))


def _both_arrays(a: Any, b: Any) -> tuple[Any, Any]:
    if isinstance(a, float | int):
        return lax.full_like(b, a), b
    return a, lax.full_like(a, b)


def rounded(xp: Any, x: Any) -> Any:
    """Whole numbers, ties to even."""
    is_jax = xp is jnp and jnp.issubdtype(x.dtype, jnp.floating)
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN) if is_jax else xp.round(x)


def on_cpus(x: jax.Array, fast: Callable[[Any], Any], plain: Callable[[Any], Any]) -> Any:
    """``plain(x)``, on CPUs as ``fast(x)``, whose results are the same; the derivatives are those of ``plain``."""

    @jax.custom_jvp
    def chosen(x: Any) -> Any:
        return lax.platform_dependent(x, cpu=fast, default=plain)

    chosen.defjvp(lambda at, along: (chosen(*at), jax.jvp(plain, at, along)[1]))
    return chosen(x)
