"""Matrices."""

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.onnx.importer.operators.convolution import centred
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import MatrixOperation


@operator("MatMul")
def matmul(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """Product of matrices, vectors, or batches of them."""
    return call.make.matmul(a, b)


@operator("MatMulInteger", since=10)
def matmul_integer(call: NodeCall, a: ITensor, b: ITensor, a_zero: Maybe = None, b_zero: Maybe = None) -> ITensor:
    """Product of integer matrices less their zero points, in int32."""
    make, rows = call.make, -2 if a.type.rank > 1 else -1
    return make.matmul(centred(make, a, a_zero, rows), centred(make, b, b_zero, -1))


@operator("Gemm", since=(1, 7, 11))
def gemm(call: NodeCall, a: ITensor, b: ITensor, c: Maybe = None) -> ITensor:
    """``alpha * A @ B + beta * C``, with A and B optionally transposed."""
    make = call.make
    ops = [MatrixOperation.TRANSPOSE if call.attribute(name) else MatrixOperation.NONE for name in ("transA", "transB")]
    product = make.output(make.network.add_matrix_multiply(a, ops[0], b, ops[1]))
    product = scaled(call, product, "alpha")
    return product if c is None else make.add(product, scaled(call, c, "beta"))


def scaled(call: NodeCall, x: ITensor, name: str) -> ITensor:
    """``x`` times an attribute."""
    factor = float(call.attribute(name))
    require(x.type.is_float or factor.is_integer(), f"{name} is {factor}, and the matrices are {x.type}")
    return x if factor == 1 else call.make.mul(x, factor)


@operator("Einsum", since=12)
def einsum(call: NodeCall, *operands: ITensor) -> ITensor:
    """Einstein summation."""
    return call.make.einsum(call.attribute("equation"), operands)


@operator("Det", since=11)
def determinant(call: NodeCall, x: ITensor) -> ITensor:
    """Determinant of each square matrix."""
    return call.make.output(call.make.network.add_determinant(x))


@operator("Trilu", since=14)
def triangle(call: NodeCall, x: ITensor, k: Maybe = None) -> ITensor:
    """Upper or lower triangle of each matrix, 0 elsewhere."""
    make = call.make
    rows, columns = (make.arange(make.length(x, axis)) for axis in (-2, -1))
    diagonal = make.expand_dims(rows, [1])
    if k is not None:
        diagonal = make.add(diagonal, make.scalar(k))
    kept = make.greater_equal(columns, diagonal) if call.attribute("upper") else make.less_equal(columns, diagonal)
    return make.where(kept, x, make.constant(np.zeros((), x.type.dtype)))
