"""Pooling."""

import math

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.onnx.importer.operators.convolution import padding_of, sliding
from netloop.formats.shared.windows import among_all, pooled
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.windows import SlidingWindow
from netloop.model.weights import Weights
from netloop.values.diagnostics import require
from netloop.values.enums import DataType, PoolingType, ReduceOperation, SampleMode, UnaryOperation
from netloop.values.types import HALVES, UNKNOWN


def _pooled(call: NodeCall, x: ITensor, layer: SlidingWindow) -> ITensor:
    """The output of a window that moves as the attributes of the node say."""
    slides = sliding(call, len(layer.window))
    return pooled(call.make, x, layer, slides, call.flag("ceil_mode"))


@operator("AveragePool", since=(1, 7, 10, 19))
def average_pool(call: NodeCall, x: ITensor) -> ITensor:
    """Average of each window, with or without the padding."""
    layer = call.make.network.add_pooling_nd(x, PoolingType.AVERAGE, call.attribute("kernel_shape"))
    layer.average_count_excludes_padding = not call.attribute("count_include_pad", 0)
    return _pooled(call, x, layer)


@operator("MaxPool", since=(1, 8, 10))
def max_pool(call: NodeCall, x: ITensor) -> list[Maybe]:
    """Maximum of each window, and its flat index in the input."""
    network, window = call.make.network, call.attribute("kernel_shape")
    most = _pooled(call, x, network.add_pooling_nd(x, PoolingType.MAX, window)) if call.wants(0) else None
    if not call.wants(1):
        return [most]
    indices = _pooled(call, x, network.add_pooling_indices(x, window, DataType.INT64))
    return [most, _among_all(call, x, indices)]


def _among_all(call: NodeCall, x: ITensor, indices: ITensor) -> ITensor:
    """Indices in an image as flat indices in the whole input."""
    if call.attribute("storage_order", 0):
        indices = _by_columns(call.make, x, indices)
    return among_all(call.make, x, indices)


def _by_columns(make: FormulaBuilder, x: ITensor, indices: ITensor) -> ITensor:
    """Row-major indices in column-major order."""
    stride, result, rest = make.constant(np.int64(1)), make.constant(np.int64(0)), indices
    lengths = [make.tensor(make.length(x, axis)) for axis in range(2, x.type.rank)]
    strides: list[ITensor] = []
    for length in lengths:
        strides.append(stride)
        stride = make.mul(stride, length)
    for length, stride in zip(lengths[::-1], strides[::-1], strict=True):
        above = make.floor_div(rest, length)
        result = make.add(result, make.mul(make.sub(rest, make.mul(above, length)), stride))
        rest = above
    return result


LARGEST_WINDOWS = 1 << 26
"""The most elements of the windows of all channels, which are the weights of a convolution."""


@operator("LpPool", since=(1, 2, 18))
def lp_pool(call: NodeCall, x: ITensor) -> ITensor:
    """Lp norm of each window."""
    has_channels = x.type.rank > 1 and x.type.shape[1] != UNKNOWN
    require(has_channels, f"the input is {x.type}, and its number of channels must be known")
    make, window, channels = call.make, call.attribute("kernel_shape"), x.type.shape[1]
    taps = channels * math.prod(window)
    require(taps <= LARGEST_WINDOWS, f"the windows have {taps} elements, but may have {LARGEST_WINDOWS}")
    ones = np.ones((channels, 1, *window), x.type.dtype)
    power = float(call.attribute("p", 2.0))
    layer = make.network.add_convolution_nd(_power_of(make, x, power), channels, window, Weights(ones))
    layer.num_groups = channels
    return _root(make, _pooled(call, x, layer), power)


def _power_of(make: FormulaBuilder, x: ITensor, power: float) -> ITensor:
    return make.power(make.unary(UnaryOperation.ABS, x), np.asarray(power, x.type.dtype))


def _root(make: FormulaBuilder, x: ITensor, power: float) -> ITensor:
    require(power > 0, f"p is {power:g}, but must be positive")
    return make.power(x, np.asarray(1 / power, x.type.dtype))


@operator("GlobalAveragePool")
def global_average_pool(call: NodeCall, x: ITensor) -> ITensor:
    """Mean over the spatial axes."""
    return call.make.mean(x, range(2, x.type.rank), keep=True)


@operator("GlobalMaxPool")
def global_max_pool(call: NodeCall, x: ITensor) -> ITensor:
    """Maximum over the spatial axes."""
    return call.make.reduce(ReduceOperation.MAX, x, range(2, x.type.rank), keep=True)


@operator("GlobalLpPool")
def global_lp_pool(call: NodeCall, x: ITensor) -> ITensor:
    """Lp norm over the spatial axes."""
    power = float(call.attribute("p", 2.0))
    total = call.make.sum(_power_of(call.make, x, power), range(2, x.type.rank), keep=True)
    return _root(call.make, total, power)


@operator("MaxUnpool", since=9)
def max_unpool(call: NodeCall, x: ITensor, indices: ITensor, output_shape: Maybe = None) -> ITensor:
    """Elements at the indices that MaxPool found, zeros elsewhere."""
    make, window = call.make, call.attribute("kernel_shape")
    axes = len(window)
    require(x.type.rank == axes + 2, f"the input is {x.type}, but must have {axes + 2} axes")
    strides = np.array(call.attribute("strides", [1] * axes), np.int64)
    spare = np.array(window, np.int64) - strides - np.sum(padding_of(call, axes), 0)
    lengths = make.add(make.mul(make.slice(make.shape(x), [2], [axes]), strides), spare)
    shape = make.concat([make.slice(make.shape(x), [0], [2]), lengths], 0)
    count = make.reduce(ReduceOperation.PROD, shape, [0], True)
    zeros = make.full(count, 0, x.type.dtype)
    output = make.reshape(make.scatter_elements(zeros, make.flat(indices), make.flat(x), 0), shape)
    if output_shape is None:
        return output
    return make.slice(output, [0] * (axes + 2), make.list_tensor(output_shape), outside=SampleMode.FILL)


LARGEST_LRN = 15
"""The largest ``size`` that the LRN layer takes."""


@operator("LRN")
def lrn(call: NodeCall, x: ITensor) -> ITensor:
    """``x / (bias + alpha * mean) ** beta``, with the mean of the squares in neighbouring channels."""
    make, size = call.make, call.attribute("size")
    require(size > 0, f"size is {size}, but must be positive")
    alpha, beta, k = (call.attribute(name) for name in ("alpha", "beta", "bias"))
    if size % 2 and size <= LARGEST_LRN and x.type.rank > 2:
        return make.output(make.network.add_lrn(x, size, alpha, beta, k))
    wide = make.cast(x, np.float32) if x.type.dtype in HALVES else x
    rows = make.expand_dims(make.merge_axes(wide, 2), [1])
    sums = make.network.add_pooling_nd(make.mul(rows, rows), PoolingType.AVERAGE, [size, 1])
    sums.pre_padding, sums.post_padding = [(size - 1) // 2, 0], [size // 2, 0]
    sums.average_count_excludes_padding = False
    mean = make.reshape(make.output(sums), make.shape(x))
    return make.cast(make.div(wide, make.power(make.add(make.mul(mean, alpha), k), beta)), x.type.dtype)
