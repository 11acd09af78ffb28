"""Detection of onnxruntime (com.microsoft)."""

from netloop.formats.onnx.importer.operators.microsoft import NodeCall, microsoft
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import DataType


@microsoft("Unique")
def unique(call: NodeCall, x: ITensor) -> list[ITensor]:
    """The distinct elements in the order in which they appear, the inverse indices, and the counts."""
    layer = call.make.network.add_unique(x, None, False, DataType.INT64)
    return [layer.outputs[number] for number in (0, 2, 3)]
