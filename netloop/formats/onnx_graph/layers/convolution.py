"""Convolution and transposed convolution."""

from collections.abc import Sequence
from typing import Any

from netloop.formats.onnx_graph.integer_windows import integer_convolution, integer_deconvolution, small_integers
from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import INT32
from netloop.formats.onnx_graph.window_padding import padded, padding_attributes
from netloop.model.layers.convolution import IConvolutionLayer, IDeconvolutionLayer, WeightedWindow, is_given
from netloop.values.types import INTEGERS, Shape


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


def _batch_axes(layer: WeightedWindow, make: NodeBuilder) -> int:
    return make.type(0).rank - len(layer.window) - 1


def _merged(layer: WeightedWindow, make: NodeBuilder, x: Value) -> Value:
    """The input with one batch axis, as ONNX has it."""
    count = _batch_axes(layer, make)
    return x if count == 1 else make.reshape(x, make.concat([make.int64s(-1), make.shape(x, count)], 0))


def _split(layer: WeightedWindow, make: NodeBuilder, x: Value, parts: Value) -> Value:
    """The output with the batch axes of the input."""
    count = _batch_axes(layer, make)
    return parts if count == 1 else make.reshape(parts, make.concat([make.shape(x, 0, count), make.shape(parts, 1)], 0))


@exports(IConvolutionLayer)
def convolution(
    layer: IConvolutionLayer, make: NodeBuilder, x: Value, kernel: Value | None = None, bias: Value | None = None
) -> Value:
    shape = (layer.num_output_maps, -1, *layer.kernel_size_nd)
    weights = _weights(layer, make, shape, kernel, bias)
    if x.dtype in INTEGERS:
        sums = _of_small_integers(layer, make, x, weights[0])
        sums = sums or integer_convolution(layer, make, _merged(layer, make, x), weights[0])
        return _split(layer, make, x, _with_bias(layer, make, sums, weights))
    padding, batch = padding_attributes(layer, make), _merged(layer, make, x)
    source = padded(layer, make, batch, 0) if padding is None else batch
    return _split(layer, make, x, make.op("Conv", source, *weights, **_steps(layer), **(padding or {})))


def _of_small_integers(layer: IConvolutionLayer, make: NodeBuilder, x: Value, kernel: Value) -> Value | None:
    """The convolution as ConvInteger; None if it is not one."""
    padding = padding_attributes(layer, make)
    inputs = zip((x, kernel), (*layer.inputs, None), strict=False)
    small, taps = (small_integers(make, *pair) for pair in inputs)
    if padding is None or small is None or taps is None:
        return None
    sums = Value(INT32)
    operands = [_merged(layer, make, small.numbers), taps.numbers, small.zero, taps.zero]
    make.node("ConvInteger", operands, [sums], **_steps(layer), **padding)
    return sums


def _with_bias(layer: WeightedWindow, make: NodeBuilder, sums: Value, weights: Sequence[Value]) -> Value:
    """The sums of products with the bias of each map, if there is one."""
    if len(weights) == 1:
        return sums
    return make.op("Add", sums, make.reshape(weights[1], [-1, *(1,) * len(layer.window)]))


@exports(IDeconvolutionLayer)
def deconvolution(
    layer: IDeconvolutionLayer, make: NodeBuilder, x: Value, kernel: Value | None = None, bias: Value | None = None
) -> Value:
    shape = (-1, layer.num_output_maps // layer.num_groups, *layer.kernel_size_nd)
    weights = _weights(layer, make, shape, kernel, bias)
    if x.dtype in INTEGERS:
        sums = integer_deconvolution(layer, make, _merged(layer, make, x), weights[0])
        return _split(layer, make, x, _with_bias(layer, make, sums, weights))
    places = layer.places([1] * len(shape[2:]))
    pads = [place.before for place in places] + [place.after for place in places]
    value = make.op("ConvTranspose", _merged(layer, make, x), *weights, **_steps(layer), pads=pads)
    return _split(layer, make, x, value)
