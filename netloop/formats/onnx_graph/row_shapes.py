"""The shapes of the rows that a loop without iterations would stack.

A stacked output without rows still has the lengths that a row would have. They follow from the shapes of other tensors
only: no layer of the body runs, as it may fail on a tensor without elements, or on numbers that no iteration computed.
"""

from __future__ import annotations

import math

from netloop.formats.onnx_graph.graph import Value
from netloop.formats.onnx_graph.lengths import LengthBuilder, Lengths, is_unknown
from netloop.formats.onnx_graph.shape_rules import SHAPES, LayerInputs
from netloop.formats.onnx_graph.step_exporter import StepExporter
from netloop.formats.onnx_graph.value_scope import ValueScope
from netloop.model.graph import ILayer, ITensor, Operation
from netloop.model.layers.conditional import IIfConditionalInputLayer, IIfConditionalOutputLayer
from netloop.model.layers.control_flow import BoundaryLayer
from netloop.model.layers.loop import IIteratorLayer, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.sources import IShapeLayer
from netloop.values.diagnostics import LayerError
from netloop.values.types import LARGEST_KNOWN_VALUE, UNKNOWN, normal_axis

Query = tuple[ITensor, bool]
"""A tensor, and whether its value is needed or only its shape."""


def row_shape(exporter: StepExporter, tensor: ITensor, scope: ValueScope) -> Value:
    """Return the shape of a tensor that varies in a loop without iterations, int64, 1-D."""
    shapes = _RowShapes(exporter, scope, _RowShapes(exporter, scope))
    return shapes.build.vector(shapes.lengths(tensor))


