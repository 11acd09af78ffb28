"""Positions of windows, which gathers, scatters and dynamic slices share.

An axis of the operand is *indexed* where a window covers only a part of it, *whole* elsewhere. An indexed axis is
*partial* if it stays an axis of the window. A position has a coordinate for each indexed axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from netloop.formats.from_jax.call import EquationCall
from netloop.formats.from_jax.patterns import without_last_axis
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ReduceOperation


@dataclass(frozen=True)
class Windows:
    """The windows of a gather or scatter.

    Attributes:
        shape: the shape of the operand, as JAX has it.
        sizes: the size of a window along each axis of the operand.
        starts: the axis of the operand for each coordinate of the start of a window.
        batches: for each batch axis of the operand, the axis of the indices that it goes along with.
        dropped: the axes of the operand that are no axes of the window.
        written: whether they are written, which needs an indexed axis.
    """

    shape: tuple[Any, ...]
    sizes: tuple[Any, ...]
    starts: tuple[int, ...]
    batches: dict[int, int]
    dropped: frozenset[int]
    written: bool = False

    @staticmethod
    def of_gather(call: EquationCall, numbers: Any, sizes: Sequence[Any]) -> Windows:
        """The windows that a gather reads."""
        batches = dict(
            zip(_ints(numbers.operand_batching_dims), _ints(numbers.start_indices_batching_dims), strict=True)
        )
        dropped = frozenset(_ints(numbers.collapsed_slice_dims)) | set(batches)
        return Windows(call.operand(0).shape, tuple(sizes), _ints(numbers.start_index_map), batches, dropped)

    @staticmethod
    def of_scatter(call: EquationCall, numbers: Any, updates: ITensor) -> Windows:
        """The windows that a scatter writes."""
        batches = dict(
            zip(_ints(numbers.operand_batching_dims), _ints(numbers.scatter_indices_batching_dims), strict=True)
        )
        dropped = frozenset(_ints(numbers.inserted_window_dims)) | set(batches)
        shape, lengths = call.operand(0).shape, call.operand(2).shape
        inside = iter(_ints(numbers.update_window_dims))
        sizes = tuple(1 if axis in dropped else lengths[next(inside)] for axis in range(len(shape)))
        return Windows(shape, sizes, _ints(numbers.scatter_dims_to_operand_dims), batches, dropped, True)

    @property
    def rank(self) -> int:
        """The number of axes of the operand."""
        return len(self.shape)

    @property
    def kept(self) -> list[int]:
        """The axes of the operand that are axes of the window."""
        return [axis for axis in range(self.rank) if axis not in self.dropped]

    @property
    def indexed(self) -> list[int]:
        """The axes of the operand that a position has a coordinate for."""
        numbers = [
            axis for axis in range(self.rank) if axis in self.dropped or not _same(self.sizes[axis], self.shape[axis])
        ]
        return numbers or ([0] if self.written else [])

    @property
    def partial(self) -> list[int]:
        """The indexed axes that are axes of the window."""
        return [axis for axis in self.indexed if axis not in self.dropped]


class Indices:
    """The positions of the elements of windows.

    Attributes:
        windows: the windows.
        starts: the starts of the windows, [batch.., coordinate], within bounds.
        valid: whether each window was within bounds before, [batch..]; None if all are.
        batch: the number of batch axes.
    """

    def __init__(self, call: EquationCall, windows: Windows, starts: ITensor, checks: bool) -> None:
        self._call = call
        self._make = call.make
        self.windows = windows
        self.starts = starts if starts.type.is_index else self._make.cast(starts, np.int64)
        self.batch = starts.type.rank - 1
        self.valid: ITensor | None = None
        if checks and windows.starts:
            self._clip()

    def _clip(self) -> None:
        make, windows = self._make, self.windows
        range_ = self._call.facts.range_of(self.starts)
        spans = [_difference(self._call, windows.shape[axis], windows.sizes[axis]) for axis in windows.starts]
        if range_ is not None and range_[0] >= 0 and all(isinstance(span, int) and range_[1] <= span for span in spans):
            return
        last = make.cast(make.list_tensor(spans), self.starts.type.dtype)
        clipped = make.minimum(make.maximum(self.starts, 0), last)
        moved, value = make.known(clipped), make.known(self.starts)
        if moved is not None and value is not None and np.array_equal(moved, value):
            return
        same = make.equal(clipped, self.starts)
        self.valid = (
            make.squeeze(same, [self.batch])
            if len(spans) == 1
            else make.reduce(ReduceOperation.MIN, same, [self.batch])
        )
        self.starts = clipped

    @property
    def is_single(self) -> bool:
        """Whether there is one window."""
        return all(length == 1 for length in self.starts.type.shape[:-1])

    def along(self, axis: int) -> ITensor:
        """The coordinates of an indexed axis, [batch.., partial window axes..].

        Lengths of 1 are broadcast only where layers of one coordinate read them.
        """
        make, windows = self._make, self.windows
        partial = windows.partial
        result: ITensor | None = None
        if axis in windows.starts and not _same(windows.sizes[axis], windows.shape[axis]):
            number = windows.starts.index(axis)
            one = self.starts if len(windows.starts) == 1 else make.slice(self.starts, [number], [1], axes=[self.batch])
            result = without_last_axis(make, one)
            result = make.expand_dims(result, range(self.batch, self.batch + len(partial)))
        if axis in windows.batches:
            result = self._count(windows.batches[axis], make.length(self.starts, windows.batches[axis]))
        if axis in partial and windows.sizes[axis] != 1:
            inside = self._count(self.batch + partial.index(axis), self._call.lengths([windows.sizes[axis]])[0])
            result = inside if result is None else make.add(result, inside)
        if result is None:
            result = make.constant(np.zeros((1,) * (self.batch + len(partial)), self.starts.type.dtype))
        return self._broadcast(result) if len(windows.indexed) == 1 or self.element_axis() == axis else result

    def _count(self, axis: int, length: Length) -> ITensor:
        """The numbers from 0 along an axis."""
        numbers = self._make.cast(self._make.arange(length), self.starts.type.dtype)
        rank = self.batch + len(self.windows.partial)
        return self._make.expand_dims(numbers, [index for index in range(rank) if index != axis])

    def _lengths(self) -> list[Length]:
        batch = [self._make.length(self.starts, axis) for axis in range(self.batch)]
        return [*batch, *self._call.lengths([self.windows.sizes[axis] for axis in self.windows.partial])]

    def _broadcast(self, x: ITensor) -> ITensor:
        wanted = self._lengths()
        return self._call.facts.broadcast(x, wanted)

    def element_axis(self) -> int | None:
        """The axis along which a position has a coordinate of its own, where all others are those of the index."""
        windows = self.windows
        if len(windows.starts) != 1 or windows.partial or self.batch != windows.rank:
            return None
        (axis,) = windows.starts
        same = all(windows.batches.get(index) == index for index in range(windows.rank) if index != axis)
        return axis if same and len(windows.batches) == windows.rank - 1 else None

    def positions(self) -> ITensor:
        """The coordinates of all elements, [batch.., partial window axes.., coordinate]."""
        return self._positions

    @cached_property
    def _positions(self) -> ITensor:
        make, windows = self._make, self.windows
        if list(windows.starts) == windows.indexed and all(windows.sizes[axis] == 1 for axis in windows.indexed):
            return make.expand_dims(self.starts, range(self.batch, self.batch + len(windows.partial)))
        if not windows.indexed:
            return make.constant(np.zeros((1,) * self.batch + (0,), np.int64))
        parts = [self._broadcast(self.along(axis)) for axis in windows.indexed]
        return make.stack(parts, parts[0].type.rank)


def _difference(call: EquationCall, a: Any, b: Any) -> Length:
    first, second = call.lengths([a, b])
    if isinstance(first, int) and isinstance(second, int):
        return first - second
    return call.make.sub(first, second)


def differs(a: Any, b: Any) -> bool:
    """Whether two lengths, which may be symbolic, are not known to be equal."""
    return a is not b and not bool(a == b)


def _same(a: Any, b: Any) -> bool:
    return not differs(a, b)


def _ints(axes: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(axis) for axis in axes)
