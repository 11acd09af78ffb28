"""Loops and their four kinds of boundary layers; ``docs/loops.md`` defines their meaning, in the same order.

Inside a loop a tensor is a lazy sequence X0, X1, .... The method ``element`` of a boundary layer computes one element
of its output: a generator that yields each tensor and iteration it needs, and is sent the value.

Source: https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/work-with-loops.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from netloop.model.graph import ITensor, TypeTable, layer
from netloop.model.graph.layer import Types
from netloop.model.layers.control_flow import BoundaryLayer, ControlFlow, Meaning, Trips
from netloop.values.checked_attributes import whole
from netloop.values.diagnostics import Finding, LayerError, quoted, reason, require
from netloop.values.enums import LayerType, LoopOutput, TripLimit
from netloop.values.types import LARGEST_INDEX, LARGEST_TENSOR, UNKNOWN, Array, TensorType, normal_axis, slice_at

B = TypeVar("B", bound="ILoopBoundaryLayer")
Problem = tuple[str, str, str]
"""The fault, its reason and its fix, as messages give them."""

_ROWS = "a stacked output has one element for each iteration"


def check_max_trips(name: str, value: Any) -> int | None:
    """Return the largest number of iterations that a loop may execute, or None for no limit.

    Raises:
        TypeError: it is neither an int nor None.
        ValueError: it is negative, or does not fit in 64 bits.
    """
    return None if value is None else whole(0, (1 << 63) - 1)(name, value)


class ILoop(ControlFlow):
    """A loop of a network, made by :meth:`INetworkDefinition.add_loop`.

    No layer is put into a loop: a layer belongs to it if one of its inputs varies from iteration to iteration.

    Attributes:
        name: the name, used in messages.
        layers: the boundary layers, in the order in which they were added.
        source_location: the line of the user's script that added the loop.
    """

    UNLISTED = frozenset({"boundary", "count", "endless", "limit", "trips", "where"})

    name: str = ""

    def add_trip_limit(self, tensor: ITensor, kind: TripLimit) -> ITripLimitLayer:
        """End the loop after ``tensor`` iterations (COUNT: int32 or int64, 0-D, from outside the loop), or before the
        first iteration in which ``tensor`` is false (WHILE: bool, 0-D).

        COUNT takes an int32 or int64 scalar, negative values meaning 0 iterations; WHILE takes a bool scalar. With
        both, the loop ends at whichever comes first. The layer has no output.

        Args:
            tensor: the input.
            kind: COUNT or WHILE.
        """
        return self._bound(ITripLimitLayer(loop=self, kind=kind), tensor=tensor)

    def add_iterator(self, tensor: ITensor, axis: int = 0, reverse: bool = False) -> IIteratorLayer:
        """Read one slice of a tensor from outside the loop along ``axis`` per iteration; the axis is dropped.

        M is the value of the loop's COUNT limit. The axis is dropped. Reading past the end of the axis is an error,
        which is raised only if an output or an assertion depends on the slice.

        Args:
            tensor: the input.
            axis: the axis; a negative value counts from the end.
            reverse: whether to start at slice M-1 and go backwards.
        """
        return self._bound(IIteratorLayer(loop=self, axis=axis, reverse=reverse), tensor=tensor)

    def add_recurrence(self, initial_value: ITensor) -> IRecurrenceLayer:
        """Carry a value from iteration to iteration; ``set_input(1, tensor)`` on the layer sets the next value.

        Both have the same element type and shape. All recurrences of a loop advance together: each next value is
        computed from the old values of the others.

        Args:
            initial_value: the input.

        Further attributes of the layer, which have defaults: ``keeps_shape``.
        """
        return self._bound(IRecurrenceLayer(loop=self), initial_value=initial_value)

    def add_loop_output(self, tensor: ITensor, kind: LoopOutput, axis: int = 0) -> ILoopOutputLayer:
        """Make a tensor available outside the loop: its last value, or its values stacked along a new ``axis``, the
        length of which is input 1 of the layer.

        LAST_VALUE is element n: for a recurrence, the value with which the next iteration would have started.
        CONCATENATE and REVERSE take the length L of the new axis as input 1 (an int32 or int64 scalar): the n elements
        come first, in order or in reverse, followed by L - n zeros (or empty strings). L < 0 and L < n are errors,
        which are raised only if an output or an assertion depends on the output.

        Args:
            tensor: the input.
            kind: LAST_VALUE, CONCATENATE or REVERSE.
            axis: the position of the new axis, 0 to the rank of the element; a negative value counts from the end.
        """
        return self._bound(ILoopOutputLayer(loop=self, kind=kind, axis=axis), tensor=tensor)

    def boundary(self, kind: type[B]) -> list[B]:
        """The boundary layers of one class, in the order in which they were added."""
        return self.layers.of_kind(kind)

    def limit(self, kind: TripLimit) -> ITripLimitLayer | None:
        """The trip limit of one kind; None if there is none."""
        return next((limit for limit in self.boundary(ITripLimitLayer) if limit.kind is kind), None)

    def count(self, at: Trips) -> Meaning:
        """The value of the COUNT limit; 0 if it is negative."""
        limit = self.limit(TripLimit.COUNT)
        require(limit is not None, f"{self.name!r} has no COUNT limit")
        assert limit is not None
        value = yield limit.tensor(0), at
        return max(0, int(value))

    def trips(self, at: Trips, most: int) -> Meaning:
        """The trip count: the value of the COUNT limit or the least n for which element n of the WHILE limit is false,
        whichever is smaller, but at most ``most``.
        """
        if self.limit(TripLimit.COUNT) is not None:
            most = min(most, (yield from self.count(at)))
        goes_on = self.limit(TripLimit.WHILE)
        if goes_on is None:
            return most
        trip = 0
        while trip < most and (yield goes_on.tensor(0), {**at, self: trip}):
            trip += 1
        return trip

    @property
    def where(self) -> str:
        """Source location and name, for messages."""
        return f"{self.source_location}, ILoop {quoted(self.name)}"

    def endless(self, max_trips: int) -> Finding:
        """The finding that the loop executes more iterations than allowed."""
        what = f"{self.name!r} executes more than {max_trips} iterations"
        fix = "raise max_trips, or correct the limit that should have ended the loop"
        return Finding("NL609", what, self.where, reason("NL609"), fix, at=self)


@dataclass(eq=False, repr=False, kw_only=True)
class ILoopBoundaryLayer(BoundaryLayer):
    """A layer at the boundary of a loop.

    Attributes:
        loop: the loop.
    """

    READ_ONLY = frozenset({"loop", "kind"})

    loop: ILoop


@layer(LayerType.TRIP_LIMIT, "TripLimit")
class ITripLimitLayer(ILoopBoundaryLayer):
    """End a loop: COUNT after a number of iterations, WHILE before the first iteration in which the input is false.

    COUNT takes an int32 or int64 scalar, negative values meaning 0 iterations; WHILE takes a bool scalar. With both,
    the loop ends at whichever comes first. The layer has no output.

    Attributes:
        loop: the loop.
        kind: COUNT or WHILE.
    """

    NUM_OUTPUTS = 0

    kind: TripLimit

    def infer(self, x: TensorType) -> Types:
        fits = x.is_index if self.kind is TripLimit.COUNT else x.is_bool
        wanted = "an int32[] or int64[]" if self.kind is TripLimit.COUNT else "a bool[]"
        what = f"the {self.kind.name} limit of {self.loop.name!r} is {x}, but must be {wanted}"
        if x.rank > 0:
            fix = "take one element with add_gather, or reshape it to () with add_shuffle"
        elif self.kind is TripLimit.COUNT:
            fix = "convert it with add_cast, or make the constant of np.int32"
            fix = "use TripLimit.WHILE, which takes a condition" if x.is_bool else fix
        else:
            fix = "compare it with add_elementwise, or use TripLimit.COUNT, which takes a number of iterations"
        why = "COUNT is a number of iterations" if self.kind is TripLimit.COUNT else "WHILE is one answer per iteration"
        require(fits and x.rank == 0, what, why, fix)
        return ()

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        return (yield self.tensor(0), at)


@layer(LayerType.RECURRENCE, "Recurrence")
class IRecurrenceLayer(ILoopBoundaryLayer):
    """The sequence X, Y0, Y1, ... for an initial value X (input 0) and a next value Y (input 1).

    Both have the same element type and shape. All recurrences of a loop advance together: each next value is computed
    from the old values of the others.

    Attributes:
        loop: the loop.
        keeps_shape: whether the value has the same shape in all iterations, as in TensorRT. If False, its rank is still
            fixed, and a loop in which a dim does change is executed on the host, step by step.
    """

    MAX_INPUTS = 2
    TENSORS_ONLY = False
    TAKES_STRINGS = True

    keeps_shape: bool = True

    def type_inputs(self) -> Sequence[ITensor | None]:
        return self.inputs[:1]

    def feedback(self) -> ITensor | None:
        return None if self.keeps_shape else self.get_input(1)

    def infer(self, initial: TensorType) -> TensorType:
        return initial.without_value()

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        trip = at[self.loop]
        assert trip >= 0, f"{self.described} has no element {trip}"
        if trip == 0:
            return (yield self.tensor(0), at)
        return (yield self.tensor(1), {**at, self.loop: trip - 1})


@layer(LayerType.ITERATOR, "Iterator")
class IIteratorLayer(ILoopBoundaryLayer):
    """The slices X[0], X[1], ... of a tensor along an axis, one per iteration; in reverse X[M-1], X[M-2], ....

    M is the value of the loop's COUNT limit. The axis is dropped. Reading past the end of the axis is an error, which
    is raised only if an output or an assertion depends on the slice.

    Attributes:
        loop: the loop.
        axis: the axis; a negative value counts from the end.
        reverse: whether to start at slice M-1 and go backwards.
    """

    TAKES_STRINGS = True

    axis: int = 0
    reverse: bool = False

    def infer(self, x: TensorType) -> TensorType:
        require(
            x.rank > 0,
            f"an iterator reads along an axis, and its input {x} has none",
            why="each iteration reads one slice along an axis",
            fix="use the tensor itself in the loop: it has the same value in every iteration",
        )
        axis = normal_axis(self.axis, x.rank)
        return x.with_shape(x.shape[:axis] + x.shape[axis + 1 :])

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        array = yield self.tensor(0), at
        trip = at[self.loop]
        position = (yield from self.loop.count(at)) - 1 - trip if self.reverse else trip
        axis = normal_axis(self.axis, array.ndim)
        require(0 <= position < array.shape[axis], *self.past_the_end(array.shape[axis]))
        return slice_at(array, position, axis)

    @property
    def trips(self) -> ITensor | None:
        """The COUNT limit, from which a reverse iterator counts down; None for a forward one."""
        limit = self.loop.limit(TripLimit.COUNT) if self.reverse else None
        return None if limit is None else limit.tensor(0)

    def past_the_end(self, length: int) -> Problem:
        """The problem of a slice beyond the axis."""
        return (
            f"{self.name!r} reads past the end of axis {self.axis}, which has {length} elements",
            f"{self.loop.name!r} executes more iterations than the axis has elements",
            "limit the loop to the length of the axis",
        )


@layer(LayerType.LOOP_OUTPUT, "LoopOutput")
class ILoopOutputLayer(ILoopBoundaryLayer):
    """The value of a tensor after a loop of n iterations: element n, or elements 0 to n-1 stacked along a new axis.

    LAST_VALUE is element n: for a recurrence, the value with which the next iteration would have started. CONCATENATE
    and REVERSE take the length L of the new axis as input 1 (an int32 or int64 scalar): the n elements come first, in
    order or in reverse, followed by L - n zeros (or empty strings). L < 0 and L < n are errors, which are raised only
    if an output or an assertion depends on the output.

    Attributes:
        loop: the loop.
        kind: LAST_VALUE, CONCATENATE or REVERSE.
        axis: the position of the new axis, 0 to the rank of the element; a negative value counts from the end.
    """

    MAX_INPUTS = 2
    TENSORS_ONLY = False
    SHAPE_INPUTS = frozenset({1})
    TAKES_STRINGS = True

    kind: LoopOutput
    axis: int = 0

    @property
    def stacks(self) -> bool:
        """Whether the output stacks all elements."""
        return self.kind is not LoopOutput.LAST_VALUE

    def set_input(self, index: int, tensor: ITensor) -> None:
        """Read ``tensor`` as input ``index``; setting a length turns LAST_VALUE into CONCATENATE, as in TensorRT."""
        super().set_input(index, tensor)
        if index == 1 and not self.stacks:
            vars(self)["kind"] = LoopOutput.CONCATENATE
            self.types.forget(self.outputs)

    def infer(self, x: TensorType, length: TensorType | None = None) -> TensorType:
        if not self.stacks:
            return x.without_value()
        require(
            x.is_tensor,
            f"the {self.kind.name} output {self.name!r} stacks tensors, not {x}",
            why="a stack has an axis more, and only tensors have axes",
            fix="let it out with LoopOutput.LAST_VALUE",
        )
        require(
            length is not None,
            f"the {self.kind.name} output {self.name!r} has no length",
            "the trip count does not determine the length of the new axis",
            "call set_input(1, length) on the layer, with an int32 or int64 scalar",
        )
        assert length is not None
        require(
            length.is_index and length.rank == 0,
            f"the length is {length}, but must be an int32[] or int64[]",
            why="it is the length of one axis, the same for the whole loop",
            fix="take one element with add_gather, or convert it with add_cast",
        )
        numbers = length.ints()
        # an impossible length is an error only if the output is needed, so here it only leaves the shape open
        room = numbers[0] if numbers and self.impossible(numbers[0], x) is None else UNKNOWN
        axis = normal_axis(self.axis, x.rank + 1)
        return x.with_shape((*x.shape[:axis], room, *x.shape[axis:]))

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        trips = yield self.loop, at
        if not self.stacks:
            return (yield self.tensor(0), {**at, self.loop: trips})
        length = int((yield self.tensor(1), at))
        self.check_length(length, trips, types[self.tensor(0)])
        rows: list[Array] = []
        for trip in range(trips):
            rows.append((yield self.tensor(0), {**at, self.loop: trip}))
        return self.stack(rows, length, types[self.tensor(0)])

    def check_length(self, length: int, rows: int, row: TensorType) -> None:
        """Raise a LayerError unless a stacked output can have a length, and has room for all iterations.

        Args:
            length: the length of the new axis.
            rows: the number of elements, one for each iteration.
            row: the type of an element.
        """
        wrong = self.impossible(length, row) or (self.too_short(length) if rows > length else None)
        if wrong is not None:
            raise LayerError(*wrong)

    def stack(self, rows: Sequence[Array], length: int, row: TensorType) -> Array:
        """The elements along the new axis, in the order of the kind, and zeros up to its length.

        Args:
            rows: the elements, in the order of the iterations.
            length: the length of the axis.
            row: the type of an element; if there are no elements, its unknown dims are taken as 0.

        Raises:
            LayerError: the elements differ in shape, or the memory does not suffice.
        """
        shapes = {row.shape for row in rows} or {tuple(max(0, dim) for dim in row.shape)}
        require(
            len(shapes) == 1,
            f"{self.name!r} stacks elements of the shapes {' and '.join(map(str, sorted(shapes)))}",
            "a stacked tensor must have the same shape in all iterations",
        )
        (shape,) = shapes
        if self.kind is LoopOutput.REVERSE:
            rows = rows[::-1]
        stacked = self._zeros((length, *shape), row.dtype)
        if rows:
            stacked[: len(rows)] = rows
        return np.moveaxis(stacked, 0, normal_axis(self.axis, len(shape) + 1))

    def _zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        try:
            return np.zeros(shape, dtype)
        except MemoryError as error:
            what = f"{self.name!r} is {TensorType(dtype, shape)}, and there is not enough memory for it"
            raise LayerError(what, "it holds all elements at once", "give the output a smaller length") from error

    def impossible(self, length: int, row: TensorType) -> Problem | None:
        """The problem of a length that no output can have; None if one can.

        Args:
            length: the length of the new axis.
            row: the type of an element.
        """
        fix = "give the output the number of iterations, or an upper bound of it"
        if length < 0:
            return f"the length of {self.name!r} is {length}, but cannot be negative", _ROWS, fix
        if not (tensor_type := row.with_shape((length, *row.shape))).is_possible:
            return f"{self.name!r} would be {tensor_type}", f"a tensor has at most {LARGEST_TENSOR} bytes", fix
        if self.kind is LoopOutput.REVERSE and length > LARGEST_INDEX:
            return f"the length of {self.name!r} is {length}", f"XLA reverses at most {LARGEST_INDEX} elements", fix
        return None

    def known_length(self, types: TypeTable) -> int | None:
        """The length of a stacked output as far as the types have its value, else None."""
        numbers = types[self.tensor(1)].ints() if self.stacks else None
        return numbers[0] if numbers else None

    def known_error(self, types: TypeTable) -> Problem | None:
        """The problem of a known length that no output can have; None if there is none."""
        length = self.known_length(types)
        return None if length is None else self.impossible(length, types[self.tensor(0)])

    def too_short(self, length: int) -> Problem:
        """The problem of more elements than the axis has."""
        return (
            f"{self.name!r} has room for {length} elements, and {self.loop.name!r} executed more iterations",
            _ROWS,
            "give the output a length that is at least the trip count",
        )
