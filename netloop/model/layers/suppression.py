"""Non-maximum suppression of many boxes, compiled.

The reference compares each selected box with all that are left, in numpy: 0.2 ms a box. A loop compiled by XLA takes
about 10 us a box for 5,000 boxes. Both compute in float64, in the same order.

Boxes of different classes never suppress each other, and neither do boxes that are apart, such as those that a model
has moved by the number of their class. So boxes are divided into groups, and the loop goes through several rows of
groups at once: of 6,000 boxes in 20 groups it compares 300 with 300, twenty times.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.values.types import Array, wide

MOST_PAIRS = 1024
"""The most pairs of boxes and classes of which a program selects with what follows; of more, groups are compared."""

FEWEST = 32
"""The least number of boxes in a row."""


def select(corners: Array, classes: Array, most: int, overlap: float) -> Array:
    """The indices of the boxes that are selected, in ascending order.

    Args:
        corners: the lower and the upper corner of each box, [n, 2, 2], from the highest score down.
        classes: the class of each box, [n].
        most: the largest number of boxes selected of a class.
        overlap: the largest IoU of two boxes selected of a class.
    """
    if not len(corners):
        return np.zeros(0, int)
    groups = groups_of(corners, classes, overlap)
    order = np.argsort(groups, kind="stable")
    row, place = _rows(groups[order])
    shape = rounded(row[-1] + 1, 1), rounded(place.max() + 1, FEWEST)
    wide, numbers = np.zeros((4, *shape)), np.full(shape, -1)
    wide[:, row, place] = corners[order].reshape(-1, 4).T
    numbers[row, place] = groups[order]
    most = min(most, len(corners))
    with jax.enable_x64(True):
        left = np.asarray(_selected(wide, numbers, np.int64(place.max() + 1), np.int64(most), np.float64(overlap)))
    kept = np.sort(order[left[row, place]])
    return kept[ranks_in_class(classes[kept]) < most]


def groups_of(corners: Array, classes: Array, overlap: float) -> Array:
    """The number of the group of each box; boxes of different groups are of different classes or do not overlap."""
    groups = np.zeros(len(classes), int)
    if (classes != classes[0]).any():
        groups = np.unique(classes, return_inverse=True)[1].reshape(-1)
    if overlap >= 0 and np.isfinite(corners).all():
        for axis in (0, 1):
            if np.bincount(groups).max() > FEWEST:
                groups = _split(corners[:, 0, axis], corners[:, 1, axis], groups)
    return groups


def _split(low: Array, high: Array, groups: Array) -> Array:
    """Groups split between intervals that no interval of the group covers."""
    # two stable sorts take less time than one by two keys
    order = np.argsort(low, kind="stable")
    order = order[np.argsort(groups[order], kind="stable")]
    low, by_end, groups = low[order], np.argsort(high), groups[order]
    # the furthest end so far in the same group, as a rank among all ends, to which the group adds more than any rank
    ranks = np.empty(len(high), int)
    ranks[by_end] = np.arange(len(high))
    base = groups * len(low)
    furthest = np.maximum.accumulate(ranks[order] + base)
    is_new = np.ones(len(low), bool)
    is_new[1:] = (groups[1:] != groups[:-1]) | (low[1:] >= high[by_end[furthest[:-1] - base[:-1]]])
    result = np.empty_like(groups)
    result[order] = np.cumsum(is_new) - 1
    return result


def _rows(groups: Array) -> tuple[Array, Array]:
    """The row of each box and its place there, for ascending groups: rows hold whole groups, and as many as fit."""
    ends = np.flatnonzero(np.append(groups[1:] != groups[:-1], True)) + 1
    room = np.diff(ends, prepend=0).max()
    first, rows = 0, [0]
    while first < len(groups):
        first = int(ends[np.searchsorted(ends, first + room, side="right") - 1])
        rows.append(first)
    lengths = np.diff(rows)
    row = np.repeat(np.arange(len(lengths)), lengths)
    return row, np.arange(len(groups)) - np.array(rows)[row]


def rounded(number: int, least: int) -> int:
    """A number rounded up to a power of 2, or one and a half times one, for few compilations."""
    power = 1 << max(0, int(number) - 1).bit_length()
    return max(least, power * 3 // 4 if power >= 4 and number <= power * 3 // 4 else power)


def ranks_in_class(classes: Array) -> Array:
    """How many boxes of the same class precede each."""
    order = np.argsort(classes, kind="stable")
    ordered = classes[order]
    ranks = np.empty(len(classes), int)
    ranks[order] = np.arange(len(classes)) - np.searchsorted(ordered, ordered)
    return ranks


@jax.jit
def _selected(corners: Any, groups: Any, count: Any, most: Any, overlap: Any) -> Any:
    """Whether each box is selected, in rows of groups."""
    low_x, low_y, high_x, high_y = corners
    areas = (high_x - low_x) * (high_y - low_y)
    places = jnp.arange(groups.shape[1])

    def compare(now: Any, left: Any, takes: Any) -> Any:
        """The boxes that are left when some rows select the one at a place."""
        low_a, low_b, high_a, high_b, area, group = (
            lax.dynamic_slice_in_dim(value, now, 1, 1) for value in (low_x, low_y, high_x, high_y, areas, groups)
        )
        width = jnp.minimum(high_a, high_x) - jnp.maximum(low_a, low_x)
        height = jnp.minimum(high_b, high_y) - jnp.maximum(low_b, low_y)
        shared = jnp.maximum(width, 0) * jnp.maximum(height, 0)
        covered = areas + area - shared
        share = jnp.where(covered > 0, shared / covered, 0)
        return left & ((share <= overlap) | (groups != group) | (places <= now) | ~takes)

    def body(now: Any, state: Any) -> Any:
        left, selected = state
        group = lax.dynamic_slice_in_dim(groups, now, 1, 1)
        takes = lax.dynamic_slice_in_dim(left, now, 1, 1) & (selected[group] < most)
        left = lax.dynamic_update_slice_in_dim(left, takes, now, 1)
        left = lax.cond(takes.any(), lambda: compare(now, left, takes), lambda: left)
        return left, selected.at[group].add(takes)

    start = groups >= 0, jnp.zeros(groups.size, jnp.int64)
    return lax.fori_loop(0, count, body, start)[0]


def lower_select(
    corners: Any, scores: Any, rows: int, candidates: int, most: Any, overlap: Any, least: Any
) -> tuple[Any, Any]:
    """The pairs of class and box that are selected, in JAX, from the highest score down, and their number.

    A matrix of all overlaps takes less time only for 64 to 256 boxes of which nearly all are kept, and up to 40 times
    as long for few of 1,000.

    Args:
        corners: the lower and the upper corner of each box, [box, 2, 2], or [box, class, 2, 2].
        scores: [box, class].
        rows: the most pairs that are selected.
        candidates: the number of pairs with the highest scores that are considered.
        most: the largest number of boxes selected of a class.
        overlap: the largest IoU of two boxes selected of a class.
        least: the score that a pair has to exceed.

    Returns:
        Class times the number of boxes plus box of each pair, int32[rows], and how many they are, int32.
    """
    number, classes = scores.shape
    keys, pairs = wide(scores).T.reshape(-1), jnp.arange(scores.size, dtype=np.int32)
    # stable, so that ties are in the order of classes and boxes; no score above another is minus infinity
    keys = jnp.where(keys > jnp.asarray(least).astype(keys.dtype), -keys, jnp.inf)
    keys, pairs = (array[:candidates] for array in lax.sort((keys, pairs), num_keys=1, is_stable=True))
    box, of_class = pairs % number, pairs // number
    # an array for each number: what a loop reads of rows is not contiguous
    wide_corners = corners.astype(np.float64).reshape(*corners.shape[:-2], 4)
    at = (box,) if corners.ndim == 3 else (box, of_class)
    low_x, low_y, high_x, high_y = (wide_corners[..., index][at] for index in range(4))
    areas = (high_x - low_x) * (high_y - low_y)
    places, limit = jnp.arange(candidates, dtype=np.int32), jnp.minimum(most, number)

    def goes_on(state: Any) -> Any:
        now, _, _, _, count = state
        return (now < candidates) & (count < jnp.minimum(rows, limit * classes))

    def body(state: Any) -> Any:
        now, left, selected, result, count = state
        pair, own, low_a, low_b, high_a, high_b, area = (
            lax.dynamic_index_in_dim(array, now, keepdims=False)
            for array in (pairs, of_class, low_x, low_y, high_x, high_y, areas)
        )
        number = lax.dynamic_index_in_dim(selected, own, keepdims=False)
        takes = number < limit
        width = jnp.minimum(high_a, high_x) - jnp.maximum(low_a, low_x)
        height = jnp.minimum(high_b, high_y) - jnp.maximum(low_b, low_y)
        shared = jnp.maximum(width, 0) * jnp.maximum(height, 0)
        covered = areas + area - shared
        share = jnp.where(covered > 0, shared / covered, 0)
        left &= (places > now) & ((share <= overlap) | (of_class != own) | ~takes)
        result = lax.dynamic_update_index_in_dim(result, pair, count, 0)
        selected = lax.dynamic_update_index_in_dim(selected, number + takes, own, 0)
        return jnp.min(jnp.where(left, places, candidates)), left, selected, result, count + takes

    left = keys < jnp.inf
    start = jnp.min(jnp.where(left, places, candidates))
    # a pair that is not taken is overwritten by the next one
    state = start, left, jnp.zeros(classes, np.int32), jnp.zeros(rows, np.int32), jnp.int32(0)
    *_, result, count = lax.while_loop(goes_on, body, state)
    return result, count
