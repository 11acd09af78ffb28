"""Maxima and minima in forms that XLA's CPU computes right and fast; docs/decisions/0037 has the measurements."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.layers.lax_forms import on_cpus, selected_extreme
from netloop.values.types import HALVES

FOLDED = frozenset({"float32", "float64", "float16", "bfloat16", "int32", "int8", "uint8"})
"""The element types whose extremes are folded on CPUs.

From jax 0.10 on, XLA's reductions of 4,096 and more floats of these types ignore NaN, and vmap makes large arrays of
small ones. Maxima of half types ignore it only if its sign is set, as in what x86 makes of inf - inf. Reductions of
int32 are slow. Those of 8 bits are computed together with arithmetic before them, which then does not wrap.
"""

HAS_FAST_REDUCTIONS = jax.__version_info__ >= (0, 10)
"""Whether XLA's CPU reduces large arrays by vector instructions."""
MOST_SMALL, WINDOW = 4096, 32
"""The most elements of an array, and the longest axis of it, that XLA's CPU reduces by a slow loop over windows, and
at once."""


def extremes(x: jax.Array, axes: Sequence[int], is_max: bool, keepdims: bool = False) -> jax.Array:
    """The maxima or minima over axes, none of them empty. NaN wins."""
    axes = sorted(axis % x.ndim for axis in axes)
    plain: Callable[[jax.Array], jax.Array] = partial(jnp.max if is_max else jnp.min, axis=axes, keepdims=keepdims)
    if x.dtype.name not in FOLDED:
        return plain(x)
    return on_cpus(x, partial(_folded_wide, axes=axes, is_max=is_max, keepdims=keepdims), plain)


def highest_along(x: jax.Array, axis: int) -> jax.Array:
    """The maxima along an axis, which is kept; -inf if it is empty. With NaN, the maximum may be that of the others."""
    is_small = axis == x.ndim - 1 and x.size <= MOST_SMALL and x.shape[axis] > WINDOW
    if x.shape[axis] and (is_small or not HAS_FAST_REDUCTIONS):
        return extremes(x, [axis], is_max=True, keepdims=True)
    return jnp.max(x, axis, keepdims=True, initial=-jnp.inf)


def extremes_of_blocks(x: jax.Array, blocks: Sequence[int], read: Sequence[int], is_max: bool) -> jax.Array:
    """The extremes of blocks, of which ``x`` has whole numbers along its axes. NaN wins.

    ``blocks`` are the lengths of a block; only its first ``read`` elements are read, at least one along each axis.
    """
    cut = [number for length, block in zip(x.shape, blocks, strict=True) for number in (length // block, block)]
    x = x.reshape(cut)
    for axis, count in enumerate(read):
        x = lax.slice_in_dim(x, 0, count, axis=2 * axis + 1)
    return extremes(x, range(1, x.ndim, 2), is_max)


def _folded_wide(x: jax.Array, axes: Sequence[int], is_max: bool, keepdims: bool) -> jax.Array:
    """``_folded``, of half types in float32: up to four times as fast as with a conversion in each step."""
    wide = x.astype(np.float32) if x.dtype in HALVES else x
    return _folded(wide, axes, is_max, keepdims).astype(x.dtype)


def _folded(x: jax.Array, axes: Sequence[int], is_max: bool, keepdims: bool) -> jax.Array:
    """The element-wise extremes of the halves of axes, over and over, until one element is left."""
    combine = lax.max if is_max else lax.min
    halvings = [axis for axis in axes for _ in range((x.shape[axis] - 1).bit_length())]
    for axis in halvings[:-1]:
        x = combine(*_halves(x, axis))
    for axis in halvings[-1:]:  # XLA drops NaN from an extreme that is summed; a selection is a fifth slower
        x = selected_extreme(*_halves(x, axis), is_max)
    return x if keepdims else lax.squeeze(x, axes)


def _halves(x: Any, axis: int) -> tuple[jax.Array, jax.Array]:
    """The two halves of an axis, which overlap if its length is odd."""
    length = x.shape[axis]
    half = (length + 1) // 2
    return lax.slice_in_dim(x, 0, half, axis=axis), lax.slice_in_dim(x, length - half, length, axis=axis)
