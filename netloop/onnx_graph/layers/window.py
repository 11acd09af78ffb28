"""Convolution, deconvolution, pooling, and normalization over neighbouring channels."""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from netloop.diagnostics import require
from netloop.enums import PaddingMode, PoolingType
from netloop.layers.convolution import IConvolutionLayer, IDeconvolutionLayer, WeightedWindow, is_given
from netloop.layers.pooling import ILRNLayer, IPoolingIndicesLayer, IPoolingLayer
from netloop.layers.reduce import lowest
from netloop.layers.windows import SAME, SlidingWindow
from netloop.onnx_graph.exporter_table import exports
from netloop.onnx_graph.graph import Value
from netloop.onnx_graph.node_builder import INT64, UINT64, NodeBuilder, carrier
from netloop.types import UNKNOWN, Array, Shape, numpy_type

Pooling = IPoolingLayer | IPoolingIndicesLayer

AUTO_PAD = {PaddingMode.SAME_UPPER: "SAME_UPPER", PaddingMode.SAME_LOWER: "SAME_LOWER"}


def _padding(layer: SlidingWindow, make: NodeBuilder) -> dict[str, Any] | None:
    """The padding of the input as ONNX's attributes say it; None if it follows from lengths that are not known."""
    lengths = make.type(0).shape[2:]
    if UNKNOWN not in lengths:
        before, after = _pads(layer, lengths)
        return {"pads": [*before, *after]}
    if layer.padding_mode in SAME and list(layer.spans) == list(layer.window):
        return {"auto_pad": AUTO_PAD[layer.padding_mode]}
    if layer.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN:
        return {"pads": [*layer.pre_padding, *layer.post_padding]}
    return None


def _padded(layer: SlidingWindow, make: NodeBuilder, x: Value, value: Any) -> Value:
    """The input with its padding, as long as it has to be in the run."""
    padding = _padding(layer, make)
    if padding is not None and "pads" in padding:
        pads: list[int] = padding["pads"]
        half = len(pads) // 2
        return make.op("Pad", x, make.ints(0, 0, *pads[:half], 0, 0, *pads[half:]), make.alike(value, x))
    before, after = _pads_in_run(layer, make, x)
    none = make.ints(0, 0)
    return make.op("Pad", x, make.concat(none, before, none, after), make.alike(value, x))


def _pads_in_run(layer: SlidingWindow, make: NodeBuilder, x: Value) -> tuple[Value, Value]:
    lengths, spans, strides = make.shape(x, 2), make.ints(*layer.spans), make.ints(*layer.stride_nd)
    given = make.ints(*layer.pre_padding)
    room = make.op("Sub", make.op("Add", lengths, make.ints(*(a + b for a, b in _ends(layer)))), spans)
    if layer.padding_mode in SAME:
        room = make.op("Sub", lengths, make.ints(1))
    rounded = make.op("Add", room, make.ints(*(0 if layer.padding_mode in SAME else n - 1 for n in layer.stride_nd)))
    reached = make.op("Add", make.op("Mul", make.op("Div", rounded, strides), strides), spans)
    total = make.op("Max", make.op("Sub", reached, lengths), make.ints(0))
    if layer.padding_mode not in SAME:
        return given, make.op("Max", make.op("Sub", total, given), make.ints(0))
    less = make.op("Div", total, make.ints(2))
    more = make.op("Sub", total, less)
    return (less, more) if layer.padding_mode is PaddingMode.SAME_UPPER else (more, less)


def _ends(layer: SlidingWindow) -> list[tuple[int, int]]:
    return list(zip(layer.pre_padding, layer.post_padding, strict=True))


def _pads(layer: SlidingWindow, lengths: Shape) -> tuple[list[int], list[int]]:
    places = layer.places(lengths)
    before = [each.before for each in places]
    if layer.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN:
        return before, list(layer.post_padding)
    steps = zip(lengths, layer.spans, layer.stride_nd, places, strict=True)
    after = [(each.length - 1) * stride + span - length - each.before for length, span, stride, each in steps]
    return before, [max(0, each) for each in after]


def _weights(
    layer: WeightedWindow, make: NodeBuilder, shape: Shape, kernel: Value | None, bias: Value | None
) -> list[Value]:
    dtype = make.type(0).dtype
    if kernel is None:
        assert layer.kernel is not None
        kernel = make.constant(layer.kernel.reshape(shape), dtype)
    if bias is None and is_given(layer.bias):
        bias = make.constant(layer.bias, dtype)
    return [kernel] if bias is None else [kernel, bias]


def _steps(layer: WeightedWindow) -> dict[str, Any]:
    return {
        "kernel_shape": list(layer.kernel_size_nd),
        "strides": list(layer.stride_nd),
        "dilations": list(layer.dilation_nd),
        "group": layer.num_groups,
    }


@exports(IConvolutionLayer)
def convolution(
    layer: IConvolutionLayer, make: NodeBuilder, x: Value, kernel: Value | None = None, bias: Value | None = None
) -> Value:
    shape = (layer.num_output_maps, -1, *layer.kernel_size_nd)
    weights = _weights(layer, make, shape, kernel, bias)
    padding = _padding(layer, make)
    source = _padded(layer, make, x, 0) if padding is None else x
    return make.op("Conv", source, *weights, **_steps(layer), **(padding or {}))


