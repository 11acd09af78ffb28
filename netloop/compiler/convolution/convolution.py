"""A convolution, and what is computed from its sums element by element, as data of which kernels are made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from netloop.values.types import UNKNOWN, Array

SUM, NUMBER, ROW, WHOLE = "convolution", "number", "row", "whole"
"""The kinds of values that are not computed: the sum over a window, and what is read from an array of one number, of
one for each map, or of the shape of the output."""


class OutputValue(NamedTuple):
    """A value that is computed for an element of the output.

    Attributes:
        kind: the function that computes it, or a kind of this module.
        of: the values that it is computed from; the number of the array that it is read from.
        numbers: the parameters of the function.
    """

    kind: str
    of: tuple[int, ...]
    numbers: tuple[float, ...] = ()


class WindowRun(NamedTuple):
    """Neighbouring windows with the same elements outside of the padding.

    Attributes:
        positions: the windows.
        inside: these elements.
    """

    positions: range
    inside: range


@dataclass(frozen=True)
class WindowAxis:
    """An axis along which windows move.

    Attributes:
        length: the length of the input.
        size, step, spread: the size, the stride and the dilation of the windows.
        before, after: the padding before and after the input.
    """

    length: int
    size: int
    step: int
    spread: int
    before: int
    after: int

    @cached_property
    def count(self) -> int:
        """The number of windows; UNKNOWN of an unknown length."""
        if self.length == UNKNOWN:
            return UNKNOWN
        return (self.length + self.before + self.after - (self.size - 1) * self.spread - 1) // self.step + 1

    def inside(self, position: int) -> range:
        """The elements of a window that are not in the padding."""
        start = position * self.step - self.before
        return range(max(0, -(start // self.spread)), min(self.size, -((start - self.length) // self.spread)))

    @cached_property
    def whole(self) -> range:
        """The windows without padding."""
        first = min(self.count, max(0, -(-self.before // self.step)))
        last = (self.length + self.before - (self.size - 1) * self.spread - 1) // self.step
        return range(first, max(first, min(self.count, last + 1)))

    @cached_property
    def runs(self) -> tuple[WindowRun, ...]:
        """All windows: those without padding, and runs of others that have the same elements in the padding."""
        edges = *range(self.whole.start), *range(self.whole.stop, self.count)
        others = [(inside, [*positions]) for inside, positions in groupby(edges, self.inside)]
        runs = [WindowRun(range(positions[0], positions[-1] + 1), inside) for inside, positions in others]
        return *runs, *([WindowRun(self.whole, range(self.size))] if self.whole else [])

    def reads(self, element: int) -> tuple[slice, slice]:
        """The windows of which an element is not in the padding, and what it reads in them."""
        first = element * self.spread - self.before
        start = max(0, -(first // self.step))
        stop = max(start, min(self.count, (self.length - 1 - first) // self.step + 1))
        return slice(start, stop), slice(first + start * self.step, first + stop * self.step, self.step)

    @property
    def is_plain(self) -> bool:
        """Whether each window is one element of the input, in the same order."""
        return self.size == self.step == 1 and self.before == self.after == 0

    @property
    def never_misses(self) -> bool:
        """Whether each window has an element that is not in the padding, of an unknown length whatever it is."""
        if self.length == UNKNOWN:
            return self.spread == 1 and max(self.before, self.after) < self.size
        return all(run.inside for run in self.runs)


@dataclass(frozen=True)
class Convolution:
    """A convolution of x [batch, rows, columns, channels] to [batch, rows, columns, maps].

    Attributes:
        batch, channels, maps: the lengths of the axes that windows do not move along.
        rows, columns: the axes along which they do.
        groups: the number of groups of neighbouring channels, which as many neighbouring maps read.
        values: what is computed for an element of the output, in running order; the last one is the element.
        arrays: the kinds of the arrays that the values read.
    """

    batch: int
    channels: int
    maps: int
    rows: WindowAxis
    columns: WindowAxis
    groups: int
    values: tuple[OutputValue, ...]
    arrays: tuple[str, ...]

    def of_lengths(self, batch: int, rows: int, columns: int) -> Convolution:
        """The same of an input of other lengths."""
        axes = {"rows": replace(self.rows, length=rows), "columns": replace(self.columns, length=columns)}
        return replace(self, batch=batch, **axes)

    @property
    def is_depthwise(self) -> bool:
        """Whether each map reads the channel of its number."""
        return self.groups == self.channels == self.maps > 1

    @property
    def channels_of_group(self) -> int:
        """The number of channels that a map reads."""
        return self.channels // self.groups

    @property
    def maps_of_group(self) -> int:
        """The number of maps that read the same channels."""
        return self.maps // self.groups

    @property
    def flat(self) -> Convolution:
        """The same as one line, if each position of the output reads the same position of the input only."""
        if not (self.rows.is_plain and self.columns.is_plain):
            return self
        return self.of_lengths(1, 1, self.positions)

    @property
    def depth(self) -> int:
        """The number of elements of a window."""
        return self.rows.size * self.columns.size * self.channels_of_group

    @property
    def positions(self) -> int:
        """The number of positions of the output."""
        return self.batch * self.rows.count * self.columns.count

    @property
    def work(self) -> int:
        """The number of multiplications."""
        return self.depth * self.positions * self.maps

    def array_size(self, kind: str) -> int:
        """The number of elements of an array."""
        return {NUMBER: 1, ROW: self.maps, WHOLE: self.positions * self.maps}[kind]

    def evaluate(self, functions: Mapping[str, Any], x: Array, kernel: Array, arrays: Sequence[Array]) -> Array:
        """The output as numpy computes it, in float64; ``kernel`` is [rows, columns, channels of a group, maps]."""
        axes = self.rows, self.columns
        shape = self.batch, *(axis.length for axis in axes), self.groups, self.channels_of_group
        x, kernel = x.reshape(shape).astype(np.float64), kernel.astype(np.float64)
        sums = np.zeros((self.batch, *(axis.count for axis in axes), self.groups, self.maps_of_group))
        for row in range(self.rows.size):
            for column in range(self.columns.size):
                # the windows whose element is not in the padding, and what these read
                (down, above), (along, left) = (axis.reads(at) for axis, at in zip(axes, (row, column), strict=True))
                weights = kernel[row, column].reshape(-1, self.groups, self.maps_of_group)
                sums[:, down, along] += np.einsum("nhwgc,cgm->nhwgm", x[:, above][:, :, left], weights)
        sums = sums.reshape(*sums.shape[:3], self.maps)
        values = list[Array]()
        for kind, of, numbers in self.values:
            if kind == SUM:
                value = sums
            elif kind in (NUMBER, ROW, WHOLE):
                array = arrays[of[0]].astype(np.float64)
                value = array.reshape(sums.shape if kind == WHOLE else -1)
            else:
                value = functions[kind](*(values[number] for number in of), *numbers)
            values.append(value)
        return np.broadcast_to(values[-1], sums.shape)

    @property
    def input_size(self) -> int:
        """The number of elements of the input."""
        return math.prod((self.batch, self.rows.length, self.columns.length, self.channels))
