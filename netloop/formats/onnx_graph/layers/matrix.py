"""Matrix products, einsum and determinant."""

from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
from netloop.model.layers.matrix import IDeterminantLayer, IEinsumLayer, IMatrixMultiplyLayer
from netloop.values.enums import MatrixOperation

VECTOR, TRANSPOSE = MatrixOperation.VECTOR, MatrixOperation.TRANSPOSE


@exports(IMatrixMultiplyLayer)
def matrix_multiply(layer: IMatrixMultiplyLayer, make: NodeBuilder, a: Value, b: Value) -> Value:
    left = _operand(make, make.wide(a), layer.op0, make.type(0).rank, -2)
    right = _operand(make, make.wide(b), layer.op1, make.type(1).rank, -1)
    value = make.op("MatMul", left, right)
    vectors = [axis for axis, op in ((-2, layer.op0), (-1, layer.op1)) if op is VECTOR]
    return make.cast(make.squeeze(value, vectors), a.dtype)


def _operand(make: NodeBuilder, x: Value, op: MatrixOperation, rank: int, vector_axis: int) -> Value:
    if op is VECTOR:
        return make.expand_dims(x, [vector_axis])
    return make.transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if op is TRANSPOSE else x


@exports(IEinsumLayer)
def einsum(layer: IEinsumLayer, make: NodeBuilder, *operands: Value) -> Value:
    equation = layer.equation.replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    ranks = [make.type(position).rank for position in range(len(operands))]
    dots = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    aligned = [
        make.expand_dims(x, range(term.index("..."), term.index("...") + max(dots) - own)) if "..." in term else x
        for x, term, own in zip(operands, terms, dots, strict=True)
    ]
    return make.op("Einsum", *aligned, equation=equation)


@exports(IDeterminantLayer)
def determinant(layer: IDeterminantLayer, make: NodeBuilder, x: Value) -> Value:
    return make.op("Det", x)
