"""A loop as Loop.

The number of trips is COUNT, and WHILE the condition: the first is computed before the loop, from the states it starts
with, and each other at the end of the trip before, from the next states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from netloop.enums import LoopOutput, TripLimit
from netloop.graph.tensor import ITensor
from netloop.layers.loop import IIteratorLayer, ILoopOutputLayer
from netloop.nest import LoopStep
from netloop.onnx_graph.graph import Graph, Value
from netloop.onnx_graph.node_builder import BOOL, INT64, NodeBuilder
from netloop.onnx_graph.rows import row_shape
from netloop.onnx_graph.scope import Scope
from netloop.types import UNKNOWN, TensorType, normal_axis

if TYPE_CHECKING:
    from netloop.onnx_graph.exporter import NetworkExporter

SCALAR = TensorType(INT64)
FLAG = TensorType(BOOL)
NOWHERE = np.iinfo(np.int64).max
"""An index that no axis has."""


def export_loop(walk: NetworkExporter, step: LoopStep, scope: Scope) -> None:
    """Add a Loop, and what arranges its outputs."""
    if step.outputs:
        _Loop(walk, step, scope).export()


def export_iterator(walk: NetworkExporter, layer: IIteratorLayer, scope: Scope) -> Value:
    """The slice that an iterator reads in the present trip."""
    make = walk.make(scope, layer)
    place = scope.trip(layer.loop)
    if layer.reverse:
        limit = layer.loop.limit(TripLimit.COUNT)
        assert limit is not None
        count = make.cast(walk.read(limit.tensor(0), scope), INT64)
        place = make.op("Sub", make.op("Sub", count, make.number(1, INT64)), place)
        if layer.loop in scope.ended:
            behind = make.compare("Less", place, make.number(0, INT64))
            place = make.where(behind, make.number(NOWHERE, INT64), place)
    return make.op("Gather", walk.read(layer.tensor(0), scope), place, axis=layer.axis)


class _Loop:
    """A loop, with the values around it."""

    def __init__(self, walk: NetworkExporter, step: LoopStep, scope: Scope) -> None:
        self.walk = walk
        self.step = step
        self.scope = scope
        self.make = walk.make(scope, name=step.loop.name)
        count, self.goes_on = (step.loop.limit(kind) for kind in (TripLimit.COUNT, TripLimit.WHILE))
        self.count = None if count is None else self.make.cast(walk.read(count.tensor(0), scope), INT64)
        self.states = [each.outputs[0] for each in step.recurrences]
        self.stacked = [each for each in step.outputs if each.stacks]
        self.last = [each for each in step.outputs if not each.stacks]
        self.counts_trips = self.goes_on is not None and any(each.tensor(0) not in self.states for each in self.last)

    def export(self) -> None:
        """Add all nodes."""
        initial = self._states_of([each.tensor(0) for each in self.step.recurrences], self.scope)
        if self.states or self.stacked or self.counts_trips:
            states, trips, rows = self._repeat(initial)
        else:
            states, trips, rows = [], None, []
        for layer in self.last:
            self.scope.values[layer.outputs[0]] = self._last(layer, states, trips)
        for layer, each in zip(self.stacked, rows, strict=True):
            made = self._arranged(layer, each)
            made.name = layer.outputs[0].name
            self.scope.values[layer.outputs[0]] = made

    def _repeat(self, initial: Sequence[Value]) -> tuple[list[Value], Value | None, list[Value]]:
        """The states after the last trip, the number of trips if it is asked for, and the rows of stacked outputs."""
        first = self.make.number(0, INT64)
        condition = self.make.number(True, BOOL)
        if self.goes_on is not None:
            condition = self._condition(self.scope, initial, first)
        counter = [first] if self.counts_trips else []
        states = [Value(type.dtype, f"{name} last") for name, type in self._state_types()]
        trips = [Value(INT64, f"{self.step.loop.name} trips") for _ in counter]
        rows = [Value(self.walk.types[each.tensor(0)].dtype, f"{each.name} rows") for each in self.stacked]
        self.make.node("Loop", [self.count, condition, *initial, *counter], [*states, *trips, *rows], body=self._body())
        return states, trips[0] if trips else None, rows

    def _state_types(self) -> list[tuple[str, TensorType]]:
        return [(each.name, self.walk.types[each].without_value()) for each in self.states]

    def _states_of(self, tensors: Sequence[ITensor], scope: Scope) -> list[Value]:
        """The values of tensors as states."""
        types, make = self.walk.types, self.walk.make(scope, name=self.step.loop.name)
        pairs = zip(tensors, self.states, strict=True)
        return [make.fitted(self.walk.read(each, scope), types[each], types[state]) for each, state in pairs]

    # ------------------------------------------------------------------ the body

    def _body(self) -> Graph:
        graph = Graph(self.step.loop.name)
        inside = self.scope.inside(graph)
        make = self.walk.make(inside, name=self.step.loop.name)
        trip, flag = graph.take("trip", SCALAR), graph.take("goes on", FLAG)
        inside.trips[self.step.loop] = trip
        for (name, type), tensor in zip(self._state_types(), self.states, strict=True):
            inside.values[tensor] = graph.take(name, type)
        if self.counts_trips:
            graph.take("trips before", SCALAR)
        following = [each.tensor(1) for each in self.step.recurrences]
        elements = [each.tensor(0) for each in self.stacked]
        self.walk.run(self.step.body.needed([*following, *elements]), inside)
        after = self._states_of(following, inside)
        next_trip = make.op("Add", trip, make.number(1, INT64)) if self.goes_on is not None else trip
        condition = flag if self.goes_on is None else self._condition(inside, after, next_trip)
        graph.give(condition, FLAG, "goes on then")
        for value, (name, type) in zip(after, self._state_types(), strict=True):
            graph.give(value, type, f"{name} next")
        if self.counts_trips:
            graph.give(next_trip, SCALAR, "trips")
        for tensor in elements:
            graph.give(self.walk.read(tensor, inside), self.walk.types[tensor].without_value(), f"{tensor.name} row")
        return graph

    def _condition(self, scope: Scope, states: Sequence[Value], trip: Value) -> Value:
        """Whether there is a trip of some number; WHILE is asked only below COUNT."""
        if self.count is None:
            return self._asked(scope, states, trip)
        then, other = Graph("below the count"), Graph("at the count")
        then.give(self._asked(scope.inside(then), states, trip), FLAG, "goes on then")
        other.give(self.make.number(False, BOOL), FLAG, "ends then")
        make = self.walk.make(scope, name=self.step.loop.name)
        made = Value(BOOL, "goes on then")
        make.node("If", [make.compare("Less", trip, self.count)], [made], then_branch=then, else_branch=other)
        return made

    def _asked(self, scope: Scope, states: Sequence[Value], trip: Value) -> Value:
        assert self.goes_on is not None
        return self._element(self.goes_on.tensor(0), scope.inside(), states, trip)

    def _element(self, tensor: ITensor, scope: Scope, states: Sequence[Value], trip: Value | None) -> Value:
        """The element of a tensor in a trip with the given states."""
        scope.values.update(zip(self.states, states, strict=True))
        if trip is not None:
            scope.trips[self.step.loop] = trip
        self.walk.run(self.step.body.needed([tensor]), scope)
        return self.walk.read(tensor, scope)

    # ------------------------------------------------------------------ outputs

    def _last(self, layer: ILoopOutputLayer, states: Sequence[Value], trips: Value | None) -> Value:
        tensor = layer.tensor(0)
        if tensor in self.states:
            state = states[self.states.index(tensor)]
            state.name = layer.outputs[0].name
            return state
        if trips is None and self.count is not None:
            trips = self.make.op("Max", self.count, self.make.number(0, INT64))
        after = self.scope.inside()
        after.ended.add(self.step.loop)
        return self._element(tensor, after, states, trips)

    def _arranged(self, layer: ILoopOutputLayer, rows: Value) -> Value:
        """The rows in the order of the output, then zeros up to its length, along its axis."""
        make = self.walk.make(self.scope, layer)
        row = self.walk.types[layer.tensor(0)]
        if not row.is_fixed and self._may_make_no_trip():
            rows = self._with_lengths(make, layer, rows)
        if layer.kind is LoopOutput.REVERSE:
            rows = make.op("Slice", rows, make.ints(-1), make.ints(-NOWHERE), make.ints(0), make.ints(-1))
        room = self.walk.types[layer.outputs[0]].shape[normal_axis(layer.axis, row.rank + 1)]
        if room == UNKNOWN or room != self._known_trips():
            rows = self._padded(make, layer, rows)
        return make.move_axis(rows, row.rank + 1, 0, normal_axis(layer.axis, row.rank + 1))

    def _known_trips(self) -> int | None:
        if self.goes_on is not None or self.count is None or self.count.array is None:
            return None
        return max(0, int(self.count.array))

    def _may_make_no_trip(self) -> bool:
        return not self._known_trips()

    def _padded(self, make: NodeBuilder, layer: ILoopOutputLayer, rows: Value) -> Value:
        """The rows and zeros after them; too little room is an error, as no shape has a negative length."""
        length = make.reshape(make.cast(self.walk.read(layer.tensor(1), self.scope), INT64), 1)
        missing = make.op("Sub", length, make.shape(rows, 0, 1))
        lengths = make.concat(missing, make.shape(rows, 1))
        return make.concat(rows, make.full(lengths, 0, rows.dtype))

    def _with_lengths(self, make: NodeBuilder, layer: ILoopOutputLayer, rows: Value) -> Value:
        """The rows, with the lengths of a row even if there is none: Loop itself would make them 0."""
        none, some = Graph("no trips"), Graph("some trips")
        outside = self.scope.inside(none)
        found = row_shape(self.walk, layer.tensor(0), outside)
        kind = TensorType(INT64, (self.walk.types[layer.tensor(0)].rank,))
        none.give(found, kind, "lengths of a row")
        some.give(self.walk.make(self.scope.inside(some), layer).shape(rows, 1), kind, "lengths of the rows")
        lengths = Value(INT64, f"{layer.name} lengths")
        trips = make.shape(rows, 0, 1)
        is_none = make.compare("Equal", make.scalar(trips), make.number(0, INT64))
        make.node("If", [is_none], [lengths], then_branch=none, else_branch=some)
        return make.shaped(rows, make.concat(trips, lengths))
