"""The exporter of loops, each as one Loop.

COUNT is the trip count of the Loop, and WHILE its condition. The first condition is computed before the loop from the
initial states, and each later one at the end of the previous iteration from the next states.
"""

from collections.abc import Sequence

import numpy as np

from netloop.formats.onnx_graph.graph import OnnxGraph, Value
from netloop.formats.onnx_graph.node_builder import BOOL, INT64, NodeBuilder
from netloop.formats.onnx_graph.row_shapes import row_shape
from netloop.formats.onnx_graph.step_exporter import StepExporter
from netloop.formats.onnx_graph.value_scope import ValueScope
from netloop.formats.shared.non_negative import is_non_negative
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import IIteratorLayer, ILoopOutputLayer
from netloop.model.nest import LoopStep
from netloop.values.enums import LoopOutput, TripLimit
from netloop.values.types import UNKNOWN, TensorType, normal_axis

SCALAR = TensorType(INT64)
FLAG = TensorType(BOOL)
NOWHERE = np.iinfo(np.int64).max
"""An index past the end of every axis."""


def export_loop(exporter: StepExporter, step: LoopStep, scope: ValueScope) -> None:
    """Add a Loop, and the nodes that arrange its outputs."""
    if step.outputs:
        _LoopExporter(exporter, step, scope).export()


def export_iterator(exporter: StepExporter, layer: IIteratorLayer, scope: ValueScope) -> Value:
    """Add the slice that an iterator reads in the current iteration."""
    make = exporter.builder(scope, layer)
    place = scope.iterations[layer.loop]
    if layer.reverse:
        limit = layer.loop.limit(TripLimit.COUNT)
        assert limit is not None
        count = make.cast(exporter.read(limit.tensor(0), scope), INT64)
        place = make.op("Sub", make.op("Sub", count, make.number(1, INT64)), place)
        if layer.loop in scope.ended:
            # after the last iteration there is no slice, and Gather would read -1 as the last one
            behind = make.compare("Less", place, make.number(0, INT64))
            place = make.where(behind, make.number(NOWHERE, INT64), place)
    return make.op("Gather", exporter.read(layer.tensor(0), scope), place, axis=layer.axis)


