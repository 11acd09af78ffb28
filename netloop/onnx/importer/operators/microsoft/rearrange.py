"""Rearrangements of onnxruntime (com.microsoft)."""

from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import microsoft


@microsoft("ExpandDims")
def expand_dims(call: Call, x: ITensor, axis: ITensor) -> ITensor:
    """An axis of length 1 inserted."""
    return call.make.expand_dims(x, axis)
