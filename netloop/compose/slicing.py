"""Parts of axes between two places, as Python's slices mean them."""

import numpy as np

from netloop.compose.arithmetic import Arithmetic
from netloop.compose.index import Indexing
from netloop.diagnostics import require
from netloop.graph.tensor import ITensor
from netloop.types import normal_axis


class Slicing(Arithmetic, Indexing):
    """Formulas that take parts of axes."""

    def slice_between(
        self,
        x: ITensor,
        starts: ITensor,
        ends: ITensor,
        axes: ITensor | None = None,
        steps: ITensor | None = None,
    ) -> ITensor:
        """The elements from ``starts`` up to, and without, ``ends``, along some axes or the first ones.

        Places below 0 count from the end of the axis, and those past an end of it stand for that end, as in Python.
        """
        starts, ends = self.list_tensor(starts), self.list_tensor(ends)
        count = starts.type.shape[0]
        require(count >= 0, f"the starts {starts.type} are unknown in number")
        axes = self.constant(np.arange(count)) if axes is None else self.list_tensor(axes)
        steps = self.constant(np.ones(count, np.int64)) if steps is None else self.list_tensor(steps)
        for name, each in (("ends", ends), ("axes", axes), ("steps", steps)):
            require(each.type.shape == (count,), f"there are {count} starts, and the {name} are {each.type}")
        known = self.ints(steps)
        require(known is None or 0 not in known, f"the steps are {known}, and 0 leads nowhere")
        spans = self._spans(x, starts, ends, axes, steps)
        if spans is None:
            return self._between(x, starts, ends, axes, steps)
        first, sizes, strides = [each.start for each in spans], [len(each) for each in spans], [r.step for r in spans]
        return self.slice(x, first, sizes, strides, axes)

    def _spans(self, x: ITensor, starts: ITensor, ends: ITensor, axes: ITensor, steps: ITensor) -> list[range] | None:
        """The places along each axis; None where only the call tells them."""
        along = self.ints(axes)
        lengths = None if along is None else [x.type.shape[normal_axis(axis, x.type.rank)] for axis in along]
        first, last, by = self.ints(starts), self.ints(ends), self.ints(steps)
        if lengths is None or first is None or last is None or by is None or min(lengths, default=0) < 0:
            return None
        spans = zip(lengths, first, last, by, strict=True)
        return [range(*slice(start, end, step).indices(length)) for length, start, end, step in spans]

    def _between(self, x: ITensor, starts: ITensor, ends: ITensor, axes: ITensor, steps: ITensor) -> ITensor:
        axes = self._from_front(axes, self.constant(x.type.rank))
        known = self.ints(axes)
        lengths = (
            self.gather(self.shape(x), axes) if known is None else self.list_tensor([self.length(x, a) for a in known])
        )
        forward = self.greater(steps, 0)
        low, high = self.where(forward, self.constant(0), -1), self.where(forward, lengths, self.sub(lengths, 1))
        starts = self.clip(self._from_front(starts, lengths), self.where(forward, low, 0), high)
        ends = self.clip(self._from_front(ends, lengths), low, high)
        # the distance divided by the step, rounded up
        rest = self.where(forward, self.sub(steps, 1), self.add(steps, 1))
        sizes = self.maximum(self.div(self.add(self.sub(ends, starts), rest), steps), 0)
        return self.slice(x, starts, sizes, steps, axes)

    def _from_front(self, places: ITensor, lengths: ITensor) -> ITensor:
        return self.where(self.less(places, 0), self.add(places, lengths), places)
