"""Convolution and transposed convolution."""

from typing import Any

from netloop.formats.onnx_graph.node_builder import INT32
from netloop.formats.openvino.exporter.layer_builder import open_shape
from netloop.formats.openvino.exporter.operators import IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.shared.word_tables import AUTO_PADS
from netloop.values.types import UNKNOWN


def window_attributes(node: OnnxNode, *, dilated: bool = False) -> dict[str, Any]:
    """The attributes of a sliding window: strides and padding, with ``dilated`` also dilations."""
    values = node.attributes
    axes = len(values["kernel_shape"])
    pads = values.get("pads", [0] * (2 * axes))
    attributes = {"strides": values["strides"], "pads_begin": pads[:axes], "pads_end": pads[axes:]}
    auto_pad = AUTO_PADS.onnx_to_openvino[values.get("auto_pad", "NOTSET")]
    return {**attributes, "auto_pad": auto_pad, **({"dilations": values["dilations"]} if dilated else {})}


@exports("Conv")
def convolution(build: LayerBuilder, node: OnnxNode, x: IrPort, kernel: IrPort, bias: IrPort | None = None) -> IrPort:
    return _convolved(build, node, "Convolution", x, kernel, bias)


@exports("ConvInteger")
def integer_convolution(
    build: LayerBuilder,
    node: OnnxNode,
    x: IrPort,
    kernel: IrPort,
    zero_of_x: IrPort | None = None,
    zero_of_kernel: IrPort | None = None,
) -> IrPort:
    centred = _centred(build, x, zero_of_x), _centred(build, kernel, zero_of_kernel)
    return _convolved(build, node, "Convolution", *centred, None)


def _centred(build: LayerBuilder, x: IrPort, zero: IrPort | None) -> IrPort:
    wide = build.cast(x, INT32)
    return wide if zero is None else build.pointwise("Subtract", wide, build.cast(zero, INT32))


@exports("ConvTranspose")
def deconvolution(build: LayerBuilder, node: OnnxNode, x: IrPort, kernel: IrPort, bias: IrPort | None = None) -> IrPort:
    none = [0] * len(node.attributes["kernel_shape"])
    return _convolved(build, node, "ConvolutionBackpropData", x, kernel, bias, output_padding=none)


def _convolved(
    build: LayerBuilder, node: OnnxNode, type: str, x: IrPort, kernel: IrPort, bias: IrPort | None, **more: Any
) -> IrPort:
    axes, groups = len(node.attributes["kernel_shape"]), node.attributes["group"]
    if groups != 1:
        type, kernel = f"Group{type}", _grouped(build, kernel, groups)
    port = build.op(type, 1, x, kernel, shape=open_shape(x), **window_attributes(node, dilated=True), **more)
    if bias is None:
        return port
    return build.pointwise("Add", port, build.reshape(bias, [1, -1, *[1] * axes]))


def _grouped(build: LayerBuilder, kernel: IrPort, groups: int) -> IrPort:
    """A kernel with an axis of groups in front."""
    lengths = build.shape(kernel)
    first = build.op("Slice", 8, lengths, *(build.int64s(number) for number in (0, 1, 1, 0)), shape=(1,))
    rest = build.op("Slice", 8, lengths, *(build.int64s(number) for number in (1, 1 << 31, 1, 0)), shape=(UNKNOWN,))
    size = build.pointwise("Divide", first, build.int64s(groups), m_pythondiv=True)
    return build.reshape(kernel, build.concat([build.int64s(groups), size, rest], 0))
