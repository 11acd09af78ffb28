"""The lengths of the outputs of layers, from those of their inputs: the rules of ``infer``, as nodes.

The exporter needs them for tensors that have no value, so no rule reads an element of a tensor, other than of those
that determine shapes. A length that is known while the network is built need not be computed: the caller has it. A kind
without a rule has no other lengths.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from netloop.formats.onnx_graph.graph import Value
from netloop.formats.onnx_graph.lengths import LengthBuilder, Lengths
from netloop.formats.onnx_graph.node_builder import DOUBLE, INT64
from netloop.formats.shared.operator_table import OperatorTable
from netloop.model.graph.layer import ILayer
from netloop.model.layers.affine import IParametricReLULayer, IScaleLayer
from netloop.model.layers.attention import IAttentionInputLayer, IAttentionOutputLayer
from netloop.model.layers.bits import IBitCastLayer
from netloop.model.layers.cache import IKVCacheUpdateLayer
from netloop.model.layers.collective import IDistCollectiveLayer
from netloop.model.layers.convolution import IConvolutionLayer, IDeconvolutionLayer
from netloop.model.layers.detection import IUniqueLayer
from netloop.model.layers.experts import IMoELayer
from netloop.model.layers.fourier import IDFTLayer
from netloop.model.layers.gather import IGatherLayer, IOneHotLayer, IScatterLayer
from netloop.model.layers.grid_sample import IGridSampleLayer
from netloop.model.layers.maps import IMapLookupLayer
from netloop.model.layers.matrix import IDeterminantLayer, IEinsumLayer, IMatrixMultiplyLayer, Subscripts
from netloop.model.layers.normalization import INormalizationLayer, IRaggedSoftMaxLayer
from netloop.model.layers.padding import IPaddingLayer, IReverseSequenceLayer
from netloop.model.layers.pointwise import (
    IActivationLayer,
    ICastLayer,
    IElementWiseLayer,
    IIdentityLayer,
    ISelectLayer,
    IUnaryLayer,
)
from netloop.model.layers.pooling import ILRNLayer, IPoolingIndicesLayer, IPoolingLayer
from netloop.model.layers.quantize import IDequantizeLayer, IDynamicQuantizeLayer, IQuantizeLayer
from netloop.model.layers.rearrange import IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.model.layers.reduce import ICumulativeLayer, IReduceLayer, ISoftMaxLayer
from netloop.model.layers.resample import IResizeLayer, simple_fraction
from netloop.model.layers.rotary import IRotaryEmbeddingLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.model.layers.sources import IFillLayer
from netloop.model.layers.strings import (
    IStringConcatenationLayer,
    IStringLookupLayer,
    IStringMatchLayer,
    IStringNgramsLayer,
    IStringNormalizationLayer,
    IStringSplitLayer,
    IStringTokenizationLayer,
)
from netloop.model.layers.topk import ITopKLayer
from netloop.model.layers.windows import SAME, SlidingWindow, Window
from netloop.values.enums import GatherMode, MatrixOperation, PaddingMode
from netloop.values.types import UNKNOWN, TensorType, axes_of, normal_axis


@dataclass(frozen=True)
class LayerInputs:
    """The facts that the shape of an output of a layer may depend on.

    Attributes:
        shapes: the lengths of each input; None for one that is left out, and for sequences and optional values.
        values: the values of the ``SHAPE_INPUTS``, by position; None for those that depend on iterations.
        types: the types of the inputs, by position.
        output: the type of the output.
        position: the position of the output.
    """

    shapes: Sequence[Lengths | None]
    values: dict[int, Value | None]
    types: dict[int, TensorType]
    output: TensorType
    position: int

    def shape(self, position: int = 0) -> Lengths:
        """The lengths of an input."""
        lengths = self.shapes[position]
        assert lengths is not None
        return lengths

    def ints(self, position: int) -> list[int] | None:
        """The numbers in an input, if they are known while the network is built."""
        return self.types[position].ints() if position in self.types else None

    def axes(self, position: int, rank: int) -> list[int] | None:
        """The axes that an input lists, if they are known."""
        axes = self.ints(position)
        return None if axes is None else [normal_axis(axis, rank) for axis in axes]


Rule = Callable[..., Lengths]

SHAPES = OperatorTable[type[ILayer], Rule]()
"""Each takes the layer, a ``LengthBuilder`` and the ``LayerInputs``, and returns the lengths of the output."""

shape_of = SHAPES.register


@shape_of(
    IActivationLayer, IUnaryLayer, ICastLayer, IIdentityLayer, IScaleLayer, IParametricReLULayer, INormalizationLayer,
    IRaggedSoftMaxLayer, ISoftMaxLayer, ICumulativeLayer, ILRNLayer, IQuantizeLayer, IDequantizeLayer, IScatterLayer,
    IReverseSequenceLayer, IRotaryEmbeddingLayer, IKVCacheUpdateLayer, IMoELayer, IAttentionOutputLayer, IBitCastLayer,
    IDistCollectiveLayer, IStringLookupLayer, IStringMatchLayer,
)  # fmt: skip
def of_first_input(layer: ILayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    return inputs.shape()


@shape_of(IAttentionInputLayer)
def of_same_input(layer: ILayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    return inputs.shape(inputs.position)


@shape_of(IElementWiseLayer, ISelectLayer, IStringConcatenationLayer)
def broadcast(layer: ILayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    return _broadcast(build, *(inputs.shape(position) for position in range(len(inputs.shapes))))


def _broadcast(build: LengthBuilder, *shapes: Lengths) -> Lengths:
    return [reduce(build.broadcast, lengths) for lengths in zip(*shapes, strict=True)]


# ---------------------------------------------------------------------- moving elements


@shape_of(IGatherLayer)
def gather(layer: IGatherLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    data, indices, batch = inputs.shape(0), inputs.shape(1), layer.num_elementwise_dims
    if layer.mode is GatherMode.ELEMENT:
        return indices
    if layer.mode is GatherMode.ND:
        together = [build.common(*pair) for pair in zip(data[:batch], indices[:batch], strict=True)]
        left = inputs.output.rank - (len(indices) - 1)
        return [*together, *indices[batch:-1], *data[len(data) - left :]]
    axis = normal_axis(layer.axis, len(data))
    together = _broadcast(build, data[:batch], indices[:batch])
    return [*together, *data[batch:axis], *indices[batch:], *data[axis + 1 :]]


@shape_of(IOneHotLayer)
def one_hot(layer: IOneHotLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = inputs.shape()
    axis = normal_axis(layer.axis, len(lengths) + 1)
    return [*lengths[:axis], *build.elements(inputs.values[2], 1), *lengths[axis:]]


@shape_of(ISliceLayer)
def slice_(layer: ISliceLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = list(inputs.shape())
    along = _sliced_axes(layer, inputs)
    if along is None:
        return [build.unknown] * len(lengths)
    if 2 in inputs.values:
        sizes = build.elements(inputs.values[2], len(along))
    else:
        sizes = [build.number(size) for size in layer.shape]
    for axis, size in zip(along, sizes, strict=True):
        lengths[axis] = size
    return lengths


def _sliced_axes(layer: ISliceLayer, inputs: LayerInputs) -> Sequence[int] | None:
    rank = len(inputs.shape())
    if 5 in inputs.values:
        return inputs.axes(5, rank)
    return range(rank) if layer.axes is None else [normal_axis(axis, rank) for axis in layer.axes]


@shape_of(IShuffleLayer)
def shuffle(layer: IShuffleLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = inputs.shape()
    if layer.first_transpose is not None:
        lengths = [lengths[axis] for axis in layer.first_transpose]
    if 1 in inputs.values:
        lengths = _reshaped(layer, build, lengths, build.elements(inputs.values[1], inputs.output.rank))
    elif layer.reshape_dims is not None:
        dims: Sequence[int] = layer.reshape_dims
        lengths = _reshaped(layer, build, lengths, [build.number(dim) for dim in dims])
    if layer.second_transpose is not None:
        lengths = [lengths[axis] for axis in layer.second_transpose]
    return lengths


def _reshaped(layer: IShuffleLayer, build: LengthBuilder, lengths: Lengths, dims: Lengths) -> Lengths:
    """The lengths after a reshape to dims, of which 0 may stand for the length before, and -1 for what is left."""
    one, before = build.number(1), list(lengths)
    others = [build.where(dim, UNKNOWN, one, dim) for dim in dims]
    if layer.zero_is_placeholder:
        for axis, (dim, length) in enumerate(zip(dims, lengths, strict=False)):
            before[axis] = build.where(dim, 0, one, length)
            others[axis] = build.where(dim, 0, one, others[axis])
        copied = [build.where(*numbers) for numbers in zip(dims, [0] * len(dims), lengths, dims, strict=False)]
        dims = [*copied, *dims[len(copied) :]]
    rest = build.share(build.product(before), build.product(others))
    return [build.where(dim, UNKNOWN, rest, dim) for dim in dims]


@shape_of(ISqueezeLayer)
def squeeze(layer: ISqueezeLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = inputs.shape()
    axes = inputs.axes(1, len(lengths))
    if axes is None:
        return [build.unknown] * inputs.output.rank
    return [length for axis, length in enumerate(lengths) if axis not in axes]


@shape_of(IUnsqueezeLayer)
def unsqueeze(layer: IUnsqueezeLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    axes, lengths = inputs.axes(1, inputs.output.rank), iter(inputs.shape())
    if axes is None:
        return [build.unknown] * inputs.output.rank
    return [build.number(1) if axis in axes else next(lengths) for axis in range(inputs.output.rank)]


@shape_of(IConcatenationLayer)
def concatenation(layer: IConcatenationLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    axis = normal_axis(layer.axis, inputs.output.rank)
    along = zip(*(inputs.shape(position) for position in range(len(inputs.shapes))), strict=True)
    return [reduce(build.add if at == axis else build.common, lengths) for at, lengths in enumerate(along)]


@shape_of(IPaddingLayer)
def padding(layer: IPaddingLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    widths = [sum(pair) for pair in zip(layer.pre_padding_nd, layer.post_padding_nd, strict=True)]
    *kept, height, width = inputs.shape()
    return [*kept, build.plus(height, widths[0]), build.plus(width, widths[1])]


# ---------------------------------------------------------------------- reductions and products


@shape_of(IReduceLayer)
def reduce_(layer: IReduceLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = inputs.shape()
    over = inputs.axes(1, len(lengths)) if 1 in inputs.values else axes_of(layer.axes, len(lengths))
    if over is None:
        return [build.unknown] * inputs.output.rank
    if layer.keep_dims:
        return [build.number(1) if axis in over else length for axis, length in enumerate(lengths)]
    return [length for axis, length in enumerate(lengths) if axis not in over]


@shape_of(ITopKLayer)
def topk(layer: ITopKLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = list(inputs.shape())
    (count,) = build.elements(inputs.values[1], 1) if 1 in inputs.values else [build.number(layer.k)]
    lengths[axes_of(layer.axes, len(lengths))[0]] = count
    return lengths


@shape_of(IMatrixMultiplyLayer)
def matrix_multiply(layer: IMatrixMultiplyLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    parts = [_matrix(inputs.shape(0), layer.op0, -2), _matrix(inputs.shape(1), layer.op1, -1)]
    (batch_a, rows), (batch_b, columns) = parts
    return [*_broadcast(build, batch_a, batch_b), *rows, *columns]


def _matrix(lengths: Lengths, op: MatrixOperation, kept: int) -> tuple[Lengths, Lengths]:
    """The batch axes of an operand, and the axis of its matrix that the product has."""
    if op is MatrixOperation.VECTOR:
        return lengths[:-1], []
    return lengths[:-2], [lengths[kept if op is MatrixOperation.NONE else -3 - kept]]


@shape_of(IEinsumLayer)
def einsum(layer: IEinsumLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    shapes = [inputs.shape(position) for position in range(len(inputs.shapes))]
    subscripts = Subscripts.of(layer.equation, [len(lengths) for lengths in shapes])
    by_label: dict[str, Value] = {}
    for labels, lengths in zip(subscripts.operands, shapes, strict=True):
        for label, length in zip(labels, lengths, strict=True):
            agreed = build.broadcast if label.isdigit() else build.common
            by_label[label] = agreed(by_label.get(label, length), length)
    return [by_label[label] for label in subscripts.result]


@shape_of(IDeterminantLayer)
def determinant(layer: IDeterminantLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    return inputs.shape()[:-2]


# ---------------------------------------------------------------------- windows and images


@shape_of(IPoolingLayer, IPoolingIndicesLayer, IConvolutionLayer)
def read_windows(layer: SlidingWindow, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    return _of_windows(layer, build, inputs.shape(), _length_read)


@shape_of(IDeconvolutionLayer)
def written_windows(layer: IDeconvolutionLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    return _of_windows(layer, build, inputs.shape(), _length_written)


LengthAlong = Callable[[SlidingWindow, LengthBuilder, Value, Window], Value]


def _of_windows(layer: SlidingWindow, build: LengthBuilder, lengths: Lengths, along: LengthAlong) -> Lengths:
    """The lengths of the batch and the channels, and of the axes of the window; the caller knows the number of maps."""
    count = len(layer.window)
    windows = map(Window, layer.spans, layer.stride_nd, layer.pre_padding, layer.post_padding)
    pairs = zip(lengths[-count:], windows, strict=True)
    return [*lengths[:-count], *(along(layer, build, length, window) for length, window in pairs)]


def _length_read(layer: SlidingWindow, build: LengthBuilder, length: Value, window: Window) -> Value:
    span, stride, before, after = window
    if layer.padding_mode in SAME:
        return build.over(build.plus(length, stride - 1), stride)
    room = build.plus(length, before + after - span)
    rounded = stride - 1 if layer.padding_mode is PaddingMode.EXPLICIT_ROUND_UP else 0
    return build.plus(build.over(build.plus(room, rounded), stride), 1)


def _length_written(layer: SlidingWindow, build: LengthBuilder, length: Value, window: Window) -> Value:
    # the length of the output for one element of input, and a stride more for each other one
    first = layer.places_along(1, window).length
    return build.plus(build.times(length, window.stride), first - window.stride)


@shape_of(IResizeLayer)
def resize(layer: IResizeLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = inputs.shape()
    if 1 in inputs.values:
        return _resized_by_input(build, lengths, inputs.values[1])
    if layer.scales:
        scales = map(simple_fraction, layer.scales)
        return [build.over(build.times(n, s.numerator), s.denominator) for n, s in zip(lengths, scales, strict=True)]
    return [build.number(length) for length in layer.shape] or lengths


def _resized_by_input(build: LengthBuilder, lengths: Lengths, size: Value | None) -> Lengths:
    if size is None or size.dtype.kind != "f":
        return build.elements(size, len(lengths))
    make = build.make
    exact = make.op("Mul", make.cast(make.concat(lengths, 0), DOUBLE), make.cast(size, DOUBLE))
    return build.elements(make.cast(make.op("Floor", exact), INT64), len(lengths))


@shape_of(IGridSampleLayer)
def grid_sample(layer: IGridSampleLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    return [*inputs.shape(0)[:2], *inputs.shape(1)[1:-1]]


@shape_of(IDFTLayer)
def dft(layer: IDFTLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = list(inputs.shape())
    axes = inputs.axes(2, len(lengths)) if 2 in inputs.values else [normal_axis(layer.axis, len(lengths))]
    if axes is None:
        return [build.unknown] * len(lengths)
    (axis,) = axes
    count = build.elements(inputs.values[1], 1)[0] if 1 in inputs.values else lengths[axis]
    if layer.onesided and layer.inverse and 1 not in inputs.values:
        count = build.times(build.plus(count, -1), 2)
    is_half = layer.onesided and not layer.inverse
    lengths[axis] = build.plus(build.over(count, 2), 1) if is_half else count
    return lengths


# ---------------------------------------------------------------------- others


@shape_of(IFillLayer)
def fill(layer: IFillLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    return build.elements(inputs.values.get(0), inputs.output.rank)


@shape_of(IDynamicQuantizeLayer)
def dynamic_quantize(layer: IDynamicQuantizeLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = inputs.shape()
    if inputs.position == 0:
        return lengths
    axis, size = normal_axis(layer.axis, len(lengths)), layer.block_size
    block: Sequence[int] = layer.block_shape or [size if at == axis else 1 for at in range(len(lengths))]
    return [build.over(length, max(1, size)) for length, size in zip(lengths, block, strict=True)]


@shape_of(IUniqueLayer)
def unique(layer: IUniqueLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    lengths = list(inputs.shape())
    axis = None if layer.axis is None else normal_axis(layer.axis, len(lengths))
    if inputs.position == 2:
        return [build.product(lengths) if axis is None else lengths[axis]]
    if inputs.position or axis is None:
        return [build.unknown]
    lengths[axis] = build.unknown
    return lengths


@shape_of(IMapLookupLayer)
def map_lookup(layer: IMapLookupLayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    keys = inputs.shapes[1] if len(inputs.shapes) > 1 else None
    return [build.unknown] if keys is None else keys


@shape_of(IStringSplitLayer, IStringTokenizationLayer)
def split_strings(layer: ILayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    return [*inputs.shape(), build.unknown] if inputs.position == 0 else inputs.shape()


@shape_of(IStringNgramsLayer, IStringNormalizationLayer)
def rows_of_strings(layer: ILayer, build: LengthBuilder, inputs: LayerInputs) -> Lengths:
    is_kept = isinstance(layer, IStringNormalizationLayer) and (layer.stopwords is None or not layer.stopwords.size)
    return inputs.shape() if is_kept else [*inputs.shape()[:-1], build.unknown]
