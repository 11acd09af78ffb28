"""Convolution of onnxruntime (com.microsoft)."""

from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import microsoft
from netloop.onnx.importer.operators.convolution import convolution
from netloop.onnx.importer.operators.microsoft.pointwise import activated


@microsoft("FusedConv")
def fused_convolution(
    call: Call, x: ITensor, kernel: ITensor, bias: ITensor | None = None, other: ITensor | None = None
) -> ITensor:
    """An activation of a convolution plus another tensor."""
    made = convolution(call, x, kernel, bias)
    made = made if other is None else call.make.add(made, other)
    return activated(call, made, call.attribute("activation_params", []))
