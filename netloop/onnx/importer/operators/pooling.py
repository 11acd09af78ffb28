"""The maximum, the mean or a norm of windows, and of whole images."""

import numpy as np

from netloop.diagnostics import require
from netloop.dims import Weights
from netloop.enums import DataType, PoolingType, ReduceOperation, UnaryOperation
from netloop.formats.windows import among_all, pooled
from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.layers.windows import SlidingWindow
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.onnx.importer.operators.convolution import filled, padding_of, sliding
from netloop.types import UNKNOWN


def _pooled(call: Call, x: ITensor, layer: SlidingWindow) -> ITensor:
    """What a window slid as the attributes tell makes, but for a last window that starts in the padding."""
    slides = sliding(call, len(layer.window))
    return pooled(call.make, x, layer, slides, bool(call.attribute("ceil_mode", 0)))


@operator("AveragePool")
@operator("AveragePool", since=7)
@operator("AveragePool", since=10)
@operator("AveragePool", since=19)
def average_pool(call: Call, x: ITensor) -> ITensor:
    """The mean of a window; padding counts if that is asked for."""
    layer = call.make.network.add_pooling_nd(x, PoolingType.AVERAGE, call.attribute("kernel_shape"))
    layer.average_count_excludes_padding = not call.attribute("count_include_pad", 0)
    return _pooled(call, x, layer)


@operator("MaxPool")
@operator("MaxPool", since=8)
@operator("MaxPool", since=10)
def max_pool(call: Call, x: ITensor) -> list[ITensor | None]:
    """The maximum of a window, and where it is among all elements of the input."""
    network, window = call.make.network, call.attribute("kernel_shape")
    most = _pooled(call, x, network.add_pooling_nd(x, PoolingType.MAX, window)) if call.wants(0) else None
    if not call.wants(1):
        return [most]
    places = _pooled(call, x, network.add_pooling_indices(x, window, DataType.INT64))
    return [most, _among_all(call, x, places)]


def _among_all(call: Call, x: ITensor, places: ITensor) -> ITensor:
    """Places in an image as places among all images."""
    if call.attribute("storage_order", 0):
        places = _by_columns(call.make, x, places)
    return among_all(call.make, x, places)


def _by_columns(make: FormulaBuilder, x: ITensor, places: ITensor) -> ITensor:
    """Places of row-major order in column-major order."""
    step, made, rest = make.constant(np.int64(1)), make.constant(np.int64(0)), places
    lengths = [make.tensor(make.length(x, axis)) for axis in range(2, x.type.rank)]
    steps: list[ITensor] = []
    for length in lengths:
        steps.append(step)
        step = make.mul(step, length)
    for length, step in zip(lengths[::-1], steps[::-1], strict=True):
        above = make.floor_div(rest, length)
        made = make.add(made, make.mul(make.sub(rest, make.mul(above, length)), step))
        rest = above
    return made


@operator("LpPool")
@operator("LpPool", since=2)
@operator("LpPool", since=18)
def lp_pool(call: Call, x: ITensor) -> ITensor:
    """The norm of a window."""
    make, window, channels = call.make, call.attribute("kernel_shape"), x.type.shape[1]
    require(channels != UNKNOWN, f"the input is {x.type}, and the number of its channels must be known")
    ones = np.ones((channels, 1, *window), x.type.dtype)
    power = float(call.attribute("p", 2.0))
    layer = make.network.add_convolution_nd(_to_power(make, x, power), channels, window, Weights(ones))
    layer.num_groups = channels
    return _root(make, _pooled(call, x, layer), power)


def _to_power(make: FormulaBuilder, x: ITensor, power: float) -> ITensor:
    return make.power(make.unary(UnaryOperation.ABS, x), np.asarray(power, x.type.dtype))


def _root(make: FormulaBuilder, x: ITensor, power: float) -> ITensor:
    return make.power(x, np.asarray(1 / power, x.type.dtype))


@operator("GlobalAveragePool")
def global_average_pool(call: Call, x: ITensor) -> ITensor:
    """The mean of each image."""
    return call.make.mean(x, range(2, x.type.rank), keep=True)


@operator("GlobalMaxPool")
def global_max_pool(call: Call, x: ITensor) -> ITensor:
    """The maximum of each image."""
    return call.make.reduce(ReduceOperation.MAX, x, range(2, x.type.rank), keep=True)


@operator("GlobalLpPool")
def global_lp_pool(call: Call, x: ITensor) -> ITensor:
    """The norm of each image."""
    power = float(call.attribute("p", 2.0))
    total = call.make.sum(_to_power(call.make, x, power), range(2, x.type.rank), keep=True)
    return _root(call.make, total, power)


@operator("MaxUnpool", since=9)
def max_unpool(call: Call, x: ITensor, places: ITensor, output_shape: ITensor | None = None) -> ITensor:
    """Each element where it was found by a MaxPool, and zeros elsewhere."""
    make, window = call.make, call.attribute("kernel_shape")
    axes = len(window)
    require(x.type.rank == axes + 2, f"the input is {x.type}, and kernel_shape {window}, without batch and channel")
    steps = np.array(call.attribute("strides", [1] * axes), np.int64)
    spare = np.array(window, np.int64) - steps - np.sum(padding_of(call, axes), 0)
    lengths = make.add(make.mul(make.slice(make.shape(x), [2], [axes]), steps), spare)
    shape = make.concat([make.slice(make.shape(x), [0], [2]), lengths], 0)
    zeros = make.broadcast_to(
        make.constant(np.zeros(1, x.type.dtype)), make.reduce(ReduceOperation.PROD, shape, [0], True)
    )
    made = make.reshape(make.scatter_elements(zeros, make.flat(places), make.flat(x), 0), shape)
    return made if output_shape is None else filled(make, made, [0] * made.type.rank, make.list_tensor(output_shape))
