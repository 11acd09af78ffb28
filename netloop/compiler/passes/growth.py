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
from netloop.values.types import LARGEST_KNOWN_VALUE, Shape, TensorType

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

    Types are inferred for three numbers: 0, 1 and the last one. What lies on a line there does so for all numbers, as
    only layers that keep to that are trusted.

    Args:
        last: the last number, or one that is at least as large.

    Raises:
        Impossible: the layers are not possible for one of the three numbers.
        Unbuffered: a length is not known, or lies on no line.
    """

    def __init__(self, last: int) -> None:
        self.last = max(2, last)
        self.tables = {trip: self.table(trip) for trip in (0, 1, self.last)}
        self._irregular = set[ITensor]()
        self._elements: dict[ITensor, list[tuple[Any, ...]] | None] = {}
        for layer in self.layers:
            self._irregular.update(tensor for tensor in layer.outputs if not self._is_regular(layer, tensor))

    @property
    @abstractmethod
    def layers(self) -> Iterable[ILayer]:
        """The layers, in the order of data flow."""

    @abstractmethod
    def table(self, trip: int) -> TypeTable:
        """The types of the tensors for a number, that of an iteration or what stands for it."""

    def types(self, tensor: ITensor) -> list[TensorType]:
        """The types of a tensor for the three numbers."""
        types = [table.of(tensor) for table in self.tables.values()]
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
        """Each element of a tensor for the three numbers; None if it is large, or has not always as many."""
        if tensor not in self._elements:
            lists = [_elements(kind) for kind in self.types(tensor)]
            filled = [elements for elements in lists if elements is not None]
            are_as_many = len(filled) == len(lists) and len({*map(len, filled)}) == 1
            self._elements[tensor] = list(zip(*filled, strict=True)) if are_as_many else None
        return self._elements[tensor]

    def _is_known(self, tensor: ITensor) -> bool:
        """Whether something of the value of a tensor is known for some number."""
        return any(kind.value is not None or kind.partial is not None for kind in self.types(tensor))

    def _varies(self, tensor: ITensor) -> bool:
        """Whether what is known of the value of a tensor is not the same for all numbers."""
        columns = self._columns(tensor)
        if columns is None:
            return self._is_known(tensor)
        return any(not _is_unknown(column) and len(set(column)) > 1 for column in columns)

    def _is_regular(self, layer: ILayer, tensor: ITensor) -> bool:
        """Whether the elements of an output that are known before a run are lines in all iterations."""
        if isinstance(layer, IShapeLayer) or not self._is_known(tensor):
            return True
        inputs = ((at, other) for at, other in enumerate(layer.inputs) if other is not None)
        # what three numbers have in common, such as whether one is 5, may still be another for a fourth
        varies = [at for at, other in inputs if other in self._irregular or self._varies(other)]
        if not varies:
            return True
        columns = self._columns(tensor)
        are_lines = columns is not None and all(_is_unknown(column) or self._line(column) for column in columns)
        is_regular = are_lines and self._irregular.isdisjoint(layer.inputs)
        return is_regular and (_keeps_lines(layer, varies) or self._never_meet(layer))

    def _never_meet(self, layer: ILayer) -> bool:
        """Whether a layer compares lines of which one is below the other, or that are the same."""
        if not isinstance(layer, IElementWiseLayer) or layer.op is not Op.EQUAL:
            return False
        # of floating-point numbers, rounded ones would be compared
        if not all(kind.is_integer for tensor in layer.inputs if tensor is not None for kind in self.types(tensor)):
            return False
        first, second = ([kind.ints() for kind in self.types(tensor)] for tensor in layer.inputs if tensor is not None)
        pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
        signs = [np.sign(np.subtract(a, b)) for a, b in pairs if 1 in (len(a), len(b)) or len(a) == len(b)]
        return len(signs) == len(self.tables) and all(np.array_equal(sign, signs[0]) for sign in signs)


class IterationLengths(LinearLengths):
    """The lengths in the iterations of a loop, whose number they follow from."""

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


class Growth(IterationLengths):
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
        for trip, table in self.tables.items():
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


def _elements(kind: TensorType) -> list[Any] | None:
    """The elements of a tensor, None for one that is not known; None if there are too many to know some of them."""
    array = kind.partial if kind.value is None else kind.value
    if array is not None:
        return array.reshape(-1).tolist()  # of a masked element, None
    is_small = kind.is_tensor and not kind.is_string and 0 <= kind.nbytes <= LARGEST_KNOWN_VALUE
    return [None] * kind.volume if is_small else None


def _is_unknown(column: Sequence[Any]) -> bool:
    return None in column


def _keeps_lines(layer: ILayer, varies: Sequence[int]) -> bool:
    """Whether a layer makes of lines what bends to one side only."""
    if isinstance(layer, IElementWiseLayer):
        return layer.op in BENDING and not (1 in varies and layer.op in (Op.FLOOR_DIV, Op.DIV))
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
