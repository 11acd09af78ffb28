"""Slices as in Python, splits, pads and tiles."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from netloop.model.formulas.arithmetic import Arithmetic
from netloop.model.formulas.rearrange import Numbers
from netloop.model.formulas.rows import SingleRows
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.rearrange import axis_count
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import require
from netloop.values.enums import CumulativeOperation, SampleMode
from netloop.values.types import normal_axis


class Slicing(Arithmetic, SingleRows):
    """Formulas that take parts of axes, or extend them."""

    def __init__(self, network: INetworkDefinition) -> None:
        super().__init__(network)
        self._rows: dict[ITensor, tuple[ITensor, ITensor, int]] = {}

    def slice_between(
        self, x: ITensor, starts: ITensor, ends: ITensor, axes: ITensor | None = None, steps: ITensor | None = None
    ) -> ITensor:
        """The elements from ``starts`` up to, but excluding, ``ends``, along ``axes`` or the first ones.

        Negative positions count from the end of an axis, and positions past an end stand for that end, as in Python.
        """
        starts, ends = self.list_tensor(starts), self.list_tensor(ends)
        count = axis_count(starts.type)
        axes = self.constant(np.arange(count)) if axes is None else self.list_tensor(axes)
        steps = self.constant(np.ones(count, np.int64)) if steps is None else self.list_tensor(steps)
        for name, tensor in (("ends", ends), ("axes", axes), ("steps", steps)):
            require(tensor.type.shape == (count,), f"there are {count} starts, and the {name} are {tensor.type}")
        values = self.ints(steps)
        require(values is None or 0 not in values, f"the steps are {values}, and none may be 0")
        spans = self._spans(x, starts, ends, axes, steps)
        if spans is None:
            return self._row(x, starts, ends, axes, steps) or self._between(x, starts, ends, axes, steps)
        first, sizes, strides = [span.start for span in spans], [len(span) for span in spans], [r.step for r in spans]
        return self.slice(x, first, sizes, strides, axes)

    def _row(self, x: ITensor, starts: ITensor, ends: ITensor, axes: ITensor, steps: ITensor) -> ITensor | None:
        """The slice if it is always one row, at a position that only a run knows."""
        along = self.ints(axes)
        if along is None or len(along) != 1 or self.ints(steps) != [1] or not self._is_next(starts, ends):
            return None
        axis = normal_axis(along[0], x.type.rank)
        if self._is_inside(starts, x, axis):
            return self.gather(x, starts, axis)
        result = self._between(x, starts, ends, axes, steps)
        self._rows[result] = x, starts, axis
        return result

    def squeeze(self, x: ITensor, axes: Numbers | None = None) -> ITensor:
        """``x`` without axes of length 1: those named, or all."""
        whole, start, axis = self._rows.get(x, (x, None, 0))
        listed = None if axes is None else self.ints(self.list_tensor(axes))
        if start is None or listed is None or [normal_axis(a, x.type.rank) for a in listed] != [axis]:
            return super().squeeze(x, axes)
        # an axis that is removed has the length 1, so that the position is inside
        length = self.list_tensor([self.length(whole, axis)])
        start = self.where(self.less(start, -1), self.add(start, length), start)  # from -1 to 0 there is no row
        return super().squeeze(self.slice(whole, start, [1], axes=[axis]), [axis])

    def _spans(self, x: ITensor, starts: ITensor, ends: ITensor, axes: ITensor, steps: ITensor) -> list[range] | None:
        """Return the positions along each axis; None if they depend on the call."""
        along = self.ints(axes)
        lengths = None if along is None else [x.type.shape[normal_axis(axis, x.type.rank)] for axis in along]
        first, last, by = self.ints(starts), self.ints(ends), self.ints(steps)
        if lengths is None or first is None or last is None or by is None or min(lengths, default=0) < 0:
            return None
        spans = zip(lengths, first, last, by, strict=True)
        return [range(*slice(start, end, step).indices(length)) for length, start, end, step in spans]

    def _between(self, x: ITensor, starts: ITensor, ends: ITensor, axes: ITensor, steps: ITensor) -> ITensor:
        axes = self._from_front(axes, self.constant(x.type.rank))
        along = self.ints(axes)
        lengths = (
            self.gather(self.shape(x), axes) if along is None else self.list_tensor([self.length(x, a) for a in along])
        )
        forward = self.greater(steps, 0)
        low, high = self.where(forward, self.constant(0), -1), self.where(forward, lengths, self.sub(lengths, 1))
        starts = self.clip(self._from_front(starts, lengths), self.where(forward, low, 0), high)
        ends = self.clip(self._from_front(ends, lengths), low, high)
        # the distance divided by the step, rounded up
        rounding = self.where(forward, self.sub(steps, 1), self.add(steps, 1))
        sizes = self.maximum(self.div(self.add(self.sub(ends, starts), rounding), steps), 0)
        return self.slice(x, starts, sizes, steps, axes)

    def _from_front(self, places: ITensor, lengths: ITensor) -> ITensor:
        return self.where(self.less(places, 0), self.add(places, lengths), places)

    # ------------------------------------------------------------------ splits, pads and tiles

    def split(self, x: ITensor, axis: int, sizes: ITensor) -> list[ITensor]:
        """Consecutive parts along an axis, whose sizes must add up to its length."""
        lengths = self.long_ints(sizes)
        if lengths is not None:
            length = x.type.shape[normal_axis(axis, x.type.rank)]
            require(
                (min(lengths, default=0) >= 0 and sum(lengths) == length) or length < 0,
                f"the sizes {lengths} do not add up to the length of axis {axis} of {x.type}",
            )
            starts = accumulate(lengths, initial=0)
            return [self.slice(x, [at], [size], axes=[axis]) for at, size in zip(starts, lengths, strict=False)]
        first = self.cumulative_sum(sizes, exclusive=True)
        parts = [[self.slice(tensor, [part], [1]) for tensor in (first, sizes)] for part in range(sizes.type.shape[0])]
        return [self.slice(x, at, size, axes=[axis]) for at, size in parts]

    def pad(
        self, x: ITensor, before: ITensor, after: ITensor, mode: SampleMode, value: ITensor | None, axes: ITensor
    ) -> ITensor:
        """``x`` padded along axes, or cropped where a width is negative; ``value`` is for FILL."""
        count = axis_count(axes.type)
        sizes = self.add(self.add(self.gather(self.shape(x), axes), before), after)
        fill = self.scalar(value) if value is not None and mode is SampleMode.FILL else None
        return self.slice(x, self.sub(0, before), sizes, [1] * count, axes, mode, fill)

    def backwards(self, x: ITensor, axes: Sequence[int]) -> ITensor:
        """``x`` reversed along axes."""
        if not axes:
            return x
        lengths = self.list_tensor([self.length(x, axis) for axis in axes])
        return self.slice(x, self.sub(lengths, 1), lengths, [-1] * len(axes), axes)

    def tile(self, x: ITensor, times: Numbers) -> ITensor:
        """``x`` repeated along every axis, as ``numpy.tile``."""
        rank = x.type.rank
        sizes = self.mul(self.shape(x), self.list_tensor(times))
        return self.slice(x, [0] * rank, sizes, [1] * rank, outside=SampleMode.WRAP)

    def cumulative_sum(self, x: ITensor, axis: int = 0, exclusive: bool = False) -> ITensor:
        """The running sums along an axis; ``exclusive`` ones leave out the element itself."""
        layer = self.network.add_cumulative(x, self.constant(axis), CumulativeOperation.SUM, exclusive, False)
        return self.output(layer)
