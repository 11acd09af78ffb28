"""Compute convolutions, and what is between them, with channels as the last axis."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.channels_last_layers import (
    MAX_COLUMN_LENGTH,
    MAX_COLUMN_MAPS,
    MAX_COLUMN_POSITIONS,
    MAX_COPIED_BYTES,
    MAX_SPLIT_GROUPS,
    ChannelsLastConvolutionLayer,
    ChannelsLastDeconvolutionLayer,
    ChannelsLastPoolingLayer,
    ChannelsLastWindow,
)
from netloop.compiler.passes.integers_as_floats import LimitedLayer
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.formulas import FormulaBuilder
from netloop.model.formulas.reduce import bitmask
from netloop.model.graph import ITensor, Operation
from netloop.model.layers.affine import IParametricReLULayer, IScaleLayer
from netloop.model.layers.convolution import IConvolutionLayer, IDeconvolutionLayer, WeightedWindow, is_given
from netloop.model.layers.pointwise import POINTWISE
from netloop.model.layers.pooling import IPoolingLayer
from netloop.model.layers.rearrange import IConcatenationLayer
from netloop.model.layers.reduce import IReduceLayer
from netloop.model.layers.resample import IResizeLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.values.enums import PaddingMode, ScaleMode
from netloop.values.types import FLOATS, UNKNOWN, TensorType, axes_of

MAX_WINDOW = 256
"""The most elements of a window for a form that has an operation for each; XLA compiles longer ones for seconds."""

USUAL_LENGTH = 100
"""A length that stands for one that only a run knows."""


class ChannelsLast(Pass):
    """Convert convolutions, and the layers between them, so that their channels are contiguous."""

    name = "channels_last"
    level = 2
    platforms = frozenset({"cpu"})
    on_host = True
    # passes for loops look for what scripts write there, and not for axes in another order; integers that are computed
    # in float32 are convolved like other numbers
    after = ("gate_fusion", "weight_prepacking", "integers_as_floats")
    rule = (
        "On CPUs, floating-point convolutions and deconvolutions by weights, and the element-wise layers, poolings, "
        "reductions, concatenations, slices and resizes between them, have their channels as the last axis. A "
        "convolution with one channel for each map is a sum over its window. One with a window of one element, more "
        f"than {MAX_SPLIT_GROUPS} groups, up to {MAX_COLUMN_POSITIONS} positions, or up to {MAX_COLUMN_LENGTH} numbers "
        f"in a window and {MAX_COLUMN_MAPS} maps is a product of up to {MAX_COPIED_BYTES >> 20} MiB of copied windows. "
        "A deconvolution is a product and sums, or with the stride 1 a convolution. Applies to layers that read more "
        f"such numbers than others, and to windows of up to {MAX_WINDOW} elements; lengths may be those of a run, "
        "unless padding depends on them."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        layout = _Layout(rewriter)
        for layer in rewriter.layers(Operation):
            layout.convert(layer)
        if layout.convolutions:
            rewriter.note(
                f"{layout.convolutions} convolutions and {layout.others} layers between them have their channels last"
            )
        return layout.convolutions > 0


class _Layout:
    """The tensors that exist with their channels last.

    Attributes:
        convolutions: the number of convolutions converted.
        others: the number of other layers converted.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter = rewriter
        self.make = rewriter.make
        self.convolutions = 0
        self.others = 0
        self._last: dict[ITensor, ITensor] = {}

    def convert(self, layer: Operation) -> None:
        """Convert a layer if that is possible and pays."""
        if isinstance(layer, WeightedWindow):
            self._convert_window(layer)
        elif any(tensor in self._last for tensor in layer.inputs):
            self._convert_other(layer)

    def last(self, tensor: ITensor) -> ITensor:
        """The tensor with its channels last."""
        if tensor not in self._last:
            self._last[tensor] = self.make.transpose(tensor, [0, *range(2, tensor.type.rank), 1])
        return self._last[tensor]

    def _first(self, tensor: ITensor) -> ITensor:
        """A tensor with its channels on axis 1 again."""
        rank = tensor.type.rank
        back = self.make.transpose(tensor, [0, rank - 1, *range(1, rank - 1)])
        # a reader that is converted too reads the tensor itself, and the transpose is never computed
        self._last[back] = tensor
        return back

    # ------------------------------------------------------------------ convolutions

    def _convert_window(self, layer: WeightedWindow) -> None:
        x, output = operand(layer, 0), layer.outputs[0]
        if not _is_known_enough(layer, x.type) or x.type.dtype not in FLOATS:
            return
        # what follows from weights only is computed once, in whatever form
        if x in self.rewriter.weights or math.prod(layer.window) > MAX_WINDOW:
            return
        weights = _weights_of(self.rewriter, layer)
        if weights is None:
            return
        kernel, bias = weights
        shape, merged = x.type.shape, layer.merged(x.type.shape)
        whole = self.last(x if shape == merged else self.make.reshape(x, merged))
        window = self.rewriter.network.add(
            self._form(layer, merged), [whole, _arranged(self.make, layer, kernel), bias]
        )
        # it fails where the layer of the user does, if only a run knows the lengths
        window.name = layer.name
        vars(window)["source_location"] = layer.source_location
        back = self._first(window.outputs[0])
        self.rewriter.take_over(output, back if shape == merged else self.make.reshape(back, output.type.shape))
        self.convolutions += 1

    def _form(self, layer: WeightedWindow, shape: Sequence[int]) -> ChannelsLastWindow:
        """The layer that computes the same of an input of ``shape`` with its channels last."""
        places, steps = layer.places(shape[2:]), list(layer.stride_nd)
        before, after = [place.before for place in places], [place.after for place in places]
        kind: type[ChannelsLastWindow] = ChannelsLastDeconvolutionLayer
        if isinstance(layer, IConvolutionLayer):
            # what the windows read, which is not the padding that was asked for if some are left out
            steps = layer.steps(shape[2:])
            axes = zip(shape[2:], layer.spans, steps, places, strict=True)
            after = [
                place.after if length == UNKNOWN else (place.length - 1) * step + span - length - place.before
                for length, span, step, place in axes
            ]
            kind = ChannelsLastConvolutionLayer
        # each place of the output reads the span around it, less what is cut off at the ends
        elif _is_convolution(layer):
            before, after = (
                [span - 1 - cut for span, cut in zip(layer.spans, side, strict=True)] for side in (before, after)
            )
            kind = ChannelsLastConvolutionLayer
        return kind(
            stride_nd=steps, dilation_nd=layer.dilation_nd, before=before, after=after, num_groups=layer.num_groups
        )

    # ------------------------------------------------------------------ what is between them

    def _convert_other(self, layer: Operation) -> None:
        output = layer.outputs[0]
        rank = output.type.rank
        if not self._gains(layer) or not _keeps_axes(layer, rank):
            return
        # types are only known again when all readers are rewired
        inputs = [None if tensor is None else self.last(tensor) for tensor in layer.inputs]
        if isinstance(layer, IPoolingLayer):
            named = {name: getattr(layer, name) for name in layer.ATTRIBUTES}
            pooled = self.rewriter.network.add(ChannelsLastPoolingLayer(**named), inputs)
            self.rewriter.take_over(output, self._first(pooled.outputs[0]))
        else:
            for position, tensor in enumerate(inputs):
                if tensor is not None:
                    layer.set_input(position, tensor)
            _move_axes(layer, rank)
            self.rewriter.take_over(output, self._first(output))
        self.others += 1

    def _gains(self, layer: Operation) -> bool:
        """Whether most of what a layer reads has its channels last already."""
        # weights are transposed at load time, which costs a call nothing
        inputs = [tensor for tensor in layer.inputs if tensor is not None and tensor not in self.rewriter.weights]
        return 2 * _volume(tensor for tensor in inputs if tensor in self._last) >= _volume(inputs)


