"""Loops, and the meaning of their four boundary layers.

Inside a loop a tensor is a lazy sequence X0, X1, ...; a boundary layer says which one, in ``element``: a generator that
yields what it needs, a tensor and the trips at which, and is sent its value. Read it beside ``docs/loops.md``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

import numpy as np

from netloop.checked_attributes import Settings, whole
from netloop.diagnostics import Finding, SourceLocation, reason, require
from netloop.enums import LayerType, LoopOutput, TripLimit
from netloop.graph.adding import Adding, AddsLayers
from netloop.graph.call_site import call_site
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, Types, check_tensor, layer
from netloop.graph.tensor import ITensor
from netloop.types import UNKNOWN, Array, TensorType, normal_axis

Trips = dict["ILoop", int]
"""The number of the trip, from 0, in each loop around."""
Demand = tuple["ITensor | ILoop", Trips]
"""What is needed at some trips: an element of a tensor, or the number of trips of a loop."""
Meaning = Generator[Demand, Any, Any]

B = TypeVar("B", bound="ILoopBoundaryLayer")


def check_max_trips(name: str, value: Any) -> None:
    """Complain unless ``value`` is a number of trips that a loop may make, or None for any.

    Raises:
        TypeError: it is no int.
        ValueError: it is negative, or 64 bits do not hold it.
    """
    if value is not None:
        whole(0, (1 << 63) - 1)(name, value)


class ILoop(Adding, Settings):
    """A loop of a network, made by :meth:`INetworkDefinition.add_loop`.

    Nothing is put into a loop: a layer is in it if its inputs vary from trip to trip.

    Attributes:
        name: its name, for messages.
        layers: its boundary layers, in the order in which they were added.
        source_location: the line of the user's source that made it.
    """

    name: str = ""
    layers: list[ILoopBoundaryLayer]
    source_location: SourceLocation

    def __init__(self, network: AddsLayers, name: str, source_location: SourceLocation | None = None) -> None:
        self._network = network
        self.name = name
        vars(self).update(layers=[], source_location=source_location or call_site())

    @property
    def network(self) -> AddsLayers:
        """The network that it is in."""
        return self._network

    def add_trip_limit(self, tensor: ITensor, kind: TripLimit) -> ITripLimitLayer:
        """End the loop after ``tensor`` trips (COUNT: int32 or int64, 0-D, from outside), or before the first trip in
        which it is false (WHILE: bool, 0-D).
        """
        return self._bound(ITripLimitLayer(loop=self, kind=kind), tensor)

    def add_iterator(self, tensor: ITensor, axis: int = 0, reverse: bool = False) -> IIteratorLayer:
        """Read a tensor from outside one slice of ``axis`` a trip; the axis is dropped."""
        return self._bound(IIteratorLayer(loop=self, axis=axis, reverse=reverse), tensor)

    def add_recurrence(self, initial_value: ITensor) -> IRecurrenceLayer:
        """Carry a value from trip to trip; ``set_input(1, tensor)`` on the layer gives the next one."""
        return self._bound(IRecurrenceLayer(loop=self), initial_value, name="initial_value")

    def add_loop_output(self, tensor: ITensor, kind: LoopOutput, axis: int = 0) -> ILoopOutputLayer:
        """Let a tensor out of the loop: its last value, or its values stacked on a new ``axis``, whose length is
        input 1 of the layer.
        """
        return self._bound(ILoopOutputLayer(loop=self, kind=kind, axis=axis), tensor)

    def _bound(self, made: B, tensor: ITensor, name: str = "tensor") -> B:
        self._network.add(made, [check_tensor(tensor, name)])
        self.layers.append(made)
        return made

    def boundary(self, kind: type[B]) -> list[B]:
        """The boundary layers of one class, in the order in which they were added."""
        return [each for each in self.layers if isinstance(each, kind)]

    def limit(self, kind: TripLimit) -> ITripLimitLayer | None:
        """The trip limit of a kind; None if it has none."""
        return next((each for each in self.boundary(ITripLimitLayer) if each.kind is kind), None)

    def count(self, at: Trips) -> Meaning:
        """The value of the COUNT limit, never below 0."""
        limit = self.limit(TripLimit.COUNT)
        require(limit is not None, f"{self.name!r} has no COUNT limit")
        assert limit is not None
        value = yield limit.tensor(0), at
        return max(0, int(value))

    def trips(self, at: Trips, most: int) -> Meaning:
        """The number of trips: the count, or the least n for which element n of the WHILE limit is false; or ``most``,
        if there are more.
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
        """SourceLocation and name, as messages put it."""
        return f"{self.source_location}, ILoop {self.name!r}"

    def endless(self, max_trips: int) -> Finding:
        """The finding that it makes more trips than it may."""
        what = f"{self.name!r} makes more than {max_trips} trips"
        fix = "raise max_trips, or mend the limit that should have ended the loop"
        return Finding("NL609", what, self.where, reason("NL609"), fix, at=self)

    def __repr__(self) -> str:
        return f"<ILoop {self.name!r}>"


