"""The shape of what a loop would stack, found without a trip.

Where a loop makes no trip, an output that stacks its elements has none, and yet the lengths that they would have had.
Shapes need no values: the layers that make an element run on zeros of the shapes that they would have read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netloop.diagnostics import LayerError
from netloop.graph.tensor import ITensor
from netloop.layers.conditional import IIfConditionalInputLayer, IIfConditionalOutputLayer
from netloop.layers.loop import IIteratorLayer, ILoopOutputLayer, IRecurrenceLayer
from netloop.layers.pointwise import (
    IActivationLayer,
    ICastLayer,
    IElementWiseLayer,
    IIdentityLayer,
    ISelectLayer,
    IUnaryLayer,
)
from netloop.onnx.save.graph import Value
from netloop.onnx.save.make import INT64, Make
from netloop.onnx.save.scope import Scope
from netloop.onnx.save.table import EXPORTERS
from netloop.types import UNKNOWN, normal_axis

if TYPE_CHECKING:
    from netloop.onnx.save.walk import Walk

POINTWISE = (IActivationLayer, IUnaryLayer, IElementWiseLayer, ISelectLayer, ICastLayer, IIdentityLayer)


def row_shape(walk: Walk, tensor: ITensor, scope: Scope) -> Value:
    """The lengths of a tensor that varies in loops that make no trip, int64, 1-D."""
    return _Shapes(walk, scope).of(tensor)


class _Shapes:
    """The shapes of tensors, each found once."""

    def __init__(self, walk: Walk, scope: Scope) -> None:
        self.walk = walk
        self.scope = scope
        self.make = walk.make(scope, name="shape")
        self.known: dict[ITensor, Value] = {}

    def of(self, wanted: ITensor) -> Value:
        stack = [wanted]
        while stack:
            tensor = stack[-1]
            missing = [each for each in self._needed(tensor) if each not in self.known]
            if missing and tensor not in self.known:
                stack += missing
            else:
                self.known.setdefault(tensor, self._found(tensor))
                stack.pop()
        return self.known[wanted]

    def _needed(self, tensor: ITensor) -> list[ITensor]:
        """The tensors on whose shapes that of a tensor depends."""
        layer = tensor.producer
        if layer is None or self.walk.types[tensor].is_fixed or self._is_outside(tensor):
            return []
        if isinstance(layer, IRecurrenceLayer | IIteratorLayer | IIfConditionalInputLayer | ILoopOutputLayer):
            return [layer.inputs[0]]  # pyright: ignore[reportReturnType]
        return [each for each in layer.inputs if each is not None]

    def _is_outside(self, tensor: ITensor) -> bool:
        scope: Scope | None = self.scope
        while scope is not None:
            if tensor in scope.values:
                return True
            scope = scope.around
        return False

    def _found(self, tensor: ITensor) -> Value:
        type = self.walk.types[tensor]
        if type.is_fixed:
            return self.make.ints(*type.shape)
        if self._is_outside(tensor):
            return self.make.shape(self.walk.read(tensor, self.scope))
        layer = tensor.producer
        if isinstance(layer, IRecurrenceLayer | IIfConditionalInputLayer):
            return self.known[layer.inputs[0]]  # pyright: ignore[reportArgumentType]
        if isinstance(layer, IIteratorLayer):
            return self._without(self.known[layer.tensor(0)], layer.axis, self.walk.types[layer.tensor(0)].rank)
        if isinstance(layer, ILoopOutputLayer):
            return self._stacked(layer)
        if isinstance(layer, IIfConditionalOutputLayer):
            return self.known[layer.inputs[0]]  # pyright: ignore[reportArgumentType]
        return self._computed(tensor)

    def _without(self, lengths: Value, axis: int, rank: int) -> Value:
        axis = normal_axis(axis, rank)
        return self.make.take(lengths, self.make.ints(*(each for each in range(rank) if each != axis)), 0)

    def _stacked(self, layer: ILoopOutputLayer) -> Value:
        lengths = self.known[layer.tensor(0)]
        if not layer.stacks:
            return lengths
        type = self.walk.types[layer.outputs[0]]
        axis = normal_axis(layer.axis, type.rank)
        room = max(0, type.shape[axis])
        if type.shape[axis] == UNKNOWN and self._is_outside(layer.tensor(1)):
            given = self.make.cast(self.walk.read(layer.tensor(1), self.scope), INT64)
            length = self.make.reshape(given, 1)
        else:
            length = self.make.ints(room)
        before = self.make.take(lengths, self.make.ints(*range(axis)), 0)
        after = self.make.take(lengths, self.make.ints(*range(axis, type.rank - 1)), 0)
        return self.make.concat(before, length, after)

    def _computed(self, tensor: ITensor) -> Value:
        """The shape of what a layer makes of zeros."""
        layer = tensor.producer
        assert layer is not None
        if isinstance(layer, POINTWISE):
            return self._stretched([self.known[each] for each in layer.inputs if each is not None])
        inputs = [None if each is None else self._zeros(each) for each in layer.inputs]
        try:
            made = EXPORTERS[type(layer)](layer, Make(self.scope.graph, self.walk.types, layer), *inputs)
        except (LayerError, KeyError):  # the walk tells of it
            return self.make.ints(*(max(0, length) for length in self.walk.types[tensor].shape))
        values: tuple[Value, ...] = made if isinstance(made, tuple) else (made,)
        return self.make.shape(values[tensor.position])

    def _stretched(self, shapes: list[Value]) -> Value:
        """The shape that shapes stretch to."""
        if len(shapes) == 1:
            return shapes[0]
        made, *others = (self.make.full(each, 0, INT64) for each in shapes)
        for each in others:
            made = self.make.op("Add", made, each)
        return self.make.shape(made)

    def _zeros(self, tensor: ITensor) -> Value:
        if self.walk.types[tensor].value is not None or self._is_outside(tensor):
            return self.walk.read(tensor, self.scope)
        return self.make.full(self.known[tensor], 0, self.walk.types[tensor].dtype)
