"""Loop, Scan and If, as loops and conditionals of netloop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netloop.compose import Composer
from netloop.diagnostics import require
from netloop.enums import TripLimit
from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop
from netloop.onnx.call import Call, Subgraph
from netloop.onnx.operators.table import operator


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


LARGEST_BUFFER = 1 << 26
"""Up to so many bytes there is room for the rows of all trips that a loop may make."""


@operator("Loop")
def loop(call: Call, trips: ITensor | None, goes_on: ITensor | None = None, *initial: ITensor) -> list[ITensor]:
    """A loop: counted, conditional, or both."""
    make, body = call.make, call.subgraph("body")
    require(
        trips is not None or goes_on is not None,
        "the loop has neither a trip count nor a condition",
        "by the standard it never ends",
    )
    most = None if trips is None else make.maximum(make.cast(make.scalar(trips), np.int64), 0)
    return _Loop(call, body, initial).end(most, None if goes_on is None else make.scalar(goes_on))


class _Loop:
    """A Loop, its body added to the network.

    Within the body the condition is true, for else there would be no trip. So a body that hands on its condition, or
    sets it to true, makes a counted loop.
    """

    def __init__(self, call: Call, body: Subgraph, initial: Sequence[ITensor]) -> None:
        self._make = make = call.make
        self._call = call
        self._loop = make.network.add_loop()
        self._loop.name = call.node.label
        self._counter = make.counter(self._loop)
        self._carried = _Carried(make, self._loop, initial)
        outputs = body(self._counter.outputs[0], make.constant(True), *self._carried.values)
        require(
            len(outputs) > len(initial),
            f"the body has {len(outputs)} outputs for {len(initial)} values and its condition",
        )
        self._condition, self._rows = make.scalar(outputs[0]), outputs[1 + len(initial) :]
        self._carried.step(outputs[1 : 1 + len(initial)])

    def end(self, most: ITensor | None, goes_on: ITensor | None) -> list[ITensor]:
        """End the loop after ``most`` trips, and before the first in which the condition is false; its outputs."""
        count = self._count(most, goes_on)
        if count is not None:
            self._loop.add_trip_limit(count, TripLimit.COUNT)
        early = goes_on is not None and self._make.known(self._condition) is None
        if goes_on is not None and early:
            condition = self._loop.add_recurrence(goes_on)
            condition.set_input(1, self._condition)
            self._loop.add_trip_limit(condition.outputs[0], TripLimit.WHILE)
        return [*self._carried.last(), *(self._stacked(row, count, early) for row in self._rows)]

    def _count(self, most: ITensor | None, goes_on: ITensor | None) -> ITensor | None:
        """The number of trips, or the most that there can be; None if nothing bounds it."""
        again = None if goes_on is None else self._make.known(self._condition)
        if goes_on is None or again is None:
            return most
        if not again:
            most = self._make.constant(1) if most is None else self._make.minimum(most, 1)
        require(most is not None, "the loop has no trip count, and its condition stays true", "so it would never end")
        assert most is not None
        return self._make.where(goes_on, most, 0)

    def _stacked(self, row: ITensor, count: ITensor | None, early: bool) -> ITensor:
        """The values of all trips along a new first axis."""
        require(
            count is not None,
            "rows of a loop without a trip count are not there yet",
            "",
            "",
        )
        assert count is not None
        rows = self._make.stacked(self._loop, row, count)
        return self._make.take_first(rows, self._make.last(self._loop, self._counter)) if early else rows


class _Carried:
    """The values that go from trip to trip."""

    def __init__(self, make: Composer, loop: ILoop, initial: Sequence[ITensor]) -> None:
        self._make = make
        self._loop = loop
        self._recurrences = [loop.add_recurrence(each) for each in initial]
        self.values = [each.outputs[0] for each in self._recurrences]

    def step(self, following: Sequence[ITensor]) -> None:
        """Let the values of the next trip be what this one makes."""
        for number, (recurrence, value) in enumerate(zip(self._recurrences, following, strict=True)):
            before, after = recurrence.outputs[0].type, value.type
            require(
                before.dtype == after.dtype and before.rank == after.rank,
                f"carried value {number} goes in as {before}, and comes out as {after}",
            )
            recurrence.set_input(1, value)

    def last(self) -> list[ITensor]:
        """The values after the last trip."""
        return [self._make.last(self._loop, each) for each in self._recurrences]


@operator("Scan", since=9)
def scan(call: Call, *inputs: ITensor) -> list[ITensor]:
    """A loop over slices of tensors."""
    make, count = call.make, call.attribute("num_scan_inputs")
    require(1 <= count <= len(inputs), f"num_scan_inputs is {count}, and there are {len(inputs)} inputs")
    initial, scanned = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    loop = make.network.add_loop()
    loop.name = call.node.label
    axes = _numbers(call, "scan_input_axes", count)
    reverse = _numbers(call, "scan_input_directions", count)
    slices = [
        loop.add_iterator(each, axis, bool(backwards)).outputs[0]
        for each, axis, backwards in zip(scanned, axes, reverse, strict=True)
    ]
    lengths = [make.length(each, axis) for each, axis in zip(scanned, axes, strict=True)]
    known = {each for each in lengths if isinstance(each, int)}
    require(len(known) <= 1, f"the inputs that are scanned have {sorted(known)} elements, and must have equally many")
    trips = make.tensor(np.int64(known.pop()) if known else lengths[0])
    loop.add_trip_limit(trips, TripLimit.COUNT)
    carried = _Carried(make, loop, initial)
    outputs = call.subgraph("body")(*carried.values, *slices)
    require(len(outputs) >= len(initial), f"the body has {len(outputs)} outputs for {len(initial)} states")
    carried.step(outputs[: len(initial)])
    rows = outputs[len(initial) :]
    places = zip(
        rows,
        _numbers(call, "scan_output_axes", len(rows)),
        _numbers(call, "scan_output_directions", len(rows)),
        strict=True,
    )
    return [*carried.last(), *(make.stacked(loop, row, trips, axis, bool(back)) for row, axis, back in places)]


def _numbers(call: Call, name: str, count: int) -> list[int]:
    """A number for each of some inputs or outputs, 0 by default."""
    numbers = call.attribute(name) or [0] * count
    require(len(numbers) == count, f"{name} has {len(numbers)} numbers, and must have {count}")
    return numbers