@exports(IDeconvolutionLayer)
def deconvolution(
    layer: IDeconvolutionLayer, make: NodeBuilder, x: Value, kernel: Value | None = None, bias: Value | None = None
) -> Value:
    shape = (-1, layer.num_output_maps // layer.num_groups, *layer.kernel_size_nd)
    weights = _weights(layer, make, shape, kernel, bias)
    places = layer.places([1] * len(shape[2:]))
    pads = [each.before for each in places] + [each.after for each in places]
    return make.op("ConvTranspose", x, *weights, **_steps(layer), pads=pads)


# ---------------------------------------------------------------------------- pooling


@exports(IPoolingLayer)
def pooling(layer: IPoolingLayer, make: NodeBuilder, x: Value) -> Value:
    wide = make.wide(x)
    if layer.type is PoolingType.MAX:
        return make.cast(_largest(layer, make, wide), x.dtype)
    if layer.type is PoolingType.AVERAGE:
        return make.cast(_average(layer, make, wide), x.dtype)
    most = make.op("Mul", _largest(layer, make, wide), make.alike(1 - layer.blend_factor, wide))
    mean = make.op("Mul", _average(layer, make, wide), make.alike(layer.blend_factor, wide))
    return make.cast(make.op("Add", most, mean), x.dtype)


def _window(layer: Pooling) -> dict[str, Any]:
    return {
        "kernel_shape": list(layer.window_size_nd),
        "strides": list(layer.stride_nd),
        "dilations": list(layer.dilation_nd),
    }


def _fits(layer: Pooling, padding: dict[str, Any] | None) -> bool:
    """Whether attributes tell the padding, and every window has an element of the input."""
    if padding is None or layer.padding_mode is PaddingMode.EXPLICIT_ROUND_UP:
        return False
    sizes = [*layer.window_size_nd, *layer.window_size_nd]
    return all(pad < size for pad, size in zip(padding.get("pads", ()), sizes, strict=False))


def _check_type(layer: Pooling, make: NodeBuilder) -> None:
    require(
        make.type(0).dtype not in (INT64, UINT64),
        f"{layer.name!r} takes maxima of {make.type(0).dtype}",
        "ONNX's MaxPool has no type that holds its numbers",
        "convert them with add_cast",
    )


def _largest(layer: IPoolingLayer, make: NodeBuilder, x: Value) -> Value:
    _check_type(layer, make)
    padding = _padding(layer, make)
    if padding is not None and _fits(layer, padding):
        return make.op("MaxPool", x, **_window(layer), **padding)
    return make.op("MaxPool", _padded(layer, make, x, lowest(x.dtype)), **_window(layer))


@exports(IPoolingIndicesLayer)
def pooling_indices(layer: IPoolingIndicesLayer, make: NodeBuilder, x: Value) -> Value:
    """MaxPool counts through batch and channels too."""
    _check_type(layer, make)
    padding = _padding(layer, make)
    require(
        padding is not None and _fits(layer, padding),
        f"{layer.name!r} may have windows of nothing but padding",
        "its padding is EXPLICIT_ROUND_UP, or as long as its window, and ONNX's MaxPool tells no place there",
        "pad less",
    )
    wide = make.cast(x, carrier("MaxPool", x.dtype))
    places = Value(INT64)
    make.node("MaxPool", [wide], [Value(wide.dtype), places], **_window(layer), **(padding or {}))
    lengths = make.type(0).shape[2:]
    size = make.number(math.prod(lengths), INT64)
    if UNKNOWN in lengths:
        size = make.op("ReduceProd", make.shape(x, 2), keepdims=0)
    return make.cast(make.op("Mod", places, size), numpy_type(layer.indices_type))


def _average(layer: IPoolingLayer, make: NodeBuilder, x: Value) -> Value:
    padding = _padding(layer, make)
    if padding is not None and _fits(layer, padding):
        counted = int(not layer.average_count_excludes_padding)
        return make.op("AveragePool", x, **_window(layer), **padding, count_include_pad=counted)
    lengths = make.type(0).shape[2:]
    require(
        UNKNOWN not in lengths,
        f"the averages of {layer.name!r} are of counts that are known only in the run",
        "its padding is EXPLICIT_ROUND_UP, or as long as its window",
        "fix the lengths of the input, or set padding_mode to EXPLICIT_ROUND_DOWN",
    )
    mean = make.op("AveragePool", _padded(layer, make, x, 0), **_window(layer))
    share = np.prod(layer.window_size_nd) / _counts(layer, lengths)
    return make.op("Mul", mean, make.constant(share, x.dtype))


def _counts(layer: IPoolingLayer, lengths: Shape) -> Array:
    """What the average of each window divides by."""
    along: list[Array] = []
    steps = zip(lengths, layer.window_size_nd, layer.dilation_nd, layer.stride_nd, layer.places(lengths), strict=True)
    for length, size, dilation, stride, place in steps:
        before, after = (0, 0) if layer.average_count_excludes_padding else (place.before, place.after)
        read = np.arange(place.length)[:, None] * stride - place.before + np.arange(size) * dilation
        along.append(np.sum((read >= -before) & (read < length + after), 1))
    return np.maximum(reduce(np.multiply.outer, along), 1)


@exports(ILRNLayer)
def lrn(layer: ILRNLayer, make: NodeBuilder, x: Value) -> Value:
    rank = make.type(0).rank
    numbers: dict[str, Any] = {"size": layer.window_size, "alpha": layer.alpha, "beta": layer.beta, "bias": layer.k}
    if rank == 4:
        return make.op("LRN", x, **numbers)
    made = make.op("LRN", make.reshape(x, *_planes(rank)), **numbers)
    return make.op("Reshape", made, make.lengths(x, make.type(0)))


def _planes(rank: int) -> Sequence[int]:
    """Batch, channel and two more axes."""
    return (0, 0, 0, 1) if rank == 3 else (0, 0, 0, -1)
