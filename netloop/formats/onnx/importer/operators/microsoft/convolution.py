"""Convolution of onnxruntime (com.microsoft)."""

from dataclasses import replace

from netloop.formats.onnx.importer.operators.convolution import convolution, sliding, window_of
from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.microsoft.pointwise import activated
from netloop.formats.shared.windows import Sliding, convolved, deconvolved
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType


@microsoft("FusedConv")
def fused_convolution(call: NodeCall, x: ITensor, kernel: ITensor, bias: Maybe = None, other: Maybe = None) -> ITensor:
    """An activation of a convolution plus another tensor."""
    tensor = convolution(call, x, kernel, bias)
    tensor = tensor if other is None else call.make.add(tensor, other)
    return activated(call, tensor, call.attribute("activation_params", []))


UNSUPPORTED = {
    "ndim": 1,
    "channels_last": 0,
    "input_channels": 0,
    "input_channel_offset": 0,
    "state_length": 0,
    "state_update_capacity": 0,
    "state_window": 0,
}
"""The attributes of CausalConvWithState that netloop supports one value of."""


@microsoft("CausalConvWithState")
def causal_convolution(
    call: NodeCall, x: ITensor, kernel: ITensor, bias: Maybe = None, past: Maybe = None
) -> list[ITensor]:
    """Convolution of each channel with its own past, and the past of the next call; an activation may follow."""
    make, kind, dilation = call.make, call.attribute("activation"), call.attribute("dilation")
    own = {name: call.attribute(name) for name in UNSUPPORTED}
    require(own == UNSUPPORTED, f"the node has {own}, and netloop supports {UNSUPPORTED}")
    require(kind in ("none", "silu", "swish"), f"activation is {kind!r}, but must be 'none', 'silu' or 'swish'")
    require(kernel.type.rank == 3, f"the weight is {kernel.type}, but must have 3 axes")
    reach = (window_of(call, kernel)[0] - 1) * dilation
    if past is None:
        past = make.full([make.length(x, 0), make.length(x, 1), reach], 0, x.type.dtype)
    whole = make.concat([past, x], 2)
    tensor = convolved(make, whole, kernel, kernel.type.shape[0], Sliding([1], [dilation], [0], [0]), bias)
    if kind != "none":
        tensor = make.mul(tensor, make.activation(ActivationType.SIGMOID, tensor))
    return [tensor, make.slice(whole, make.list_tensor([make.length(x, 2)]), [reach], axes=[2])]


@microsoft("ConvTransposeWithDynamicPads")
def conv_transpose_with_pads(
    call: NodeCall, x: ITensor, kernel: ITensor, pads: Maybe = None, bias: Maybe = None
) -> ITensor:
    """Transposed convolution; an input has the numbers of elements to trim off."""
    make, axes = call.make, len(window_of(call, kernel))
    padding = [0] * 2 * axes if pads is None else make.ints(pads)
    require(padding is not None, "the pads are not known when the model is loaded", fix="make them an initializer")
    assert padding is not None
    require(len(padding) == 2 * axes, f"there are {len(padding)} pads, and the window has {axes} axes")
    more = call.attribute("output_padding", [0] * axes)
    slides = replace(sliding(call, axes), before=padding[:axes], after=padding[axes:])
    output = deconvolved(make, x, kernel, call.attribute("group"), slides, more, None)
    return output if bias is None else make.add(output, make.along(bias, output.type.rank, 1))
