"""Bucketing: steps that can run with an axis padded, so that one program serves all lengths up to a bound.

The first elements of a padded axis are those of the tensor, and what follows them is garbage. A step may run on padded
tensors if the first elements of its outputs then follow from the first elements of its inputs alone; for a layer that
is known by its class, ``Operation.neutrals``. A loop may run if its steps can, and if it cannot fail for the lengths
without padding: a padded program has no error flags, and its count of iterations is that of the call.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from netloop.compiler.host.frame import bucket
from netloop.compiler.lower.loop.facts import LoopFacts, known_count
from netloop.model.graph import NO_AXES, Axes, ILayer, ITensor, Operation, TypeTable
from netloop.model.graph.padded_axes import Neutrals
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.sources import IShapeLayer
from netloop.model.nest import Step, layers_of
from netloop.values.enums import TripLimit
from netloop.values.types import UNKNOWN, Array, Shape, TensorType

Rounding = Callable[[ITensor, Shape, Axes], Shape]
"""Returns the padded shape of a tensor, of its exact shape and the axes that count as padded."""


def bucketed(tensor: ITensor, shape: Shape, axes: Axes) -> Shape:
    """A shape with all of its padded axes as long as their buckets."""
    return tuple(bucket(length) if axis in axes else length for axis, length in enumerate(shape))


def known_value(types: TypeTable, tensor: ITensor) -> Array | None:
    """The value of a tensor, if types have it."""
    type_ = types.of(tensor)
    return type_.value if isinstance(type_, TensorType) else None


def is_known(types: TypeTable, tensor: ITensor) -> bool:
    """Whether types have the value of a tensor."""
    return known_value(types, tensor) is not None


class Padding:
    """The padded types of the tensors of some steps, and what their operands need instead of garbage.

    Which axes count as padded depends on the steps alone: those whose lengths only a run knows.

    Args:
        reads: the tensors that the steps read from outside.
        types: the types of all tensors in a run, without padding.
        before: the types of all tensors as far as they are known before the network runs.
        known: the types of the tensors whose values are parts of programs.
        max_trips: the largest number of iterations of a loop; None for any number.
        rounding: the padded shapes of what the steps read, and of stacked outputs.

    Attributes:
        types: the padded types.
        neutrals: the layers with padded operands or sizes, and the numbers that the padding of operands has to be.
        sizes: the sizes that layers take instead of exact ones, which only a run knows, by the positions of the inputs.
    """

    def __init__(
        self,
        reads: Iterable[ITensor],
        types: TypeTable,
        before: TypeTable,
        known: Mapping[ITensor, TensorType],
        max_trips: int | None = None,
        rounding: Rounding = bucketed,
    ) -> None:
        self._exact = types
        self._before = before
        self._rounding, self._max_trips = rounding, max_trips
        self._facts = RunFacts(types, before, max_trips)
        padded = {tensor: self._padded(tensor) for tensor in reads} | dict(known)
        self.types, self._sizes = TypeTable(padded), TypeTable(padded)
        self.neutrals: dict[ILayer, Neutrals] = {}
        self.sizes: dict[tuple[ILayer, int], Array] = {}

    def learn(self, types: TypeTable, tensors: Iterable[ITensor]) -> None:
        """Take the types of tensors that are the same with padding."""
        pairs = [(tensor, tensor) for tensor in tensors]
        for table in (self.types, self._sizes):
            table.learn(types, pairs, with_values=False)

    def give(self, tensor: ITensor, type_: TensorType) -> None:
        """Take a padded type that does not follow from those of what the steps read."""
        for table in (self.types, self._sizes):
            table.give(tensor, type_)

    def _padded(self, tensor: ITensor) -> TensorType:
        """The type of a tensor with all of its padded axes as long as their buckets."""
        exact = self._exact[tensor]
        shape = self._rounding(tensor, exact.shape, self.axes(tensor))
        # a value that is not known before is another one in another run
        before = self._before.of(tensor)
        return TensorType(exact.dtype, shape, before.value if isinstance(before, TensorType) else None)

    def takes(self, step: Step) -> bool:
        """Whether a step can run with the padding so far; it is part of the padding then."""
        return not self._facts.can_fail([step]) and self._takes(step)

    def holds(self, types: TypeTable, steps: Sequence[Step]) -> bool:
        """Whether steps that it takes can run with it for other exact types that have the same padded ones."""
        if RunFacts(types, self._before, self._max_trips).can_fail(steps):
            return False
        tensors = (tensor for step in steps for layer in layers_of(step) for tensor in layer.outputs)
        return all(self._is_long_enough(tensor, types) for tensor in tensors)

    def _takes(self, step: Step) -> bool:
        # from the inside, as the outputs of a loop have the shapes of what is in it
        is_inside = all(self._takes(inner) for block in step.blocks for inner in block.steps)
        return is_inside and all(map(self._takes_layer, step.layers))

    def _takes_layer(self, layer: ILayer) -> bool:
        if isinstance(layer, Operation) and not self._takes_operation(layer):
            return False
        if isinstance(layer, IShapeLayer):
            self._give_shape(layer)
        if isinstance(layer, ILoopOutputLayer) and layer.stacks and not is_known(self._before, layer.tensor(1)):
            # the length of the axis is that of the run, and not one that follows from padded shapes
            self.types.give(layer.outputs[0], self._padded(layer.outputs[0]))
        if isinstance(layer, IRecurrenceLayer) and not self._keeps_shape(layer):
            return False
        return all(self._is_long_enough(tensor, self._exact) for tensor in layer.outputs)

    def _give_shape(self, layer: IShapeLayer) -> None:
        """Have the lengths of padded axes computed in each call, as they are no constants of the program."""
        (output,) = layer.outputs
        exact, before = self._exact[output].without_value(), self._before.of(output)
        self.types.give(output, before if isinstance(before, TensorType) and before.shape == exact.shape else exact)

    def _takes_operation(self, layer: Operation) -> bool:
        # random numbers are drawn for a shape
        if layer.draws:
            return False
        types = [None if tensor is None else self._exact[tensor] for tensor in layer.inputs]
        axes = [NO_AXES if tensor is None else self.axes(tensor) for tensor in layer.inputs]
        sizes = self._sizes_of_run(layer)
        for position, tensor in sizes.items():
            if not self._takes_size(layer, position, tensor):
                return False
            if position in layer.PADDED_SIZES:
                types[position] = self._open_size(tensor)
        if not any(axes) and not sizes:
            return True
        neutrals = layer.neutrals(types, axes)
        if neutrals is not None:
            self.neutrals[layer] = neutrals
        return neutrals is not None

    def _sizes_of_run(self, layer: Operation) -> dict[int, ITensor]:
        """The inputs that decide the shape of a layer, and have no value that is the same in all runs."""
        inputs = ((position, layer.inputs[position]) for position in layer.SHAPE_INPUTS if position < len(layer.inputs))
        known = self._before, self.types
        return {at: size for at, size in inputs if size and not all(is_known(types, size) for types in known)}

    def _takes_size(self, layer: Operation, position: int, tensor: ITensor) -> bool:
        """Whether a layer can have the size that follows from padded lengths, and has it then."""
        exact, padded = known_value(self._exact, tensor), known_value(self._sizes, tensor)
        if exact is None or padded is None or exact.shape != padded.shape:
            return False
        if position not in layer.PADDED_SIZES and not (is_known(self._before, tensor) and np.all(padded == exact)):
            return False
        self.sizes[layer, position] = padded
        for output in layer.outputs:
            result = self._sizes.of(output)
            if not isinstance(result, TensorType):
                return False
            self.types.give(output, result.without_value())
        return True

    def _open_size(self, tensor: ITensor) -> TensorType:
        """The type of a size of which -1 stands for what only a run knows."""
        before, exact = self._before.of(tensor), self._exact[tensor]
        lengths = before.lengths() if isinstance(before, TensorType) and before.shape == exact.shape else None
        value = np.full(exact.shape, UNKNOWN) if lengths is None else np.reshape(lengths, exact.shape)
        return TensorType(exact.dtype, exact.shape, value.astype(exact.dtype))

    def _keeps_shape(self, layer: IRecurrenceLayer) -> bool:
        """Whether the state of a loop is padded in the same way before and after an iteration."""
        first, after = self.types.of(layer.tensor(0)), self.types.of(layer.tensor(1))
        return isinstance(first, TensorType) and isinstance(after, TensorType) and first.shape == after.shape

    def axes(self, tensor: ITensor) -> Axes:
        """The axes of a tensor that count as padded."""
        before, exact = self._before.of(tensor), self._exact[tensor].shape
        # of a rank that only a run knows, any axis may change
        if not isinstance(before, TensorType) or before.rank != len(exact):
            return frozenset(range(len(exact)))
        return frozenset(axis for axis, length in enumerate(before.shape) if length == UNKNOWN)

    def _is_long_enough(self, tensor: ITensor, types: TypeTable) -> bool:
        """Whether the padded shape of a tensor, if it has one, is longer than the exact one along padded axes only."""
        exact, padded, axes = types.of(tensor), self.types.of(tensor), self.axes(tensor)
        if not isinstance(exact, TensorType) or not exact.is_fixed:
            return False
        # padded lengths may disagree where the exact ones do not
        if not isinstance(padded, TensorType) or len(padded.shape) != len(exact.shape):
            return False
        lengths = zip(exact.shape, padded.shape, strict=True)
        return all(_is_longer(axis in axes, *pair) for axis, pair in enumerate(lengths))


def _is_longer(is_padded: bool, length: int, longer: int) -> bool:
    """Whether an axis of some length may have the longer one; a length of 1 stays, as it may be broadcast."""
    return length == longer or (is_padded and length != 1 and length < longer)


class RunFacts(LoopFacts):
    """Facts about the loops of a run, by its types and those before it."""

    def __init__(self, types: TypeTable, before: TypeTable, max_trips: int | None) -> None:
        super().__init__(types, (), max_trips)
        self._before = before

    def count(self, loop: ILoop) -> int | None:
        # the types of a run have no values that decide no shape
        count = known_count(loop, self._types)
        count = known_count(loop, self._before) if count is None else count
        return known_count(loop, self._lengths_behind(loop)) if count is None else count

    def _lengths_behind(self, loop: ILoop) -> TypeTable:
        """The types of a run that a COUNT follows from by layers of integers, of which lengths give values."""
        limit = loop.limit(TripLimit.COUNT)
        types, waiting, seen = TypeTable({}), [] if limit is None else [limit.tensor(0)], set[ITensor]()
        while waiting:
            tensor = waiting.pop()
            layer, type_ = tensor.producer, self._types.of(tensor)
            if tensor in seen or not isinstance(type_, TensorType):
                continue
            seen.add(tensor)
            if isinstance(layer, IShapeLayer):
                types.give(tensor, layer.infer(*map(self._types.__getitem__, filter(None, layer.inputs))))
            elif isinstance(layer, Operation) and not type_.is_float:
                waiting += filter(None, layer.inputs)
            else:
                types.give(tensor, type_)
        return types


class PaddedFacts(LoopFacts):
    """Facts about the loops of a padded program, of which ``Padding.takes`` is sure for each call."""

    def may_exceed_max_trips(self, loop: ILoop) -> bool:
        return False

    def stays_inside(self, iterator: IIteratorLayer) -> bool:
        return True

    def length(self, output: ILoopOutputLayer) -> int:
        return self._types[output.outputs[0]].shape[output.axis]

    def has_room(self, output: ILoopOutputLayer) -> bool:
        return True