class ILoopBoundaryLayer(ILayer):
    """A layer at the boundary of a loop.

    Attributes:
        loop: the loop.
    """

    READ_ONLY = frozenset({"loop", "kind"})

    loop: ILoop

    @abstractmethod
    def element(self, at: Trips, types: TypeTable) -> Meaning:
        """The value of the output at the trips ``at``."""

    def tensor(self, index: int) -> ITensor:
        """Input number ``index``, which is there in a network that passed the check."""
        found = self.inputs[index]
        assert found is not None, f"{self.described} has no input {index}"
        return found


@layer(LayerType.TRIP_LIMIT, "TripLimit")
class ITripLimitLayer(ILoopBoundaryLayer):
    """What ends a loop: COUNT after a number of trips, WHILE before the first trip in which it is false.

    COUNT takes int32 or int64, 0-D, and a negative one is 0 trips; WHILE takes bool, 0-D. The layer has no output.

    Attributes:
        loop: the loop.
        kind: COUNT or WHILE.
    """

    NUM_OUTPUTS = 0

    loop: ILoop
    kind: TripLimit

    def infer(self, x: TensorType) -> Types:
        fits = x.is_index if self.kind is TripLimit.COUNT else x.is_bool
        wanted = "an int32[] or int64[]" if self.kind is TripLimit.COUNT else "a bool[]"
        what = f"the {self.kind.name} limit of {self.loop.name!r} is {x}, and must be {wanted}"
        fix = "" if x.rank == 0 else "take one number of it with add_gather, or reshape it to () with add_shuffle"
        require(fits and x.rank == 0, what, fix=fix)
        return ()

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        return (yield self.tensor(0), at)


@layer(LayerType.RECURRENCE, "Recurrence")
class IRecurrenceLayer(ILoopBoundaryLayer):
    """The sequence X, Y0, Y1, ... for an initial value X (input 0) and a next value Y (input 1).

    Both have one element type and shape. All recurrences of a loop step at once: each next value is made from the old
    ones.

    Attributes:
        loop: the loop.
        keeps_shape: whether the value has one shape in all trips, as in TensorRT. If not, the number of its axes still
            stays, and a loop in which a length does change runs step by step.
    """

    MAX_INPUTS = 2
    TENSORS_ONLY = False

    loop: ILoop
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
    """The slices of a tensor along an axis, one a trip: X[0], X[1], ...; in reverse X[M-1], X[M-2], ... for a count M.

    The axis is dropped. To read past its end is an error, but only if something needs what was read.

    Attributes:
        loop: the loop.
        axis: the axis; a negative one counts from the end.
        reverse: whether to go backwards, from the element before the COUNT limit of the loop.
    """

    loop: ILoop
    axis: int = 0
    reverse: bool = False

    def infer(self, x: TensorType) -> TensorType:
        require(x.rank > 0, f"an iterator goes along an axis, and its input {x} has none")
        axis = normal_axis(self.axis, x.rank)
        return x.with_shape(x.shape[:axis] + x.shape[axis + 1 :])

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        array = yield self.tensor(0), at
        trip = at[self.loop]
        position = (yield from self.loop.count(at)) - 1 - trip if self.reverse else trip
        axis = normal_axis(self.axis, array.ndim)
        require(0 <= position < array.shape[axis], *self.past_the_end(array.shape[axis]))
        return array.take(position, axis)

    @property
    def trips(self) -> ITensor | None:
        """The COUNT limit, before which it begins if it goes in reverse; None if it does not."""
        limit = self.loop.limit(TripLimit.COUNT) if self.reverse else None
        return None if limit is None else limit.tensor(0)

    def past_the_end(self, length: int) -> tuple[str, str, str]:
        """What to say when the loop reads where the axis is not."""
        return (
            f"{self.name!r} reads past the end of axis {self.axis}, which has {length} elements",
            f"{self.loop.name!r} makes more trips than the axis has elements",
            "limit the loop to the length of the axis",
        )


