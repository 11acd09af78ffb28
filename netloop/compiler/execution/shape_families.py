"""Families of input shapes: the sets of shapes of calls that differ along a few axes only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from netloop.compiler.host.frame import bucket
from netloop.values.types import UNKNOWN, Shape

LARGEST_GROWTH = 2.0
"""The size of padded inputs, relative to exact ones, up to which lengths are rounded up to powers of 2."""

Shapes = tuple[Shape, ...]
"""The shapes of the inputs of a call, in order."""

InputAxis = tuple[int, int]
"""An axis of an input: the positions of both."""


class ShapeFamily(NamedTuple):
    """Sets of input shapes that differ along some axes only.

    Attributes:
        shapes: the shapes, with -1 for each length that differs.
        groups: the axes whose lengths differ, grouped by those that grow together, such as that of a cache and of its
            mask; each with its distance from the shortest one.
    """

    shapes: Shapes
    groups: tuple[tuple[tuple[InputAxis, int], ...], ...]

    @staticmethod
    def of(sets: Sequence[Shapes]) -> ShapeFamily:
        """The family of some sets of shapes of equal ranks."""
        first = sets[0]
        axes = [(at, axis) for at, shape in enumerate(first) for axis in range(len(shape))]
        lengths = {(at, axis): [shapes[at][axis] for shapes in sets] for at, axis in axes}
        differ = [key for key, own in lengths.items() if len({*own}) > 1]

        def growth(key: InputAxis) -> list[int]:
            return [length - lengths[key][0] for length in lengths[key]]

        grouped = [[*own] for _, own in groupby(sorted(differ, key=growth), key=growth)]
        groups = (
            tuple((key, lengths[key][0] - min(lengths[other][0] for other in own)) for key in own) for own in grouped
        )
        shapes = (
            tuple(UNKNOWN if (at, axis) in differ else length for axis, length in enumerate(shape))
            for at, shape in enumerate(first)
        )
        return ShapeFamily(tuple(shapes), tuple(groups))

    def has(self, shapes: Shapes) -> bool:
        """Whether a set of shapes belongs to the family."""
        return agree(self.shapes, shapes) and all(
            len({shapes[at][axis] - distance for (at, axis), distance in group}) == 1 for group in self.groups
        )

    def numbers(self, shapes: Shapes) -> Shape:
        """The shortest length of each group in one of its sets of shapes."""
        return tuple(shapes[at][axis] - distance for ((at, axis), distance), *_ in self.groups)

    def longer(self, shapes: Shapes, group: int, by: int) -> Shapes:
        """One of its sets of shapes, with the lengths of a group longer by a number."""
        axes = {key for key, _ in self.groups[group]}
        return tuple(
            tuple(length + by * ((at, axis) in axes) for axis, length in enumerate(shape))
            for at, shape in enumerate(shapes)
        )

    @property
    def open_count(self) -> int:
        """The number of axes along which its sets differ."""
        return sum(map(len, self.groups))

    def is_shared(self, shapes: Shapes) -> bool:
        """Whether other sets have the padded shapes of one of its sets: a length of 0 or 1 has no padding."""
        return any(number > 1 for number in self.numbers(shapes))

    def padded(self, shapes: Shapes) -> Shapes:
        """The padded shapes of one of its sets: lengths that grow together keep their distances."""
        powers = self._rounded(shapes, _power)
        return powers if self._size(powers) <= LARGEST_GROWTH * self._size(shapes) else self._rounded(shapes, bucket)

    def _rounded(self, shapes: Shapes, rounding: Callable[[int], int]) -> Shapes:
        result = [[*shape] for shape in shapes]
        for group in self.groups:
            (at, axis), distance = group[0]
            shortest = shapes[at][axis] - distance
            for (at, axis), _ in group:
                result[at][axis] += rounding(shortest) - shortest
        return tuple(map(tuple, result))

    def _size(self, shapes: Shapes) -> int:
        """The number of elements of the inputs whose lengths differ."""
        return sum(math.prod(shape) for own, shape in zip(self.shapes, shapes, strict=True) if UNKNOWN in own)


def agree(open_shapes: Shapes, shapes: Shapes) -> bool:
    """Whether some shapes have the known lengths of others."""
    pairs = zip(open_shapes, shapes, strict=True)
    return all(a in (UNKNOWN, b) for own, shape in pairs for a, b in zip(own, shape, strict=True))


def _power(length: int) -> int:
    """A length rounded up to a power of 2, from 8 on; lengths of 0 and 1 stay as they are."""
    return length if length < 2 else max(8, 1 << (length - 1).bit_length())
