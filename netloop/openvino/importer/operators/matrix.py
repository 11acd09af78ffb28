"""Products of matrices, and attention."""

from __future__ import annotations

from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator


@operator("MatMul", "opset1")
def matmul(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """The product of matrices, vectors, or batches of them; the last two axes of each may be exchanged before."""
    sides = (a, call.flag("transpose_a", False)), (b, call.flag("transpose_b", False))
    return call.make.matmul(*(transposed(call, x) if turned else x for x, turned in sides))


def transposed(call: Call, x: ITensor) -> ITensor:
    rank = x.type.rank
    return x if rank < 2 else call.make.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


@operator("Einsum", "opset7")
def einsum(call: Call, *operands: ITensor) -> ITensor:
    """A sum of products over the axes that an equation names."""
    return call.make.einsum(call.text("equation"), operands)
