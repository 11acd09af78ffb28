"""Bucketing: steps that can run with an axis padded, so that one program serves all lengths up to a bound.

The first elements of a padded axis are those of the tensor, and what follows them is garbage. A layer may run on padded
tensors if the first elements of its outputs then follow from the first elements of its inputs alone. Windows also read
past the end, where zeros are meant, so that garbage is set to zero before them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from netloop.compiler.passes.channels_last_layers import ChannelsLastWindow
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.layer import ILayer, Operation
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.affine import IScaleLayer
from netloop.model.layers.convolution import IConvolutionLayer, IDeconvolutionLayer
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.pointwise import POINTWISE
from netloop.model.layers.rearrange import IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.model.layers.reduce import IReduceLayer, ISoftMaxLayer, axes_of
from netloop.model.layers.slice import ISliceLayer
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import LayerStep, Step
from netloop.values.diagnostics import LayerError
from netloop.values.enums import GatherMode, MatrixOperation, PaddingMode
from netloop.values.types import UNKNOWN, Shape, TensorType

Axes = frozenset[int]
"""The padded axes of a tensor."""
NONE: Axes = frozenset()


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
    known = types.of(tensor)
    return isinstance(known, TensorType) and known.value is not None


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
        if not isinstance(layer, Operation) or layer.draws or not self._sizes_are_known(layer):
            return False
        known = [None if tensor is None else self._types[tensor] for tensor in layer.inputs]
        axes = [NONE if tensor is None else self.axes(tensor) for tensor in layer.inputs]
        rule = next((rule for kinds, rule in RULES if isinstance(layer, kinds)), None)
        masked = NONE if not any(axes) else rule(layer, known, axes) if rule is not None else None
        if masked is None or not self._infer(layer, known):
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
        if not isinstance(before, TensorType) or before.rank != len(exact):
            return frozenset(range(len(exact)))
        return frozenset(axis for axis, length in enumerate(before.shape) if length == UNKNOWN)

    def _infer(self, layer: Operation, known: Sequence[TensorType | None]) -> bool:
        """Add the padded shapes of the outputs of a layer; False if there are none."""
        padded = (None if tensor is None else self.shapes.get(tensor) for tensor in layer.inputs)
        pairs = zip(known, padded, strict=True)
        tensor_types = [of if of is None or shape in (None, of.shape) else of.with_shape(shape) for of, shape in pairs]
        try:
            types = layer.infer(*tensor_types)
        except LayerError:
            return False
        for tensor, type in zip(layer.outputs, types if isinstance(types, tuple) else (types,), strict=True):
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


Rule = Callable[[Any, Sequence[TensorType | None], Sequence[Axes]], Axes | None]
"""The axes of the first operand that have to be masked, from the types and the padded axes of the operands; None if the
layer cannot be padded along them."""


def _everywhere(layer: Operation, known: Sequence[TensorType | None], axes: Sequence[Axes]) -> Axes | None:
    """Of layers in which an element depends on elements at the same place."""
    return NONE


def _moved(layer: Operation, known: Sequence[TensorType | None], axes: Sequence[Axes]) -> Axes | None:
    """Of layers that move axes, by their attributes and by constants."""
    return None if any(axes[1:]) or (isinstance(layer, IShuffleLayer) and _reshapes(layer)) else NONE


def _reshapes(layer: IShuffleLayer) -> bool:
    return layer.reshape_dims is not None or len(layer.inputs) > 1


def _joined(layer: IConcatenationLayer, known: Sequence[TensorType | None], axes: Sequence[Axes]) -> Axes | None:
    first = known[0]
    assert first is not None
    along = layer.axis % first.rank
    return None if any(along in axis for axis in axes) else NONE


def _sliced(layer: ISliceLayer, known: Sequence[TensorType | None], axes: Sequence[Axes]) -> Axes | None:
    """Of slices of axes that are not padded; positions past the end of one would mean others."""
    first, sliced = known[0], layer.axes
    assert first is not None
    if sliced is None or len(known) > ISliceLayer.INPUT_OF["axes"] or any(axes[1:]):
        return None
    return None if axes[0].intersection(axis % first.rank for axis in sliced) else NONE


def _along(
    layer: IReduceLayer | ISoftMaxLayer, known: Sequence[TensorType | None], axes: Sequence[Axes]
) -> Axes | None:
    """Of layers that read whole axes, none of which may be padded."""
    first = known[0]
    assert first is not None
    array = known[1].value if len(known) > 1 and known[1] is not None else None
    if len(known) > 1 and array is None:
        return None
    over = axes_of(layer.axes, first.rank) if array is None else array.reshape(-1).tolist()
    return None if axes[0].intersection(axis % first.rank for axis in over) else NONE


def _window(layer: Operation, known: Sequence[TensorType | None], axes: Sequence[Axes]) -> Axes | None:
    """Of windows of weights: any axis but that of the channels."""
    first = known[0]
    assert first is not None
    channels = first.rank - 1 if isinstance(layer, ChannelsLastWindow) else 1
    # the other modes divide the padding between both ends by the length
    is_explicit = getattr(layer, "padding_mode", PaddingMode.EXPLICIT_ROUND_DOWN) is PaddingMode.EXPLICIT_ROUND_DOWN
    return axes[0] - {0} if is_explicit and channels not in axes[0] and not any(axes[1:]) else None


def _product(layer: IMatrixMultiplyLayer, known: Sequence[TensorType | None], axes: Sequence[Axes]) -> Axes | None:
    """Of matrix products: the rows of the first operand, the columns of the second, and batch axes."""
    for operand, (of, operation) in enumerate(zip(known[:2], (layer.op0, layer.op1), strict=True)):
        assert of is not None
        summed = of.rank - 1 if (operation is MatrixOperation.NONE) == (operand == 0) else of.rank - 2
        if operation is MatrixOperation.VECTOR or summed in axes[operand]:
            return None
    return NONE


def _taken(layer: IGatherLayer, known: Sequence[TensorType | None], axes: Sequence[Axes]) -> Axes | None:
    """Of gathers along an axis that is not padded; garbage among the indices reads zeros or whatever."""
    first = known[0]
    assert first is not None
    is_plain = layer.mode is GatherMode.DEFAULT and not layer.num_elementwise_dims
    return NONE if is_plain and layer.axis % first.rank not in axes[0] else None


PRODUCTS = IConvolutionLayer, IDeconvolutionLayer, ChannelsLastWindow, IMatrixMultiplyLayer
"""The layers that are worth a program."""

RULES: list[tuple[tuple[type[Any], ...], Rule]] = [
    ((*POINTWISE, IScaleLayer), _everywhere),
    ((IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer), _moved),
    ((IConcatenationLayer,), _joined),
    ((ISliceLayer,), _sliced),
    ((IReduceLayer, ISoftMaxLayer), _along),
    ((IConvolutionLayer, IDeconvolutionLayer, ChannelsLastWindow), _window),
    ((IMatrixMultiplyLayer,), _product),
    ((IGatherLayer,), _taken),
    ((IConstantLayer,), _everywhere),
]
"""The kinds of layers that can be padded, each with its rule."""
