"""Matrix products and einsum."""

from netloop.formats.onnx_graph.graph import OnnxNode
from netloop.formats.openvino.exporter.ir import IrPort
from netloop.formats.openvino.exporter.layer_builder import LayerBuilder, broadcast_shape
from netloop.formats.openvino.exporter.operator_table import exports


@exports("MatMul")
def matmul(build: LayerBuilder, node: OnnxNode, a: IrPort, b: IrPort) -> IrPort:
    """The product of matrices, or of batches of them."""
    shape = None
    if a.shape is not None and b.shape is not None and min(len(a.shape), len(b.shape)) > 1:
        batch = broadcast_shape((a.shape[:-2], b.shape[:-2])) or ()
        shape = (*batch, a.shape[-2], b.shape[-1])
    return build.op("MatMul", 1, a, b, shape=shape, transpose_a=False, transpose_b=False)


@exports("Einsum")
def einsum(build: LayerBuilder, node: OnnxNode, *operands: IrPort) -> IrPort:
    """Products summed over the axes whose letters the result does not have."""
    return build.op("Einsum", 7, *operands, equation=node.attributes["equation"])
