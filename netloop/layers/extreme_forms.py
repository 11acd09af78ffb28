"""Maxima and minima in forms that XLA's CPU computes right and fast; docs/decisions/0037 has the measurements."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.layers.lax_forms import on_cpus

LOSES_NAN = 4096
"""The least size of float32 arrays of which XLA's CPU, from jax 0.10 on, gives extremes without regard to NaN."""
HAS_FAST_REDUCTIONS = jax.__version_info__ >= (0, 10)
"""Whether XLA's CPU reduces this many elements by vector instructions."""
WINDOW = 32
"""The length of a window; of longer axes XLA's CPU reduces windows first, by a slow loop if they are few."""
LEAST_FOLDED = 16


def extremes(x: jax.Array, axes: Sequence[int], is_max: bool, keepdims: bool = False) -> jax.Array:
    """The maxima or minima over axes, of which none is empty. NaN wins."""
    axes = sorted(axis % x.ndim for axis in axes)
    plain: Callable[[jax.Array], jax.Array] = partial(jnp.max if is_max else jnp.min, axis=axes, keepdims=keepdims)
    if not (_loses_nan(x) or _is_slow(x, axes)):
        return plain(x)
    return on_cpus(x, lambda each: plain(_folded(each, axes, is_max)), plain)


def highest_of_rows(x: jax.Array) -> jax.Array:
    """The maxima along the last axis, which is kept; of a row with NaN, any number or NaN, and of an empty row -inf."""
    if x.size and (_is_slow(x, [x.ndim - 1]) or not HAS_FAST_REDUCTIONS):
        return extremes(x, [-1], is_max=True, keepdims=True)
    return jnp.max(x, -1, keepdims=True, initial=-jnp.inf)


def extremes_of_blocks(x: jax.Array, blocks: Sequence[int], is_max: bool) -> jax.Array:
    """The extremes of blocks of the given lengths, of which ``x`` has whole numbers along its axes. NaN wins."""
    cut = [each for length, block in zip(x.shape, blocks, strict=True) for each in (length // block, block)]
    return extremes(x.reshape(cut), range(1, 2 * x.ndim, 2), is_max)


def _loses_nan(x: jax.Array) -> bool:
    return x.dtype == np.float32 and x.size >= LOSES_NAN


def _is_slow(x: jax.Array, axes: Sequence[int]) -> bool:
    """Whether XLA's CPU reduces few windows of a row."""
    is_last = list(axes) == [x.ndim - 1]
    return is_last and x.dtype.name in ("float32", "int32") and x.size <= LOSES_NAN and x.shape[-1] > WINDOW


def _folded(x: jax.Array, axes: Sequence[int], is_max: bool) -> jax.Array:
    """The element-wise extremes of the halves of axes, over and over, until few elements are left."""
    combine = lax.max if is_max else lax.min
    for axis in axes:
        while x.shape[axis] > 1 and (_loses_nan(x) or (axis == x.ndim - 1 and x.shape[axis] > LEAST_FOLDED)):
            x = combine(*_halves(x, axis))
    return x


def _halves(x: Any, axis: int) -> tuple[jax.Array, jax.Array]:
    """The two halves of an axis, which overlap if its length is odd."""
    length = x.shape[axis]
    half = (length + 1) // 2
    return lax.slice_in_dim(x, 0, half, axis=axis), lax.slice_in_dim(x, length - half, length, axis=axis)
