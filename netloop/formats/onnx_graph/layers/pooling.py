"""Pooling, and normalization over neighbouring channels."""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import UINT64, carrier
from netloop.formats.onnx_graph.window_padding import padded, padding_attributes
from netloop.model.layers.pooling import ILRNLayer, IPoolingIndicesLayer, IPoolingLayer
from netloop.model.layers.reduce import lowest
from netloop.values.diagnostics import require
from netloop.values.enums import PaddingMode, PoolingType
from netloop.values.types import UNKNOWN, Array, Shape, numpy_type

PoolingLayer = IPoolingLayer | IPoolingIndicesLayer


@exports(IPoolingLayer)
def pooling(layer: IPoolingLayer, make: NodeBuilder, x: Value) -> Value:
    wide = make.wide(x)
    if layer.type is PoolingType.MAX:
        return make.cast(_largest(layer, make, wide), x.dtype)
    if layer.type is PoolingType.AVERAGE:
        return make.cast(_average(layer, make, wide), x.dtype)
    most = make.op("Mul", _largest(layer, make, wide), make.number_like(1 - layer.blend_factor, wide))
    mean = make.op("Mul", _average(layer, make, wide), make.number_like(layer.blend_factor, wide))
    return make.cast(make.op("Add", most, mean), x.dtype)


def _window(layer: PoolingLayer) -> dict[str, Any]:
    return {
        "kernel_shape": list(layer.window_size_nd),
        "strides": list(layer.stride_nd),
        "dilations": list(layer.dilation_nd),
    }


def _fits(layer: PoolingLayer, padding: dict[str, Any] | None) -> bool:
    """Whether attributes can express the padding, and every window contains an element of the input."""
    if padding is None or layer.padding_mode is PaddingMode.EXPLICIT_ROUND_UP:
        return False
    sizes = [*layer.window_size_nd, *layer.window_size_nd]
    return all(pad < size for pad, size in zip(padding.get("pads", ()), sizes, strict=False))


def _check_type(layer: PoolingLayer, make: NodeBuilder) -> None:
    require(
        make.type(0).dtype not in (INT64, UINT64),
        f"{layer.name!r} pools {make.type(0).dtype}",
        "no element type of ONNX's MaxPool holds all of its numbers",
        "convert the input with add_cast",
    )


def _largest(layer: IPoolingLayer, make: NodeBuilder, x: Value) -> Value:
    _check_type(layer, make)
    padding = padding_attributes(layer, make)
    if padding is not None and _fits(layer, padding):
        return make.op("MaxPool", x, **_window(layer), **padding)
    return make.op("MaxPool", padded(layer, make, x, lowest(x.dtype)), **_window(layer))


@exports(IPoolingIndicesLayer)
def pooling_indices(layer: IPoolingIndicesLayer, make: NodeBuilder, x: Value) -> Value:
    """MaxPool's indices count through batch and channels too, so the remainder within an image is taken."""
    _check_type(layer, make)
    padding = padding_attributes(layer, make)
    require(
        padding is not None and _fits(layer, padding),
        f"{layer.name!r} may have windows that contain only padding",
        "its padding is EXPLICIT_ROUND_UP, or as long as its window, and ONNX's MaxPool gives no index there",
        "reduce the padding",
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
    padding = padding_attributes(layer, make)
    if padding is not None and _fits(layer, padding):
        counted = int(not layer.average_count_excludes_padding)
        return make.op("AveragePool", x, **_window(layer), **padding, count_include_pad=counted)
    if _is_rounded_up_only(layer):
        pads = [*layer.pre_padding, *layer.post_padding]
        return make.op("AveragePool", x, **_window(layer), pads=pads, ceil_mode=1)
    longer, lengths = padded(layer, make, x, 0), make.type(0).shape[2:]
    mean = make.op("AveragePool", longer, **_window(layer))
    if UNKNOWN in lengths:
        shares = make.op("AveragePool", _counted(layer, make, x, longer), **_window(layer))
        zero, one = make.number_like(0, x), make.number_like(1, x)
        return make.op("Div", mean, make.where(make.compare("Greater", shares, zero), shares, one))
    share = np.prod(layer.window_size_nd) / _counts(layer, lengths)
    return make.op("Mul", mean, make.constant(share, x.dtype))


def _is_rounded_up_only(layer: IPoolingLayer) -> bool:
    """Whether ceil_mode has the same windows: none starts behind the input, where ONNX has no window, and what they
    count does not depend on padding, which runtimes count differently there.
    """
    if layer.padding_mode is not PaddingMode.EXPLICIT_ROUND_UP:
        return False
    axes = zip(layer.window_size_nd, layer.spans, layer.stride_nd, layer.pre_padding, layer.post_padding, strict=True)
    fits = all(step + after <= span and max(before, after) < size for size, span, step, before, after in axes)
    return fits and (layer.average_count_excludes_padding or not any((*layer.pre_padding, *layer.post_padding)))


def _counted(layer: IPoolingLayer, make: NodeBuilder, x: Value, longer: Value) -> Value:
    """One for each element that averages count and zeros for the others, of the lengths of the padded input."""
    axes = len(layer.window_size_nd)
    ones = make.full(make.concat([make.int64s(1, 1), make.shape(x, 2)], 0), 1, x.dtype)
    if layer.average_count_excludes_padding:
        return padded(layer, make, ones, 0)
    if layer.padding_mode is not PaddingMode.EXPLICIT_ROUND_UP:
        return padded(layer, make, ones, 1)
    pads = make.int64s(0, 0, *layer.pre_padding, 0, 0, *layer.post_padding)
    inner = make.op("Pad", ones, pads, make.number_like(1, x))
    rest = make.op("Sub", make.shape(longer, 2), make.shape(inner, 2))
    return make.op("Pad", inner, make.concat([make.int64s(*[0] * (axes + 4)), rest], 0), make.number_like(0, x))


def _counts(layer: IPoolingLayer, lengths: Shape) -> Array:
    """The number of elements that each window's average counts."""
    along: list[Array] = []
    windows = zip(lengths, layer.window_size_nd, layer.dilation_nd, layer.stride_nd, layer.places(lengths), strict=True)
    for length, size, dilation, stride, place in windows:
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
    value = make.op("LRN", make.reshape(x, _planes(rank), zero_copies=True), **numbers)
    return make.op("Reshape", value, make.lengths(x, make.type(0)))


def _planes(rank: int) -> Sequence[int]:
    """A shape with two axes after batch and channel."""
    return (0, 0, 0, 1) if rank == 3 else (0, 0, 0, -1)
