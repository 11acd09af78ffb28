"""Convolution and transposed convolution."""

from typing import Any

from netloop.layers.convolution import IConvolutionLayer, IDeconvolutionLayer, WeightedWindow, is_given
from netloop.onnx_graph.exporter_table import exports
from netloop.onnx_graph.graph import Value
from netloop.onnx_graph.node_builder import NodeBuilder
from netloop.onnx_graph.window_padding import padded, padding_attributes
from netloop.types import Shape


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
    padding = padding_attributes(layer, make)
    source = padded(layer, make, x, 0) if padding is None else x
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
