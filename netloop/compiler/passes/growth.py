"""Lengths that follow from the number of an iteration, as lines."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from netloop.model.formulas import FormulaBuilder
from netloop.model.graph import ILayer, ITensor, Operation, TypeTable
from netloop.model.layers.loop import IRecurrenceLayer
from netloop.model.layers.pointwise import ICastLayer, IElementWiseLayer, IIdentityLayer, ISelectLayer, IUnaryLayer
from netloop.model.layers.reduce import IReduceLayer
from netloop.model.layers.sources import IShapeLayer
from netloop.model.nest import LoopStep, Scopes, walk
from netloop.values.diagnostics import Finding
from netloop.values.enums import ElementWiseOperation as Op
from netloop.values.enums import ReduceOperation, UnaryOperation
from netloop.values.types import Shape, TensorType

BENDING = frozenset({Op.SUM, Op.SUB, Op.PROD, Op.MIN, Op.MAX, Op.LESS, Op.GREATER, Op.FLOOR_DIV, Op.DIV})
"""Operations that make of two lines a function that bends to one side, steps once, or leaves a line to one side: if
three of its values lie on a line, the ends of an interval and one between, all in the interval do."""


class Unbuffered(Exception):
    """A reason why the states of a loop cannot be in buffers."""


class Impossible(Unbuffered):
    """A reason why an iteration is not possible: types do not fit in it, so that a run would fail there."""


class Affine(NamedTuple):
    """A length or another integer in iteration t: slope * t + start."""

    slope: int
    start: int

    def at(self, trip: int) -> int:
        """The number in an iteration."""
        return self.slope * trip + self.start


Affines = tuple[Affine, ...]


class LinearLengths(ABC):
    """The lengths of all axes of some layers, and the integers that follow from them, as lines.

    Types are inferred for three iterations: the first, the second and the last one. What lies on a line there does so
    in all iterations, as only layers that keep to that are trusted.

    Args:
        last: the number of the last iteration, of the one behind it, or a large one.

    Raises:
        Impossible: one of the three iterations is not possible.
        Unbuffered: a length is not known, or lies on no line.
    """

    def __init__(self, last: int) -> None:
        self.last = max(2, last)
        self._tables = {trip: self.table(trip) for trip in (0, 1, self.last)}
        self._irregular = set[ITensor]()
        for layer in self.layers:
            self._irregular.update(tensor for tensor in layer.outputs if not self._is_regular(layer, tensor))

    @property
    @abstractmethod
    def layers(self) -> Iterable[ILayer]:
        """The layers, in the order of data flow."""

    @abstractmethod
    def table(self, trip: int) -> TypeTable:
        """The types of the tensors in an iteration."""

    @abstractmethod
    def trip(self, make: FormulaBuilder) -> ITensor:
        """The number of the iteration; int64, 0-D."""

    @abstractmethod
    def varies(self, tensor: ITensor, scopes: Scopes) -> bool:
        """Whether a tensor may not be the same in all iterations."""

    def ahead(self, more: Iterable[ITensor] = ()) -> int:
        """The number of iterations by which the longest axis of those of equal slope is ahead of the iterations."""
        tensors = [*more, *(tensor for layer in self.layers for tensor in layer.outputs)]
        lines = [line for tensor in tensors for line in self.lines(tensor) if line.slope]
        return max((-(-line.start // line.slope) for line in lines), default=0)

    def types(self, tensor: ITensor) -> list[TensorType]:
        """The types of a tensor in the three iterations."""
        types = [table.of(tensor) for table in self._tables.values()]
        failure = next((kind for kind in types if isinstance(kind, Finding)), None)
        if failure is not None:
            raise Impossible(failure.what)
        fixed = [kind for kind in types if isinstance(kind, TensorType) and kind.is_tensor and kind.is_fixed]
        if len(fixed) < len(types):
            raise Unbuffered(f"the shape of {tensor.name!r} does not follow from the number of the iteration")
        return fixed

    def lines(self, tensor: ITensor) -> Affines:
        """The lengths of the axes of a tensor."""
        shapes = [kind.shape for kind in self.types(tensor)]
        if len({*map(len, shapes)}) > 1:
            raise Unbuffered(f"the rank of {tensor.name!r} changes")
        lines = [self._line(lengths) for lengths in zip(*shapes, strict=True)]
        if any(line is None for line in lines):
            raise Unbuffered(f"{tensor.name!r} does not grow by as many elements in each iteration")
        return tuple(line for line in lines if line is not None)

    def _line(self, numbers: Sequence[int]) -> Affine | None:
        first, second, last = map(int, numbers)
        line = Affine(second - first, first)
        return line if line.at(self.last) == last else None

    def values(self, tensor: ITensor) -> list[Affine | None] | None:
        """The elements of a small tensor of integers, None for one that only a run knows; None if no line has them."""
        columns = self._columns(tensor)
        if columns is None or tensor in self._irregular:
            return None
        return [None if _is_unknown(column) else self._line(column) for column in columns]

    def is_below(self, one: Affine, other: Affine) -> bool:
        """Whether one line is below another in all iterations."""
        return all(one.at(trip) < other.at(trip) for trip in (0, self.last))

    def _columns(self, tensor: ITensor) -> list[tuple[Any, ...]] | None:
        """Each element of a tensor in the three iterations; None if it is large, or has not always as many."""
        arrays = [kind.elements() for kind in self.types(tensor)]
        flat = [array.reshape(-1) for array in arrays if array is not None]
        are_as_many = len(flat) == len(arrays) and len({array.size for array in flat}) == 1
        return list(zip(*flat, strict=True)) if are_as_many else None

    def _is_known(self, tensor: ITensor) -> bool:
        """Whether something of the value of a tensor is known in some iteration."""
        arrays = (kind.elements() for kind in self.types(tensor))
        return any(array is not None and not np.all(np.ma.getmaskarray(array)) for array in arrays)

    def _varies(self, tensor: ITensor) -> bool:
        """Whether what is known of the value of a tensor is not the same in all iterations."""
        columns = self._columns(tensor)
        if columns is None:
            return self._is_known(tensor)
        return any(not _is_unknown(column) and len(set(column)) > 1 for column in columns)

    def _is_regular(self, layer: ILayer, tensor: ITensor) -> bool:
        """Whether the elements of an output that are known before a run are lines in all iterations."""
        if isinstance(layer, IShapeLayer) or not self._is_known(tensor):
            return True
        varies = [at for at, other in enumerate(layer.inputs) if other is not None and self._varies(other)]
        if not varies:
            return True
        columns = self._columns(tensor)
        are_lines = columns is not None and all(_is_unknown(column) or self._line(column) for column in columns)
        return are_lines and self._irregular.isdisjoint(layer.inputs) and _keeps_lines(layer, varies)


class Growth(LinearLengths):
    """The lengths in a loop whose states grow.

    Args:
        step: the loop.
        types: the types of the tensors around it.
        states: the recurrences whose shapes change.
        last: the number of the last iteration, of the one behind it, or a large one.

    Attributes:
        initial: the shapes of the states before the first iteration.
        steps: the number of elements by which each axis of each state grows in an iteration.
    """

    def __init__(self, step: LoopStep, types: TypeTable, states: Sequence[IRecurrenceLayer], last: int) -> None:
        self.step = step
        self._outside = {tensor: kind for tensor in step.reads if isinstance(kind := types.of(tensor), TensorType)}
        self.initial: dict[IRecurrenceLayer, Shape] = {state: _fixed(types, state.tensor(0)) for state in states}
        self.steps: dict[IRecurrenceLayer, Shape] = {state: (0,) * len(shape) for state, shape in self.initial.items()}
        first = self.table(0)
        self.steps = {
            state: _difference(state, _fixed(first, state.tensor(1)), self.initial[state]) for state in states
        }
        super().__init__(last)
        for trip, table in self._tables.items():
            for state in states:
                if _fixed(table, state.tensor(1)) != self._shape(state, trip + 1):
                    raise Unbuffered(f"{state.outputs[0].name!r} does not grow by as many elements in each iteration")

    @property
    def layers(self) -> Iterable[ILayer]:
        return (layer for inner in walk(self.step.body) for layer in inner.layers)

    def table(self, trip: int) -> TypeTable:
        states = {
            state.outputs[0]: self._outside[state.tensor(0)].with_shape(self._shape(state, trip)).without_value()
            for state in self.initial
        }
        return TypeTable({**self._outside, **states})

    def trip(self, make: FormulaBuilder) -> ITensor:
        return make.counter(self.step.loop).outputs[0]

    def varies(self, tensor: ITensor, scopes: Scopes) -> bool:
        return scopes.varies_in(tensor, self.step.loop)

    def _shape(self, state: IRecurrenceLayer, trip: int) -> Shape:
        return tuple(n + by * trip for n, by in zip(self.initial[state], self.steps[state], strict=True))


def _is_unknown(column: Sequence[Any]) -> bool:
    return any(number is np.ma.masked for number in column)


def _keeps_lines(layer: ILayer, varies: Sequence[int]) -> bool:
    """Whether a layer makes of lines what bends to one side only."""
    if isinstance(layer, IElementWiseLayer):
        return layer.op in BENDING
    if isinstance(layer, ISelectLayer):
        return 0 not in varies
    if isinstance(layer, IUnaryLayer):
        return layer.op in (UnaryOperation.NEG, UnaryOperation.ABS, UnaryOperation.NOT)
    if isinstance(layer, IReduceLayer):
        return layer.op in (ReduceOperation.SUM, ReduceOperation.PROD, ReduceOperation.MAX, ReduceOperation.MIN)
    if isinstance(layer, ICastLayer | IIdentityLayer):
        return True
    return isinstance(layer, Operation) and max(varies) < layer.MOVED_INPUTS


def _fixed(types: TypeTable, tensor: ITensor) -> Shape:
    kind = types.of(tensor)
    if isinstance(kind, Finding):
        raise Impossible(kind.what)
    if not (isinstance(kind, TensorType) and kind.is_tensor and kind.is_fixed) or kind.is_string:
        raise Unbuffered(f"the shape of {tensor.name!r} is known only while it runs")
    return kind.shape


def _difference(state: IRecurrenceLayer, after: Shape, before: Shape) -> Shape:
    steps = tuple(one - other for one, other in zip(after, before, strict=True))
    if min(steps, default=0) < 0:
        raise Unbuffered(f"{state.outputs[0].name!r} becomes shorter")
    return steps
