"""Fast implementations of a few layers in numpy, for layers that an engine computes outside of its programs.

The references are loops over elements, which are easy to check and take long.
"""

from collections.abc import Sequence

import numpy as np

from netloop.values.diagnostics import require
from netloop.values.types import HALVES, Array


def take(data: Array, indices: Array, axis: int) -> Array:
    """The slices of an axis at some indices; zeros where an index is out of range."""
    if not data.size:
        return np.zeros(data.shape[:axis] + indices.shape + data.shape[axis + 1 :], data.dtype)
    right, wrong = _within(indices, data.shape[axis])
    result = np.asarray(data.take(right, axis))  # a single element would be no array
    if wrong is not None:
        result[(slice(None),) * axis + (wrong,)] = np.zeros((), data.dtype)
    return result


def take_positions(data: Array, indices: Array) -> Array:
    """The slices at positions, along the last axis of the indices; zeros where one is out of range."""
    depth = indices.shape[-1]
    if not data.size:
        return np.zeros(indices.shape[:-1] + data.shape[depth:], data.dtype)
    values = [_within(indices[..., axis], data.shape[axis]) for axis in range(depth)]
    places = tuple(right for right, _ in values)
    result = np.asarray(data[places]) if depth else np.broadcast_to(data, indices.shape[:-1] + data.shape)
    for _, wrong in values:
        if wrong is not None:
            result[wrong] = np.zeros((), data.dtype)
    return result


def _within(indices: Array, length: int) -> tuple[Array, Array | None]:
    """Indices with 0 instead of those out of range, and which these are; None if there are none."""
    if not indices.size or (-length <= indices.min() and indices.max() < length):
        return indices, None
    wrong = (indices < -length) | (indices >= length)
    return np.where(wrong, 0, indices), wrong


def first_indices(rows: Array, count: int, descending: bool) -> Array:
    """The indices of the first elements of each row in order; NaN precede all, and equal elements keep their order."""
    keys: Array = rows.astype(np.float32) if rows.dtype in HALVES else rows
    if descending:
        keys = np.invert(keys) if keys.dtype.kind in "iu" else -keys
    nan = keys != keys
    if nan.any():
        return np.lexsort((keys, ~nan), axis=-1)[..., :count]
    if keys.ndim == 1 and 0 < 4 * count < len(keys):
        # those after the last one need not be in order
        near = np.flatnonzero(keys <= np.partition(keys, count - 1)[count - 1])
        return near[keys[near].argsort(kind="stable")[:count]]
    return keys.argsort(axis=-1, kind="stable")[..., :count]


def total_order_keys(x: Array) -> Array:
    """Integers in the order that IEEE 754's totalOrder gives floating-point numbers; integers stay as they are."""
    if x.dtype.kind in "iu":
        return x
    bits = x.view(f"i{x.dtype.itemsize}")
    # those of negative numbers are larger the lower the number is
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def read_slice(x: Array, starts: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """A strided slice along all axes.

    Raises:
        LayerError: a position is outside of the array.
    """
    if 0 in sizes:
        return np.zeros(sizes, x.dtype)
    for axis, (start, size, stride) in enumerate(zip(starts, sizes, strides, strict=True)):
        last = start + (size - 1) * stride
        require(0 <= start < x.shape[axis] and 0 <= last < x.shape[axis], f"axis {axis} has no position {last}", "")
        if stride > 0:
            x = x[(slice(None),) * axis + (slice(start, last + 1, stride),)]
        else:
            x = x.take(start + stride * np.arange(size), axis)
    return x