class _LoopExporter:
    """Exports one loop."""

    def __init__(self, exporter: StepExporter, step: LoopStep, scope: ValueScope) -> None:
        self.exporter = exporter
        self.step = step
        self.scope = scope
        self.make = exporter.builder(scope, name=step.loop.name)
        count, self.while_limit = (step.loop.limit(kind) for kind in (TripLimit.COUNT, TripLimit.WHILE))
        self.count = None if count is None else self.make.cast(exporter.read(count.tensor(0), scope), INT64)
        self.states = [recurrence.outputs[0] for recurrence in step.recurrences]
        self.stacked = [output for output in step.outputs if output.stacks]
        self.last = [output for output in step.outputs if not output.stacks]
        self.starts: bool | None = None
        self.counts_iterations = self.while_limit is not None and any(
            output.tensor(0) not in self.states for output in self.last
        )

    def export(self) -> None:
        """Add the nodes of the loop and of its outputs."""
        initial = self._states_of([recurrence.tensor(0) for recurrence in self.step.recurrences], self.scope)
        if self.states or self.stacked or self.counts_iterations:
            states, trip_count, rows = self._repeat(initial)
        else:
            states, trip_count, rows = [], None, []
        for layer in self.last:
            self.scope.values[layer.outputs[0]] = self._last(layer, states, trip_count)
        for layer, row in zip(self.stacked, rows, strict=True):
            value = self._arranged(layer, row)
            value.name = layer.outputs[0].name
            self.scope.values[layer.outputs[0]] = value

    def _repeat(self, initial: Sequence[Value]) -> tuple[list[Value], Value | None, list[Value]]:
        """Add the Loop; return the last states, the trip count if it is needed, and the rows of stacked outputs."""
        first = self.make.number(0, INT64)
        condition = self.make.number(True, BOOL)
        if self.while_limit is not None:
            condition = self._condition(self.scope, initial, first)
        self.starts = self._starts(condition)
        counter = [first] if self.counts_iterations else []
        states = [Value(type.dtype, f"{name} last") for name, type in self._state_types()]
        trip_count = [Value(INT64, f"{self.step.loop.name} trip count") for _ in counter]
        rows = [Value(self.exporter.types[output.tensor(0)].dtype, f"{output.name} rows") for output in self.stacked]
        self.make.node(
            "Loop", [self.count, condition, *initial, *counter], [*states, *trip_count, *rows], body=self._body()
        )
        return states, trip_count[0] if trip_count else None, rows

    def _starts(self, condition: Value) -> bool | None:
        """Whether the first iteration runs; None if that is known in the call only."""
        counts = self.count is None or (None if self.count.array is None else bool(self.count.array > 0))
        holds = None if condition.array is None else bool(condition.array)
        if False in (counts, holds):
            return False
        return True if counts and holds else None

    def _state_types(self) -> list[tuple[str, TensorType]]:
        return [(state.name, self.exporter.types[state].without_value()) for state in self.states]

    def _states_of(self, tensors: Sequence[ITensor], scope: ValueScope) -> list[Value]:
        """The values of tensors, with the types of the states."""
        types, make = self.exporter.types, self.exporter.builder(scope, name=self.step.loop.name)
        pairs = zip(tensors, self.states, strict=True)
        return [make.fitted(self.exporter.read(tensor, scope), types[tensor], types[state]) for tensor, state in pairs]

    # ------------------------------------------------------------------ the body

    def _body(self) -> OnnxGraph:
        graph = OnnxGraph(self.step.loop.name)
        inside = self.scope.inside(graph)
        make = self.exporter.builder(inside, name=self.step.loop.name)
        iteration, flag = graph.add_input("iteration", SCALAR), graph.add_input("condition", FLAG)
        inside.iterations[self.step.loop] = iteration
        for (name, type), tensor in zip(self._state_types(), self.states, strict=True):
            inside.values[tensor] = graph.add_input(name, type)
        if self.counts_iterations:
            graph.add_input("trip count before", SCALAR)
        following = [recurrence.tensor(1) for recurrence in self.step.recurrences]
        elements = [output.tensor(0) for output in self.stacked]
        self.exporter.export_steps(self.step.body.needed([*following, *elements]), inside)
        after = self._states_of(following, inside)
        next_iteration = make.op("Add", iteration, make.number(1, INT64)) if self.while_limit is not None else iteration
        condition = flag if self.while_limit is None else self._condition(inside, after, next_iteration)
        graph.add_output(condition, FLAG, "next condition")
        for value, (name, type) in zip(after, self._state_types(), strict=True):
            graph.add_output(value, type, f"{name} next")
        if self.counts_iterations:
            graph.add_output(next_iteration, SCALAR, "trip count")
        for tensor in elements:
            type = self.exporter.types[tensor].without_value()
            graph.add_output(self.exporter.read(tensor, inside), type, f"{tensor.name} row")
        return graph

    def _condition(self, scope: ValueScope, states: Sequence[Value], iteration: Value) -> Value:
        """Whether an iteration runs. WHILE is evaluated only below COUNT."""
        if self.count is None:
            return self._while_holds(scope, states, iteration)
        is_below = self._is_below(scope, iteration)
        if is_below.array is not None:
            return self._while_holds(scope, states, iteration) if is_below.array else is_below
        then, other = OnnxGraph("below the count"), OnnxGraph("at the count")
        holds = self._while_holds(scope.inside(then), states, iteration)
        make = self.exporter.builder(scope, name=self.step.loop.name)
        if holds.array is not None:
            return is_below if holds.array else holds
        if not then.nodes:
            return make.op("And", is_below, holds)
        then.add_output(holds, FLAG, "next condition")
        other.add_output(self.make.number(False, BOOL), FLAG, "next condition")
        result = Value(BOOL, "next condition")
        make.node("If", [is_below], [result], then_branch=then, else_branch=other)
        return result

    def _is_below(self, scope: ValueScope, iteration: Value) -> Value:
        """Whether the number of an iteration is below COUNT, a constant where both are known."""
        make = self.exporter.builder(scope, name=self.step.loop.name)
        assert self.count is not None
        if iteration.array is None or self.count.array is None:
            return make.compare("Less", iteration, self.count)
        return make.number(iteration.array < self.count.array, BOOL)

    def _while_holds(self, scope: ValueScope, states: Sequence[Value], iteration: Value) -> Value:
        assert self.while_limit is not None
        return self._element(self.while_limit.tensor(0), scope.inside(), states, iteration)

    def _element(self, tensor: ITensor, scope: ValueScope, states: Sequence[Value], iteration: Value | None) -> Value:
        """The value of a tensor in an iteration with the given states."""
        scope.values.update(zip(self.states, states, strict=True))
        if iteration is not None:
            scope.iterations[self.step.loop] = iteration
        self.exporter.export_steps(self.step.body.needed([tensor]), scope)
        return self.exporter.read(tensor, scope)

    # ------------------------------------------------------------------ outputs

    def _last(self, layer: ILoopOutputLayer, states: Sequence[Value], trip_count: Value | None) -> Value:
        tensor = layer.tensor(0)
        if tensor in self.states:
            state = states[self.states.index(tensor)]
            state.name = layer.outputs[0].name
            return state
        if trip_count is None and self.count is not None:
            trip_count = self.make.op("Max", self.count, self.make.number(0, INT64))
        after = self.scope.inside()
        after.ended.add(self.step.loop)
        return self._element(tensor, after, states, trip_count)

    def _arranged(self, layer: ILoopOutputLayer, rows: Value) -> Value:
        """The stacked output: the rows in its order along its axis, then zeros up to its length."""
        make = self.exporter.builder(self.scope, layer)
        row = self.exporter.types[layer.tensor(0)]
        if self.starts is False:
            return make.move_axis(self._zeros(make, layer), row.rank + 1, 0, normal_axis(layer.axis, row.rank + 1))
        if not row.is_fixed and not self.starts:
            rows = self._with_lengths(make, layer, rows)
        if layer.kind is LoopOutput.REVERSE:
            rows = make.op("Slice", rows, make.int64s(-1), make.int64s(-NOWHERE), make.int64s(0), make.int64s(-1))
        if not self._is_filled(layer):
            rows = self._padded(make, layer, rows)
        return make.move_axis(rows, row.rank + 1, 0, normal_axis(layer.axis, row.rank + 1))

    def _is_filled(self, layer: ILoopOutputLayer) -> bool:
        """Whether the iterations fill a stacked output: its length is the COUNT, and cannot be negative."""
        row, count = self.exporter.types[layer.tensor(0)], self.step.loop.limit(TripLimit.COUNT)
        length = self.exporter.types[layer.outputs[0]].shape[normal_axis(layer.axis, row.rank + 1)]
        if length != UNKNOWN:
            return length == self._known_trip_count()
        is_count = self.while_limit is None and count is not None and layer.tensor(1) is count.tensor(0)
        return is_count and is_non_negative(layer.tensor(1), self.exporter.types)

    def _known_trip_count(self) -> int | None:
        if self.starts is False:
            return 0
        if self.while_limit is not None or self.count is None or self.count.array is None:
            return None
        return int(self.count.array)

    def _zeros(self, make: NodeBuilder, layer: ILoopOutputLayer) -> Value:
        """The stacked output of a loop that never runs, its new axis first."""
        length = make.reshape(make.cast(self.exporter.read(layer.tensor(1), self.scope), INT64), [1])
        lengths = row_shape(self.exporter, layer.tensor(0), self.scope.inside())
        return make.full(make.concat([length, lengths], 0), 0, self.exporter.types[layer.tensor(0)].dtype)

    def _padded(self, make: NodeBuilder, layer: ILoopOutputLayer, rows: Value) -> Value:
        """The rows and zeros after them. If the output is too short, the length of the zeros is negative, a failure."""
        length = make.reshape(make.cast(self.exporter.read(layer.tensor(1), self.scope), INT64), [1])
        missing = make.op("Sub", length, make.shape(rows, 0, 1))
        lengths = make.concat([missing, make.shape(rows, 1)], 0)
        return make.concat([rows, make.full(lengths, 0, rows.dtype)], 0)

    def _with_lengths(self, make: NodeBuilder, layer: ILoopOutputLayer, rows: Value) -> Value:
        """The rows in the right shape even if there are none; Loop itself would make the lengths of a row 0."""
        none, some = OnnxGraph("no iterations"), OnnxGraph("some iterations")
        outside = self.scope.inside(none)
        value = row_shape(self.exporter, layer.tensor(0), outside)
        kind = TensorType(INT64, (self.exporter.types[layer.tensor(0)].rank,))
        none.add_output(value, kind, "lengths of a row")
        inner = self.exporter.builder(self.scope.inside(some), layer)
        some.add_output(inner.shape(rows, 1), kind, "lengths of the rows")
        lengths = Value(INT64, f"{layer.name} lengths")
        trip_count = make.shape(rows, 0, 1)
        is_none = make.compare("Equal", make.scalar(trip_count), make.number(0, INT64))
        make.node("If", [is_none], [lengths], then_branch=none, else_branch=some)
        return make.reshape(rows, make.concat([trip_count, lengths], 0))
