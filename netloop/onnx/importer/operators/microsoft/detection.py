"""Detection of onnxruntime (com.microsoft)."""

from netloop.enums import DataType
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import microsoft


@microsoft("Unique")
def unique(call: Call, x: ITensor) -> list[ITensor]:
    """The distinct elements in the order in which they appear, the inverse indices, and the counts."""
    layer = call.make.network.add_unique(x, None, False, DataType.INT64)
    return [layer.outputs[each] for each in (0, 2, 3)]
