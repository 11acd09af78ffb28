"""Loop, Scan and If, as loops and conditionals of netloop."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from netloop.compose import Composer
from netloop.diagnostics import require
from netloop.enums import TripLimit
from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop
from netloop.onnx.call import Call, Subgraph
from netloop.onnx.operators.table import operator

LARGEST_BUFFER = 1 << 28
"""Up to so many bytes there is room for the rows of all trips that a loop may make."""


@operator("If")
def conditional(call: Call, condition: ITensor) -> list[ITensor]:
    """One of two graphs; if the condition is known already, only that one becomes layers."""
    make = call.make
    condition = make.scalar(condition)
    known = make.known(condition)
    if known is not None:
        return call.subgraph("then_branch" if known else "else_branch")()
    made = make.network.add_if_conditional()
    made.name = call.node.label
    made.set_condition(condition)
    then, otherwise = call.subgraph("then_branch")(), call.subgraph("else_branch")()
    require(len(then) == len(otherwise), f"one branch has {len(then)} outputs, and the other {len(otherwise)}")
    return [made.add_output(a, b).outputs[0] for a, b in zip(then, otherwise, strict=True)]


@operator("Loop")
def loop(call: Call, trips: ITensor | None = None, goes_on: ITensor | None = None, *initial: ITensor) -> list[ITensor]:
    """A loop: counted, conditional, or both."""
    make = call.make
    require(
        trips is not None or goes_on is not None,
        "the loop has neither a trip count nor a condition",
        "by the standard it never ends",
    )
    most = None if trips is None else make.maximum(make.cast(make.scalar(trips), np.int64), 0)
    made = _Loop(call, initial, None if goes_on is None else make.scalar(goes_on))
    last = made.end(most)
    if made.has_room:
        return [*last, *made.rows()]
    # only the trips tell how many rows there are: they are counted first, and made again
    again = _Loop(call, initial, None)
    again.end(made.trips)
    return [*last, *again.rows()]


class _Loop:
    """A Loop, its body added to the network.

    Within the body the condition is true, for else there would be no trip. So a body that hands on its condition, or
    sets it to true, makes a counted loop.

    Attributes:
        bound: the most trips that there can be; None if nothing bounds them.
    """

    def __init__(self, call: Call, initial: Sequence[ITensor], goes_on: ITensor | None) -> None:
        self._make = make = call.make
        self._goes_on = goes_on
        self._loop = make.network.add_loop()
        self._loop.name = call.node.label
        self._counter = make.counter(self._loop)
        # without a condition the loop goes on whatever the body says, and the body sees what it said
        said = self._loop.add_recurrence(make.constant(True)) if goes_on is None else None
        inputs = self._counter.outputs[0], make.constant(True) if said is None else said.outputs[0]
        self._carried = Carried(make, self._loop, initial)
        condition, *self._rows = self._carried.around(call.subgraph("body"), inputs, 1)
        self._condition = make.scalar(condition)
        if said is not None:
            said.set_input(1, self._condition)
        self.bound: ITensor | None = None
        self._early = goes_on is not None and make.known(self._condition) is None

    def end(self, most: ITensor | None) -> list[ITensor]:
        """End the loop after ``most`` trips, and before the first in which the condition is false.

        Returns:
            The last values of what is carried.
        """
        self.bound = self._count(most)
        if self.bound is not None:
            self._loop.add_trip_limit(self.bound, TripLimit.COUNT)
        if self._goes_on is not None and self._early:
            condition = self._loop.add_recurrence(self._goes_on)
            condition.set_input(1, self._condition)
            self._loop.add_trip_limit(condition.outputs[0], TripLimit.WHILE)
        return self._carried.last()

    def _count(self, most: ITensor | None) -> ITensor | None:
        if self._goes_on is None or self._early:
            return most
        if not self._make.known(self._condition):
            most = self._make.constant(1) if most is None else self._make.minimum(most, 1)
        require(most is not None, "the loop has no trip count, and its condition stays true", "so it would never end")
        assert most is not None
        return self._make.where(self._goes_on, most, 0)

    @property
    def trips(self) -> ITensor:
        """The number of trips that it makes."""
        return self._make.last(self._loop, self._counter)

    @property
    def has_room(self) -> bool:
        """Whether there is room for the rows of all trips that there can be."""
        if not self._early or not self._rows:
            return True
        most = None if self.bound is None else self._make.ints(self.bound)
        row = sum(math.prod(max(1, n) for n in each.type.shape) * each.type.dtype.itemsize for each in self._rows)
        return self.bound is not None and (most is None or most[0] * row <= LARGEST_BUFFER)

    def rows(self) -> list[ITensor]:
        """The values of all trips, along a new first axis."""
        bound = self.bound
        if bound is None:
            return []
        stacked = [self._make.stacked(self._loop, row, bound) for row in self._rows]
        if not self._early or not stacked:
            return stacked
        trips = self.trips
        return [self._make.take_first(rows, trips) for rows in stacked]


class Carried:
    """The values that go from trip to trip.

    Args:
        make: what adds layers.
        loop: the loop.
        initial: what they are before the first trip.
    """

    def __init__(self, make: Composer, loop: ILoop, initial: Sequence[ITensor]) -> None:
        self._make = make
        self._loop = loop
        self._recurrences = [loop.add_recurrence(each) for each in initial]
        for each in self._recurrences:
            each.keeps_shape = False
        self._values = [each.outputs[0] for each in self._recurrences]

    def around(
        self, body: Subgraph, before: Sequence[ITensor], skip: int, after: Sequence[ITensor] = ()
    ) -> list[ITensor]:
        """Send the values through a body, whose other outputs are given back.

        Where a length turns out to change from trip to trip, the body is made anew: the old one counts on its length.

        Args:
            body: the body.
            before: its inputs before the values.
            skip: the number of its outputs before the values.
            after: its inputs after the values.
        """
        count = len(self._values)
        while True:
            shapes = [each.type.shape for each in self._values]
            outputs = body(*before, *self._values, *after)
            require(
                len(outputs) >= skip + count, f"the body has {len(outputs)} outputs for {count} values that it carries"
            )
            self._step(outputs[skip : skip + count])
            if shapes == [each.type.shape for each in self._values]:
                return [*outputs[:skip], *outputs[skip + count :]]

    def _step(self, following: Sequence[ITensor]) -> None:
        for number, (recurrence, value) in enumerate(zip(self._recurrences, following, strict=True)):
            before, after = recurrence.outputs[0].type, value.type
            require(
                before.dtype == after.dtype and before.rank == after.rank,
                f"carried value {number} goes in as {before}, and comes out as {after}",
                "lengths may change from trip to trip, but neither the element type nor the number of axes",
            )
        for recurrence, value in zip(self._recurrences, following, strict=True):
            recurrence.set_input(1, value)

    def last(self) -> list[ITensor]:
        """The values after the last trip."""
        return [self._make.last(self._loop, each) for each in self._recurrences]