@layer(LayerType.LOOP_OUTPUT, "LoopOutput")
class ILoopOutputLayer(ILoopBoundaryLayer):
    """What leaves a loop of n trips: element n of a sequence, or elements 0 to n-1 stacked on a new axis.

    LAST_VALUE gives element n, which for a recurrence is the value that the next trip would have seen. CONCATENATE and
    REVERSE take the length L of the new axis as input 1 (int32 or int64, 0-D): the n elements, or the same in opposite
    order, come first, and zeros up to L last. A length below n is an error.

    Attributes:
        loop: the loop.
        kind: LAST_VALUE, CONCATENATE or REVERSE.
        axis: where the new axis goes, 0 to the rank of the element; a negative one counts from the end.
    """

    MAX_INPUTS = 2
    TENSORS_ONLY = False
    SHAPE_INPUTS = frozenset({1})

    loop: ILoop
    kind: LoopOutput
    axis: int = 0

    @property
    def stacks(self) -> bool:
        """Whether it lets out all elements, and not only the last."""
        return self.kind is not LoopOutput.LAST_VALUE

    def set_input(self, index: int, tensor: ITensor) -> None:
        """Read ``tensor`` as input ``index``; a length makes a LAST_VALUE output CONCATENATE, as in TensorRT."""
        super().set_input(index, tensor)
        if index == 1 and not self.stacks:
            vars(self)["kind"] = LoopOutput.CONCATENATE
            self.types.forget(self.outputs)

    def infer(self, x: TensorType, length: TensorType | None = None) -> TensorType:
        if not self.stacks:
            return x.without_value()
        require(x.is_tensor, f"the {self.kind.name} output {self.name!r} stacks tensors, not {x}")
        require(
            length is not None,
            f"the {self.kind.name} output {self.name!r} has no length",
            "its new axis has room for a number of elements that the trips alone do not tell",
            "call set_input(1, length) on the layer, with an int32 or int64 scalar",
        )
        assert length is not None
        require(length.is_index and length.rank == 0, f"the length is {length}, and must be an int32[] or int64[]")
        known = length.ints()
        room = known[0] if known else UNKNOWN
        require(known is None or room >= 0, f"the length is {room}, and cannot be negative")
        axis = normal_axis(self.axis, x.rank + 1)
        return x.with_shape((*x.shape[:axis], room, *x.shape[axis:]))

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        trips = yield self.loop, at
        if not self.stacks:
            return (yield self.tensor(0), {**at, self.loop: trips})
        length = int((yield self.tensor(1), at))
        require(trips <= length, *self.too_short(length))
        rows: list[Array] = []
        for trip in range(trips):
            rows.append((yield self.tensor(0), {**at, self.loop: trip}))
        return self.stack(rows, length, types[self.tensor(0)])

    def stack(self, rows: Sequence[Array], length: int, row: TensorType) -> Array:
        """The elements on the new axis, in the order of the kind, and zeros up to its length.

        Args:
            rows: the elements, in the order of the trips.
            length: the length of the axis.
            row: the type of an element; without any, a length that it leaves open is 0.

        Raises:
            LayerError: the elements are of several shapes.
        """
        shapes = {each.shape for each in rows} or {tuple(max(0, length) for length in row.shape)}
        require(
            len(shapes) == 1,
            f"{self.name!r} stacks elements of the shapes {' and '.join(map(str, sorted(shapes)))}",
            "what is stacked has one shape in all trips",
        )
        (shape,) = shapes
        if self.kind is LoopOutput.REVERSE:
            rows = rows[::-1]
        stacked = np.zeros((length, *shape), row.dtype)
        if rows:
            stacked[: len(rows)] = rows
        return np.moveaxis(stacked, 0, normal_axis(self.axis, len(shape) + 1))

    def too_short(self, length: int) -> tuple[str, str, str]:
        """What to say when there are more elements than room."""
        return (
            f"{self.name!r} has room for {length} elements, and {self.loop.name!r} made more than {length} trips",
            "a length below the number of trips has no meaning",
            "give the output a length of at least the number of trips",
        )
