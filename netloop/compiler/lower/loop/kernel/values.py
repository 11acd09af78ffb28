"""Values in a kernel that are not in registers: arrays in memory, of which parts are loaded where they are used.

What is in registers is a block: each axis has the next power of two of its length, as Triton takes no other, or the
lanes of one program. Numbers past the end of an axis are of no meaning; reductions, loads and stores leave them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.compiler.lower.loop.kernel import triton
from netloop.compiler.lower.loop.kernel.jaxpr import Refused

i32 = np.int32
"""The type of positions, which have at most 2^31 numbers before them."""


FIRST = i32(0)
"""The position at which an array begins."""


class BlockAxis(NamedTuple):
    """An axis of a value in a kernel.

    Attributes:
        length: the length of the whole array.
        block: the number of positions in registers.
        begin: the first of these; the program decides it where they are lanes.
        is_whole: whether all positions in registers are positions of the array.
    """

    length: int
    block: int
    begin: Any = 0
    is_whole: bool = True

    def positions(self, block: Sequence[int], axis: int) -> Any:
        """The position of each element of a block along an axis of it."""
        positions = lax.broadcasted_iota(i32, tuple(block), axis)
        return positions + self.begin if not isinstance(self.begin, int) else positions


def inside(axes: Sequence[BlockAxis], numbers: Sequence[int]) -> Any:
    """The mask of the elements of a block that exist along some of its axes; None for all."""
    block, mask = [axis.block for axis in axes], None
    for number in numbers:
        if not axes[number].is_whole:
            exists = axes[number].positions(block, number) < i32(axes[number].length)
            mask = exists if mask is None else mask & exists
    return mask


def both(one: Any, other: Any) -> Any:
    """The elements that are in two masks, of which None has all."""
    return other if one is None else one if other is None else one & other


@dataclass(frozen=True)
class View:
    """An array in memory: where it begins in a flat reference, and the distance of its numbers along each axis."""

    reference: Any
    axes: tuple[BlockAxis, ...]
    strides: tuple[int, ...]
    offset: Any = FIRST

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    def row(self, position: Any, dtype: Any) -> View:
        """The part at a position of the first axis."""
        return View(self.reference, self.axes[1:], self.strides[1:], self.offset + position * i32(self.strides[0]))

    def at(self, starts: Sequence[Any], axes: Sequence[BlockAxis], steps: Sequence[int] | None = None) -> View:
        """The part with other axes that begins at some positions."""
        offset = self.offset
        for start, stride in zip(starts, self.strides, strict=True):
            offset = offset + start * i32(stride)
        strides = [stride * step for stride, step in zip(self.strides, steps or [1] * len(axes), strict=True)]
        return View(self.reference, tuple(axes), tuple(strides), offset)

    def load(self) -> Any:
        return triton.load(self.reference, *self._places())

    def store(self, value: Any) -> None:
        index, mask = self._places()
        triton.store(
            self.reference, index, jnp.broadcast_to(jnp.asarray(value, self.reference.dtype), index.shape), mask
        )

    def _places(self) -> tuple[Any, Any]:
        """The index of each element, and the mask of those that exist."""
        block = [axis.block for axis in self.axes]
        index = jnp.full(tuple(block), self.offset, i32)
        for number, (axis, stride) in enumerate(zip(self.axes, self.strides, strict=True)):
            if axis.length > 1:
                index = index + axis.positions(block, number) * i32(stride)
        return index, inside(self.axes, range(len(self.axes)))


@dataclass(frozen=True)
class Numbers:
    """The numbers 0, 1, 2, ..., such as those of iterations."""

    axis: BlockAxis
    dtype: Any

    def row(self, position: Any, dtype: Any) -> Any:
        return position.astype(dtype)

    def load(self) -> Any:
        return self.axis.positions([self.axis.block], 0).astype(self.dtype)


@dataclass(frozen=True)
class WrittenRows:
    """An array in memory that a WHILE loop only writes, a row in an iteration."""

    view: View

    def load(self) -> Any:
        raise Refused("it reads the rows that it has stacked")


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose numbers lie one after the other."""
    strides, stride = list[int](), 1
    for length in reversed(shape):
        strides.append(stride)
        stride *= length
    return tuple(reversed(strides))
