"""Matrices."""

from netloop.formats.openvino.importer.operators import LayerCall, operator
from netloop.model.graph.tensor import ITensor


@operator("MatMul", "opset1")
def matmul(call: LayerCall, a: ITensor, b: ITensor) -> ITensor:
    """Product of matrices, vectors, or batches of them, with each matrix optionally transposed."""
    sides = (a, call.flag("transpose_a", False)), (b, call.flag("transpose_b", False))
    return call.make.matmul(*(transposed(call, x) if transpose else x for x, transpose in sides))


def transposed(call: LayerCall, x: ITensor) -> ITensor:
    """Matrices with their last two axes exchanged; scalars and vectors as they are."""
    rank = x.type.rank
    return x if rank < 2 else call.make.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


@operator("Einsum", "opset7")
def einsum(call: LayerCall, *operands: ITensor) -> ITensor:
    """Einstein summation."""
    return call.make.einsum(call.text("equation"), operands)
