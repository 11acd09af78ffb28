"""Rearrangements of onnxruntime (com.microsoft)."""

from netloop.formats.onnx.importer.operators.microsoft import NodeCall, microsoft
from netloop.model.graph.tensor import ITensor


@microsoft("ExpandDims")
def expand_dims(call: NodeCall, x: ITensor, axis: ITensor) -> ITensor:
    """An axis of length 1 inserted."""
    return call.make.expand_dims(x, axis)