class _RowShapes:
    """Computes shapes of tensors, and the values that they depend on, each of them once.

    ``first`` has the shapes in the first iteration of each loop, with which those of later ones are compared; None for
    those of the first iteration themselves.
    """

    def __init__(self, exporter: StepExporter, scope: ValueScope, first: _RowShapes | None = None) -> None:
        self.exporter = exporter
        self.first = first
        self.scope = scope
        self.build = LengthBuilder(exporter.builder(scope, name="shape"))
        self.shapes: dict[ITensor, Lengths] = {}
        self.values: dict[ITensor, Value | None] = {}

    def lengths(self, wanted: ITensor) -> Lengths:
        """The lengths of a tensor."""
        stack: list[Query] = [(wanted, False)]
        while stack:
            query = stack.pop()
            if self._has(query):
                continue
            missing = [other for other in self._needed(*query) if not self._has(other)]
            if missing:
                stack += [query, *missing]
            elif query[1]:
                self.values[query[0]] = self._value(query[0])
            else:
                self.shapes[query[0]] = self._shape(query[0])
        return self.shapes[wanted]

    def _has(self, query: Query) -> bool:
        return query[0] in (self.values if query[1] else self.shapes)

    # ------------------------------------------------------------------ dependencies

    def _needed(self, tensor: ITensor, by_value: bool) -> list[Query]:
        """The shapes and values of other tensors that this one depends on."""
        layer = tensor.producer
        if layer is None or self._is_available(tensor):
            return []
        if by_value:
            return self._needed_for_value(layer) if self._follows_from_shapes(tensor) else []
        if self.exporter.types[tensor].is_fixed:
            return []
        if isinstance(layer, BoundaryLayer):
            return self._needed_by_boundary(layer)
        inputs = [(at, source) for at, source in enumerate(layer.inputs) if source is not None]
        shapes = [(source, False) for _, source in inputs if self.exporter.types[source].is_tensor]
        return shapes + [(source, True) for at, source in inputs if at in layer.SHAPE_INPUTS]

    def _needed_for_value(self, layer: ILayer) -> list[Query]:
        return [(source, not isinstance(layer, IShapeLayer)) for source in layer.inputs if source is not None]

    def _needed_by_boundary(self, layer: BoundaryLayer) -> list[Query]:
        if isinstance(layer, IIfConditionalOutputLayer):
            return [(layer.tensor(branch), False) for branch in self._possible_branches(layer)]
        stacks = isinstance(layer, ILoopOutputLayer) and layer.stacks
        return [(layer.tensor(0), False), *([(layer.tensor(1), True)] if stacks else [])]

    def _possible_branches(self, layer: IIfConditionalOutputLayer) -> tuple[int, ...]:
        condition = layer.conditional.condition
        chosen = None if condition is None else self.exporter.types[condition].value
        return (0, 1) if chosen is None else (0,) if chosen else (1,)

    def _is_available(self, tensor: ITensor) -> bool:
        """Whether a tensor has a value without an iteration."""
        type = self.exporter.types[tensor]
        return tensor in self.scope.values or (type.is_tensor and (type.volume == 0 or type.value is not None))

    def _follows_from_shapes(self, tensor: ITensor) -> bool:
        """Whether a layer can compute a value from shapes: one that is small, from values that are."""
        layer = tensor.producer
        if isinstance(layer, IIfConditionalInputLayer):
            return True
        if not isinstance(layer, Operation) or layer.draws:
            return False
        return isinstance(layer, IShapeLayer) or all(self._is_small(other) for other in (tensor, *layer.inputs))

    def _is_small(self, tensor: ITensor | None) -> bool:
        if tensor is None:
            return True
        type = self.exporter.types[tensor]
        is_small = type.is_tensor and type.is_fixed
        return is_small and math.prod(type.shape) * type.dtype.itemsize <= LARGEST_KNOWN_VALUE

    # ------------------------------------------------------------------ values and shapes

    def _value(self, tensor: ITensor) -> Value | None:
        """A value that depends on shapes only; None if it depends on iterations."""
        if self._is_available(tensor):
            return self.exporter.read(tensor, self.scope)
        if tensor.producer is None or not self._follows_from_shapes(tensor):
            return None
        layer = tensor.producer
        if isinstance(layer, IShapeLayer):
            (lengths,) = (self.shapes[source] for source in layer.inputs if source is not None)
            return None if any(map(is_unknown, lengths)) else self.build.vector(lengths)
        if any(source is not None and self.values[source] is None for source in layer.inputs):
            return None
        inputs = [None if source is None else self.values[source] for source in layer.inputs]
        if isinstance(layer, IIfConditionalInputLayer):
            return inputs[0]
        try:
            return self.exporter.translate(layer, self.scope, inputs)[tensor.position]
        except LayerError:  # the exporter itself reports it
            return None

    def _shape(self, tensor: ITensor) -> Lengths:
        type, layer = self.exporter.types[tensor], tensor.producer
        if self._is_available(tensor):
            return self.build.of_value(self.exporter.read(tensor, self.scope), type)
        if type.is_fixed:
            return [self.build.number(length) for length in type.shape]
        assert layer is not None
        lengths = self._of_boundary(layer) if isinstance(layer, BoundaryLayer) else self._of_layer(layer, tensor)
        pairs = zip(type.shape, lengths, strict=True)
        return [length if dim == UNKNOWN else self.build.number(dim) for dim, length in pairs]

    def _of_layer(self, layer: ILayer, tensor: ITensor) -> Lengths:
        rule, types = SHAPES.find(type(layer)), self.exporter.types
        inputs = {at: source for at, source in enumerate(layer.inputs) if source is not None}
        if rule is None or not all(types[source].is_tensor for source in inputs.values()):
            return [self.build.unknown] * types[tensor].rank
        shapes = [None if source is None else self.shapes[source] for source in layer.inputs]
        values = {at: self.values[source] for at, source in inputs.items() if at in layer.SHAPE_INPUTS}
        read = {at: types[source] for at, source in inputs.items()}
        return rule(layer, self.build, LayerInputs(shapes, values, read, types[tensor], tensor.position))

    def _of_boundary(self, layer: BoundaryLayer) -> Lengths:
        if isinstance(layer, IIfConditionalOutputLayer):
            first, *others = (self.shapes[layer.tensor(branch)] for branch in self._possible_branches(layer))
            return [self.build.either(*pair) for pair in zip(first, *others, strict=True)] if others else first
        lengths = self.shapes[layer.tensor(0)]
        if isinstance(layer, IIteratorLayer):
            axis = normal_axis(layer.axis, len(lengths))
            return lengths[:axis] + lengths[axis + 1 :]
        if isinstance(layer, ILoopOutputLayer) and layer.stacks:
            axis = normal_axis(layer.axis, len(lengths) + 1)
            return [*lengths[:axis], *self.build.elements(self.values[layer.tensor(1)], 1), *lengths[axis:]]
        return self._of_recurrence(layer, lengths) if isinstance(layer, IRecurrenceLayer) else lengths

    def _of_recurrence(self, layer: IRecurrenceLayer, lengths: Lengths) -> Lengths:
        """The lengths of the initial value; those that change in an iteration are unknown."""
        if layer.keeps_shape or self.first is None:
            return lengths
        return [self.build.either(*pair) for pair in zip(lengths, self.first.lengths(layer.tensor(1)), strict=True)]