def _volume(tensors: Iterable[ITensor]) -> int:
    """The number of elements, in which a length that only a run knows counts as one that is usual."""
    shapes = (tensor.type.shape for tensor in tensors)
    return sum(math.prod(USUAL_LENGTH if length == UNKNOWN else length for length in shape) for shape in shapes)


def _is_known_enough(layer: WeightedWindow, x: TensorType) -> bool:
    """Whether what is known of an input before a run decides a form of a layer that does what the layer does."""
    if x.is_fixed:
        return x.volume > 0
    if UNKNOWN in x.shape[: -len(layer.window)] or x.shape != layer.merged(x.shape):
        return False
    # the other modes divide the padding between both ends by the length
    is_explicit = layer.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN
    return is_explicit or isinstance(layer, IDeconvolutionLayer)


def _keeps_axes(layer: Operation, rank: int) -> bool:
    """Whether a layer computes the same with its axes in another order, if its attributes follow."""
    inputs = [tensor for tensor in layer.inputs if tensor is not None]
    if any(tensor.type.rank != rank for tensor in inputs):
        return False
    if isinstance(layer, IScaleLayer):
        # the weights of ELEMENTWISE are in the order of the axes
        return layer.mode is ScaleMode.UNIFORM or (layer.mode is ScaleMode.CHANNEL and layer.channel_axis == 1)
    if isinstance(layer, IPoolingLayer):
        return math.prod(layer.window) <= MAX_WINDOW
    if isinstance(layer, IReduceLayer):
        # reduced axes that are left out would change which axis has the channels
        return len(inputs) == 1 and layer.keep_dims
    if isinstance(layer, IResizeLayer):
        # a shape or a region that is an input lists the axes in their old order
        return len(inputs) == 1 and not layer.roi
    if isinstance(layer, ISliceLayer):
        return len(inputs) == 1
    return isinstance(layer, (*POINTWISE, LimitedLayer, IParametricReLULayer, IConcatenationLayer))


