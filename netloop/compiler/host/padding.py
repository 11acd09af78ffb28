"""Bucketing: steps that can run with an axis padded, so that one program serves all lengths up to a bound.

The first elements of a padded axis are those of the tensor, and what follows them is garbage. A layer may run on padded
tensors if the first elements of its outputs then follow from the first elements of its inputs alone. Windows also read
past the end, where zeros are meant, so that garbage is set to zero before them.
"""

from collections.abc import Sequence

from netloop.model.graph import NO_AXES, Axes, ILayer, ITensor, Operation, TypeTable
from netloop.model.nest import LayerStep, Step
from netloop.values.diagnostics import LayerError
from netloop.values.types import UNKNOWN, Shape, TensorType


def bucket(length: int) -> int:
    """A length rounded up to a multiple of 8, or of a quarter of the power of 2 below it: at most a quarter longer.

    Lengths of 0 and 1 stay as they are: the first has no elements, and the second may be broadcast.
    """
    if length < 2:
        return length
    step = max(8, 1 << max(0, length.bit_length() - 3))
    return -(-length // step) * step


def is_known(types: TypeTable, tensor: ITensor) -> bool:
    """Whether types have the value of a tensor."""
    type_ = types.of(tensor)
    return isinstance(type_, TensorType) and type_.value is not None


class Padding:
    """The padded shapes of the tensors of some steps.

    Which axes count as padded depends on the steps alone: those whose lengths only a run knows.

    Args:
        types: the types of all tensors in a run, without padding.
        before: the types of all tensors as far as they are known before the network runs.

    Attributes:
        masks: the layers with padded operands, and the axes of the first operand along which garbage has to be zero.
        shapes: the padded shapes.
    """

    def __init__(self, types: TypeTable, before: TypeTable) -> None:
        self.shapes: dict[ITensor, Shape] = {}
        self.masks: dict[ILayer, Axes] = {}
        self._types = types
        self._before = before

    def reads(self, tensor: ITensor) -> None:
        """Add a tensor that the steps read from outside."""
        exact, axes = self._types[tensor].shape, self.axes(tensor)
        self.shapes[tensor] = tuple(bucket(n) if axis in axes else n for axis, n in enumerate(exact))

    def takes(self, step: Step) -> bool:
        """Whether a step can run with the padding so far; the shapes of its outputs are added then."""
        layer = step.layer if isinstance(step, LayerStep) else None
        # random numbers are drawn for a shape
        if not isinstance(layer, Operation) or layer.draws or not self._sizes_are_known(layer):
            return False
        types = [None if tensor is None else self._types[tensor] for tensor in layer.inputs]
        axes = [NO_AXES if tensor is None else self.axes(tensor) for tensor in layer.inputs]
        masked = layer.masked_axes(types, axes) if any(axes) else NO_AXES
        if masked is None or not self._infer(layer, types):
            return False
        if any(axes):
            self.masks[layer] = masked
        return True

    def _sizes_are_known(self, layer: Operation) -> bool:
        """Whether what decides the shape of a layer is the same in all runs."""
        sizes = (tensor for position, tensor in enumerate(layer.inputs) if position in layer.SHAPE_INPUTS)
        return all(size is None or is_known(self._before, size) for size in sizes)

    def axes(self, tensor: ITensor) -> Axes:
        """The axes of a tensor that count as padded."""
        before, exact = self._before.of(tensor), self._types[tensor].shape
        # of a rank that only a run knows, any axis may change
        if not isinstance(before, TensorType) or before.rank != len(exact):
            return frozenset(range(len(exact)))
        return frozenset(axis for axis, length in enumerate(before.shape) if length == UNKNOWN)

    def _infer(self, layer: Operation, types: Sequence[TensorType | None]) -> bool:
        """Add the padded shapes of the outputs of a layer; False if there are none."""
        padded = (None if tensor is None else self.shapes.get(tensor) for tensor in layer.inputs)
        pairs = zip(types, padded, strict=True)
        tensor_types = [of if of is None or shape in (None, of.shape) else of.with_shape(shape) for of, shape in pairs]
        try:
            result = layer.infer(*tensor_types)
        # padded lengths may disagree where the exact ones do not
        except LayerError:
            return False
        for tensor, type in zip(layer.outputs, result if isinstance(result, tuple) else (result,), strict=True):
            exact, axes = self._types[tensor].shape, self.axes(tensor)
            if any(
                not _is_longer(at in axes, *lengths) for at, lengths in enumerate(zip(exact, type.shape, strict=True))
            ):
                return False
            self.shapes[tensor] = type.shape
        return True


def _is_longer(is_padded: bool, length: int, longer: int) -> bool:
    """Whether an axis of some length may have the longer one; a length of 1 stays, as it may be broadcast."""
    return length == longer or (is_padded and length != 1 and length < longer)
