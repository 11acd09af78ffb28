"""Loops of models: built from a body, carried values, limits, and outputs of each or of the last iteration."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from netloop.formats.shared.non_negative import is_non_negative
from netloop.model.formulas.formula_builder import FormulaBuilder
from netloop.model.formulas.rearrange import Length
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop, IRecurrenceLayer
from netloop.values.diagnostics import quoted, require
from netloop.values.enums import TripLimit
from netloop.values.types import UNKNOWN, TensorType, join, normal_axis

LARGEST_BUFFER = 1 << 28
"""The largest buffer, in bytes, reserved for the rows of all iterations that a loop can have."""

MANY = (1 << 63) - 1
"""More iterations than any loop has."""

T = TypeVar("T")


@dataclass(frozen=True)
class StackedOutput:
    """An output of a loop with a row for each iteration.

    Attributes:
        value: the row of one iteration.
        axis: the axis of the output along which the rows are.
        reverse: whether the row of the last iteration comes first.
        joined: whether rows are concatenated along an axis of their own, and not stacked along a new one.
        name: its name in the body; empty if it has none.
    """

    value: ITensor
    axis: int = 0
    reverse: bool = False
    joined: bool = False
    name: str = ""


@dataclass(frozen=True)
class IterationResult:
    """The results of one iteration of a body.

    Attributes:
        goes_on: whether there is another iteration.
        values: the next values of the carried values.
        rows: the outputs with a row for each iteration.
        finals: the outputs of the last iteration that are not carried.
    """

    goes_on: ITensor
    values: Sequence[ITensor]
    rows: Sequence[StackedOutput] = ()
    finals: Sequence[ITensor] = ()


@dataclass(frozen=True)
class LoopNames:
    """The names of a loop and of the values in its body, each of which may be empty.

    Attributes:
        loop: the name of the loop.
        before: those of the carried values when an iteration begins.
        after: those of the carried values when an iteration has ended.
        number: that of the number of the iteration.
    """

    loop: str
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    number: str = ""


class LoopBody(Protocol):
    """The body of a loop. It may be called more than once, and adds new layers each time."""

    def __call__(self, loop: ILoop, number: ITensor, values: Sequence[ITensor], /) -> IterationResult:
        """Add the layers of iteration ``number``, which starts with these carried values."""
        ...


@dataclass(frozen=True)
class LoopLimits:
    """The limits of a loop.

    Attributes:
        trip_count: the trip count; None if there is none.
        goes_on: whether there is a first iteration, where the body decides about the others; None without a condition.
        bound: an upper bound of the trip count, for loops that a condition may end earlier.
        endless: whether a trip count below 0 means any number of iterations, and not none.
    """

    trip_count: ITensor | None
    goes_on: ITensor | None
    bound: ITensor | None = None
    endless: bool = False


@dataclass(frozen=True)
class LoopResult:
    """The outputs of a loop.

    Attributes:
        last: the carried values after the last iteration.
        rows: the rows of all iterations.
        finals: the final values of the last iteration; zeros if there is none.
    """

    last: Sequence[ITensor]
    rows: Sequence[ITensor]
    finals: Sequence[ITensor]


def build_loop(
    make: FormulaBuilder, names: LoopNames, initial: Sequence[ITensor], limits: LoopLimits, body: LoopBody
) -> LoopResult:
    """Add a loop to the network, whose carried values start with ``initial``; return its outputs."""
    builder = _LoopBuilder(make, names, initial, limits, body)
    builder.end(limits.trip_count)
    if builder.fits_buffer:
        return LoopResult(builder.last(), builder.rows(), builder.finals())
    # the number of rows is data-dependent: a first loop counts its iterations, a second stacks the rows
    again = _LoopBuilder(make, names, initial, LoopLimits(builder.iterations, None), body)
    again.end(builder.iterations)
    return LoopResult(builder.last(), again.rows(), builder.finals())


class _LoopBuilder:
    """A loop with its body, to be given its limits and outputs.

    Within the body the condition is true, as there would be no iteration otherwise. So the loop is counted if the body
    returns the condition that it was given, or true.
    """

    def __init__(
        self, make: FormulaBuilder, names: LoopNames, initial: Sequence[ITensor], limits: LoopLimits, body: LoopBody
    ) -> None:
        self._make = make
        self._limits = limits
        self._loop = make.network.add_loop()
        self._loop.name = names.loop
        self._counter = make.counter(self._loop)
        name_layer(self._counter, names.number)
        if limits.trip_count is not None:
            make.bounds[self._counter.outputs[0]] = limits.trip_count
        self._carried = CarriedValues(make, self._loop, initial, names.before, names.after)
        self._step = self._carried.through(lambda values: self._iteration(body, values))
        self._condition = make.scalar(self._step.goes_on)
        self._early = limits.goes_on is not None and make.known(self._condition) is None
        self._bound = limits.bound

    def _iteration(self, body: LoopBody, values: Sequence[ITensor]) -> tuple[Sequence[ITensor], IterationResult]:
        step = body(self._loop, self._counter.outputs[0], values)
        return step.values, step

    def end(self, most: ITensor | None) -> None:
        """End the loop after ``most`` iterations, and before the first one in which the condition is false."""
        count = self._count(most)
        if count is not None:
            self._loop.add_trip_limit(count, TripLimit.COUNT)
        if self._limits.goes_on is not None and self._early:
            condition = self._loop.add_recurrence(self._limits.goes_on)
            condition.set_input(1, self._condition)
            self._loop.add_trip_limit(condition.outputs[0], TripLimit.WHILE)
        else:
            self._bound = count

    def _count(self, most: ITensor | None) -> ITensor | None:
        make, goes_on, once = self._make, self._limits.goes_on, self._make.known(self._condition)
        if self._limits.endless and most is not None:
            counts = make.ints(most)
            most = None if counts is not None and counts[0] < 0 else most
        if self._early:
            return most if most is None or not self._limits.endless else make.where(make.less(most, 0), MANY, most)
        if goes_on is not None and not once:
            most = make.constant(1) if most is None else self._at_most_one(most)
        require(most is not None, "the loop has no trip count, and its condition stays true", "so it would never end")
        assert most is not None
        most = self._ending(most)
        return most if goes_on is None else make.where(goes_on, most, 0)

    def _at_most_one(self, most: ITensor) -> ITensor:
        make = self._make
        return make.minimum(make.where(make.less(most, 0), 1, most) if self._limits.endless else most, 1)

    def _ending(self, most: ITensor) -> ITensor:
        """The trip count, of a loop that nothing else ends."""
        make, goes_on = self._make, self._limits.goes_on
        if not self._limits.endless or make.known(most) is not None or is_non_negative(most, make.network.types):
            return most
        ends = make.greater_equal(most, 0)
        if goes_on is not None:
            ends = make.logical_or(ends, make.logical_not(goes_on))
        what = f"the trip count of {quoted(self._loop.name)} is at least 0, as its condition stays true"
        make.network.add_assertion(ends, what)
        return make.maximum(most, 0)

    @property
    def iterations(self) -> ITensor:
        """The number of iterations that it has."""
        return self._make.last(self._loop, self._counter)

    @property
    def fits_buffer(self) -> bool:
        """Whether the rows of all possible iterations fit into a buffer of LARGEST_BUFFER bytes."""
        rows = self._step.rows
        if not self._early or not rows:
            return True
        most = None if self._bound is None else self._make.ints(self._bound)
        row = sum(_size(row.value.type) for row in rows)
        return self._bound is not None and (most is None or most[0] * row <= LARGEST_BUFFER)

    def last(self) -> list[ITensor]:
        """The carried values after the last iteration."""
        return self._carried.last()

    def finals(self) -> list[ITensor]:
        """The final values of the last iteration; zeros if there is none."""
        return [self._final(final) for final in self._step.finals]

    def _final(self, value: ITensor) -> ITensor:
        recurrence = self._carried.recurrence_of(value)
        if recurrence is not None:
            return self._make.last(self._loop, recurrence)
        shape = [max(length, 0) for length in value.type.shape]
        delayed = self._loop.add_recurrence(self._zeros(shape, value))
        delayed.keeps_shape = value.type.is_fixed
        delayed.set_input(1, value)
        return self._make.last(self._loop, delayed)

    def _zeros(self, shape: Sequence[int], like: ITensor) -> ITensor:
        zero = self._make.constant(np.zeros([1] * len(shape), like.type.dtype))
        return self._make.broadcast_to(zero, shape)

    # ------------------------------------------------------------------ rows

    def rows(self) -> list[ITensor]:
        """The rows of all iterations."""
        return [self._joined(row) if row.joined else self._stacked(row) for row in self._step.rows]

    def _stacked(self, row: StackedOutput) -> ITensor:
        make = self._make
        assert self._bound is not None
        stacked = make.stacked(self._loop, row.value, self._bound, row.axis, row.reverse)
        name_layer(stacked.producer, row.name)
        return make.take_first(stacked, self.iterations, row.axis) if self._early else stacked

    def _joined(self, row: StackedOutput) -> ITensor:
        make, value = self._make, row.value
        if value.type.rank == 0:
            return self._stacked(replace(row, axis=0))
        axis = normal_axis(row.axis, value.type.rank)
        if value.type.shape[axis] == 1:
            return self._stacked(replace(row, value=make.squeeze(value, [axis]), axis=axis))
        if value.type.shape[axis] == UNKNOWN and self._carried.grows:
            return self._grown(value, axis, row.reverse)
        stacked = self._stacked(replace(row, axis=axis))
        dims: list[Length] = [make.length(stacked, index) for index in range(stacked.type.rank)]
        return make.reshape(stacked, [*dims[:axis], UNKNOWN, *dims[axis + 2 :]])

    def _grown(self, value: ITensor, axis: int, reverse: bool) -> ITensor:
        """Rows of different lengths, concatenated iteration by iteration."""
        shape = [0 if number == axis else max(length, 0) for number, length in enumerate(value.type.shape)]
        so_far = self._loop.add_recurrence(self._zeros(shape, value))
        so_far.keeps_shape = False
        parts = [value, so_far.outputs[0]] if reverse else [so_far.outputs[0], value]
        so_far.set_input(1, self._make.concat(parts, axis))
        return self._make.last(self._loop, so_far)


def _size(row: TensorType) -> int:
    return math.prod(max(1, length) for length in row.shape) * row.dtype.itemsize


def name_layer(layer: ILayer | None, name: str) -> None:
    """Name a layer of a node, unless the name is empty; it is found under the name of the node then."""
    if layer is not None and name:
        layer.name = name


class CarriedValues:
    """The loop-carried values of a loop, which start with ``initial``; their names may be left out."""

    def __init__(
        self,
        make: FormulaBuilder,
        loop: ILoop,
        initial: Sequence[ITensor],
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> None:
        self._make = make
        self._loop = loop
        self._recurrences = [loop.add_recurrence(state) for state in initial]
        self._names = after
        for recurrence in self._recurrences:
            recurrence.keeps_shape = False
        for recurrence, name in zip(self._recurrences, before, strict=False):
            name_layer(recurrence, name)
        self._values = [recurrence.outputs[0] for recurrence in self._recurrences]
        self._before = [state.type.shape for state in initial]

    @property
    def grows(self) -> bool:
        """Whether a length changes between iterations."""
        return self._before != [tensor.type.shape for tensor in self._values]

    def through(self, body: Callable[[Sequence[ITensor]], tuple[Sequence[ITensor], T]]) -> T:
        """Pass the values to a body, which returns their next values and a result; return that result.

        The body is built again whenever the next values widen the type of a carried value, as the layers so far assume
        the narrower one: where a length changes between iterations, a sequence gets tensors of another type, or a value
        may be absent.
        """
        while True:
            types = [tensor.type for tensor in self._values]
            following, result = body(self._values)
            self._set_next(following)
            if types == [tensor.type for tensor in self._values]:
                return result

    def _set_next(self, following: Sequence[ITensor]) -> None:
        for number, (recurrence, value) in enumerate(zip(self._recurrences, following, strict=True)):
            before, after = recurrence.outputs[0].type, value.type
            require(
                join(before, after) is not None,
                f"carried value {number} is {before} before an iteration, and {after} after it",
                "lengths may change between iterations, but neither the element type nor the number of axes",
            )
        for recurrence, value in zip(self._recurrences, following, strict=True):
            recurrence.set_input(1, value)

    def recurrence_of(self, value: ITensor) -> IRecurrenceLayer | None:
        """The recurrence that carries a value to the next iteration; None if there is none."""
        return next((recurrence for recurrence in self._recurrences if recurrence.get_input(1) is value), None)

    def last(self) -> list[ITensor]:
        """The values after the last iteration."""
        values = [self._make.last(self._loop, recurrence) for recurrence in self._recurrences]
        for value, name in zip(values, self._names, strict=False):
            name_layer(value.producer, name)
        return values