def _moved(axis: int, rank: int) -> int:
    """Where an axis is when the channels are last."""
    axis %= rank
    return axis if axis == 0 else (axis - 2) % (rank - 1) + 1


def _reordered(numbers: Sequence[Any]) -> tuple[Any, ...]:
    """Numbers of the axes, in the order of the axes when the channels are last."""
    return (numbers[0], *numbers[2:], numbers[1]) if len(numbers) > 1 else tuple(numbers)


def _move_axes(layer: Operation, rank: int) -> None:
    """Let the attributes of a layer mean the same axes when the channels are last."""
    if isinstance(layer, IScaleLayer):
        layer.channel_axis = _moved(layer.channel_axis, rank)
    elif isinstance(layer, IConcatenationLayer):
        layer.axis = _moved(layer.axis, rank)
    elif isinstance(layer, IReduceLayer):
        layer.axes = bitmask(*(_moved(axis, rank) for axis in axes_of(layer.axes, rank)))
    elif isinstance(layer, IResizeLayer):
        layer.shape, layer.scales = _reordered(layer.shape), _reordered(layer.scales)
    elif isinstance(layer, ISliceLayer):
        if layer.axes is None:
            layer.start, layer.shape, layer.stride = map(_reordered, (layer.start, layer.shape, layer.stride))
        else:
            layer.axes = tuple(_moved(axis, rank) for axis in layer.axes)


def _weights_of(rewriter: Rewriter, layer: WeightedWindow) -> tuple[ITensor, ITensor | None] | None:
    """The kernel, in its shape, and the bias of a convolution as tensors; None if they are not all weights."""
    kernel, bias = [*layer.inputs, None, None][1:3]
    if any(tensor is not None and tensor not in rewriter.weights for tensor in (kernel, bias)):
        return None
    if kernel is None:
        assert layer.kernel is not None
        shape = layer.kernel_shape(layer.merged(operand(layer, 0).type.shape)[1])
        kernel = rewriter.make.constant(layer.kernel.reshape(shape))
    if bias is None and layer.bias is not None and is_given(layer.bias):
        bias = rewriter.make.constant(layer.bias.reshape(-1))
    return kernel, bias


def _is_convolution(layer: WeightedWindow) -> bool:
    """Whether a deconvolution with its kernel reversed is a convolution."""
    return isinstance(layer, IDeconvolutionLayer) and set(layer.stride_nd) == {1}


def _arranged(make: FormulaBuilder, layer: WeightedWindow, kernel: ITensor) -> ITensor:
    """The kernel [.., C / groups, K], or [C, .., K / groups] of a deconvolution."""
    first, second, *window = range(kernel.type.rank)
    if isinstance(layer, IConvolutionLayer):
        return make.transpose(kernel, [*window, second, first])
    if not _is_convolution(layer):
        return make.transpose(kernel, [first, *window, second])
    channels, maps, *sizes = kernel.type.shape
    reversed_ = make.slice(kernel, [size - 1 for size in sizes], sizes, [-1] * len(sizes), window)
    own = make.reshape(reversed_, [layer.num_groups, channels // layer.num_groups, maps, *sizes])
    order = [*(axis + 1 for axis in window), 1, 0, 2]
    return make.reshape(make.transpose(own, order), [*sizes, channels // layer.num_groups, layer.num_output_maps])
