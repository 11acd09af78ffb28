"""The shapes of the rows that a loop without iterations would stack.

A stacked output without rows still has the lengths that a row would have. Shapes mostly do not depend on values, so the
layers that compute a row run on zeros of the shapes of their inputs.
"""

from __future__ import annotations

from netloop.diagnostics import LayerError
from netloop.graph.layer import ILayer, Operation
from netloop.graph.tensor import ITensor
from netloop.layers.conditional import IIfConditionalInputLayer
from netloop.layers.control_flow import BoundaryLayer
from netloop.layers.loop import IIteratorLayer, ILoopOutputLayer
from netloop.layers.pointwise import POINTWISE
from netloop.layers.sources import IShapeLayer
from netloop.onnx_graph.graph import Value
from netloop.onnx_graph.node_builder import INT64
from netloop.onnx_graph.step_exporter import StepExporter
from netloop.onnx_graph.value_scope import ValueScope
from netloop.types import normal_axis

Query = tuple[ITensor, bool]
"""A tensor, and whether its value is needed or only its shape."""


def row_shape(exporter: StepExporter, tensor: ITensor, scope: ValueScope) -> Value:
    """Return the shape of a tensor that varies in a loop without iterations, int64, 1-D."""
    return _RowShapes(exporter, scope).of(tensor)


class _RowShapes:
    """Computes shapes of tensors, and the values that they depend on, each of them once."""

    def __init__(self, exporter: StepExporter, scope: ValueScope) -> None:
        self.exporter = exporter
        self.scope = scope
        self.make = exporter.builder(scope, name="shape")
        self.known: dict[Query, Value | None] = {}

    def of(self, wanted: ITensor) -> Value:
        stack: list[Query] = [(wanted, False)]
        while stack:
            query = stack.pop()
            if query in self.known:
                continue
            missing = [each for each in self._needed(*query) if each not in self.known]
            if missing:
                stack += [query, *missing]
            else:
                tensor, by_value = query
                self.known[query] = self._value(tensor) if by_value else self._shape(tensor)
        return self._found(wanted)

    def _found(self, tensor: ITensor) -> Value:
        shape = self.known[tensor, False]
        assert shape is not None
        return shape

    def _needed(self, tensor: ITensor, by_value: bool) -> list[Query]:
        """The shapes and values of other tensors that this one depends on."""
        layer, is_known = tensor.producer, self.exporter.types[tensor].is_fixed and not by_value
        if layer is None or is_known or self._is_available(tensor) or self._is_held(tensor):
            return []
        if isinstance(layer, IIfConditionalInputLayer):
            return [(layer.tensor(0), by_value)]
        if isinstance(layer, BoundaryLayer):
            return [] if by_value else self._needed_of_boundary(layer)
        inputs = enumerate(layer.inputs)
        return [(each, self._is_read(layer, at, by_value)) for at, each in inputs if each is not None]

    def _needed_of_boundary(self, layer: BoundaryLayer) -> list[Query]:
        stacks = isinstance(layer, ILoopOutputLayer) and layer.stacks
        return [(layer.tensor(0), False), *([(layer.tensor(1), True)] if stacks else [])]

    def _is_read(self, layer: ILayer, position: int, by_value: bool) -> bool:
        """Whether the shape, or the value, of a layer's output depends on the value of an input."""
        return position in layer.SHAPE_INPUTS or (by_value and not isinstance(layer, IShapeLayer))

    def _is_available(self, tensor: ITensor) -> bool:
        """Whether a tensor has a value without an iteration."""
        return tensor in self.scope.values or self.exporter.types[tensor].value is not None

    def _is_held(self, tensor: ITensor) -> bool:
        """Whether a tensor comes from a sequence or an optional value, whose shape does not say what it holds."""
        inputs = tensor.producer.inputs if tensor.producer is not None else []
        return any(not self.exporter.types[each].is_tensor for each in inputs if each is not None)

    # ------------------------------------------------------------------ values and shapes

    def _value(self, tensor: ITensor) -> Value | None:
        """A value that depends on shapes only; None if it depends on iterations."""
        if self._is_available(tensor):
            return self.exporter.read(tensor, self.scope)
        layer = tensor.producer
        if self._is_held(tensor):
            return None
        if isinstance(layer, IIfConditionalInputLayer):
            return self.known[layer.tensor(0), True]
        return self._made(layer, tensor, True) if isinstance(layer, Operation) and not layer.draws else None

    def _shape(self, tensor: ITensor) -> Value:
        type, layer = self.exporter.types[tensor], tensor.producer
        if type.is_fixed:
            return self.make.int64s(*type.shape)
        if self._is_available(tensor):
            return self.make.shape(self.exporter.read(tensor, self.scope))
        assert layer is not None
        if isinstance(layer, BoundaryLayer):
            return self._shape_of_boundary(layer)
        if isinstance(layer, POINTWISE):
            return self._broadcast([self._found(each) for each in layer.inputs if each is not None])
        made = None if self._is_held(tensor) else self._made(layer, tensor)
        return self.make.int64s(*(max(0, length) for length in type.shape)) if made is None else self.make.shape(made)

    def _shape_of_boundary(self, layer: BoundaryLayer) -> Value:
        lengths = self._found(layer.tensor(0))
        if isinstance(layer, IIteratorLayer):
            rank = self.exporter.types[layer.tensor(0)].rank
            kept = (axis for axis in range(rank) if axis != normal_axis(layer.axis, rank))
            return self.make.gather(lengths, self.make.int64s(*kept), 0)
        if isinstance(layer, ILoopOutputLayer) and layer.stacks:
            return self._stacked(layer, lengths)
        return lengths

    def _stacked(self, layer: ILoopOutputLayer, lengths: Value) -> Value:
        rank = self.exporter.types[layer.outputs[0]].rank
        axis = normal_axis(layer.axis, rank)
        given = self.known[layer.tensor(1), True]
        length = self.make.int64s(0) if given is None else self.make.reshape(self.make.cast(given, INT64), [1])
        before = self.make.gather(lengths, self.make.int64s(*range(axis)), 0)
        after = self.make.gather(lengths, self.make.int64s(*range(axis, rank - 1)), 0)
        return self.make.concat([before, length, after], 0)

    def _broadcast(self, shapes: list[Value]) -> Value:
        """The shape that shapes are broadcast to."""
        if len(shapes) == 1:
            return shapes[0]
        made, *others = (self.make.full(each, 0, INT64) for each in shapes)
        for each in others:
            made = self.make.op("Add", made, each)
        return self.make.shape(made)

    def _made(self, layer: ILayer, tensor: ITensor, by_value: bool = False) -> Value | None:
        """The output of a layer for zeros where only shapes matter; None if it reads a value of iterations."""
        inputs: list[Value | None] = []
        for position, each in enumerate(layer.inputs):
            if each is None:
                inputs.append(None)
            elif not self._is_read(layer, position, by_value):
                inputs.append(self._zeros(each))
            elif self.known[each, True] is None:
                return None
            else:
                inputs.append(self.known[each, True])
        try:
            return self.exporter.translate(layer, self.scope, inputs)[tensor.position]
        except LayerError:  # the exporter itself reports it
            return None

    def _zeros(self, tensor: ITensor) -> Value:
        if self._is_available(tensor):
            return self.exporter.read(tensor, self.scope)
        return self.make.full(self._found(tensor), 0, self.exporter.types[tensor].dtype)
