"""Sums of products are products of matrices, and products without a sum are element-wise."""

from __future__ import annotations

import numpy as np

from netloop.enums import ElementWiseOperation, MatrixOperation, ReduceOperation
from netloop.graph.tensor import ITensor
from netloop.layers.matrix import IEinsumLayer
from netloop.layers.pointwise import IElementWiseLayer
from netloop.layers.reduce import IReduceLayer
from netloop.nest import LayerStep, walk
from netloop.passes.rewriter import Rewriter, operand

NONE, TRANSPOSE = MatrixOperation.NONE, MatrixOperation.TRANSPOSE


def contract(rewriter: Rewriter) -> None:
    """Form sum over k of a[.., i, k] b[.., 0, k] as a product of a matrix and a vector.

    Else what a was computed from would be computed again in the loop that sums, and not by vectors.
    """
    for step in list(walk(rewriter.block)):
        layer = step.layer if isinstance(step, LayerStep) else None
        if isinstance(layer, IEinsumLayer) and rewriter.scopes.of(layer.outputs[0]):
            _multiply(rewriter, layer)
        factors = _factors(rewriter, layer) if isinstance(layer, IReduceLayer) else None
        if isinstance(layer, IReduceLayer) and factors is not None:
            output, (matrix, vector) = layer.outputs[0], factors
            product = rewriter.network.add_matrix_multiply(matrix, NONE, vector, TRANSPOSE).outputs[0]
            rewriter.replace(output, rewriter.make.reshape(product, output.type.shape))
            rewriter.note(f"{layer.name!r} is a product of a matrix and a vector")


def terms(einsum: IEinsumLayer) -> list[str]:
    """The labels of each operand of an einsum, and of the result; none if they are not all written out."""
    if "->" not in einsum.equation or "." in einsum.equation:
        return []
    return einsum.equation.replace(" ", "").replace("->", ",").split(",")


def _multiply(rewriter: Rewriter, einsum: IEinsumLayer) -> None:
    """Multiply the two operands of an einsum element by element, if it sums over nothing."""
    *operands, result = terms(einsum) or [""]
    is_plain = len(operands) == 2 and set().union(*operands) == set(result)
    if is_plain and all(len(set(own)) == len(own) for own in operands):
        a, b = (_along(rewriter, operand(einsum, position), own, result) for position, own in enumerate(operands))
        rewriter.replace(
            einsum.outputs[0], rewriter.network.add_elementwise(a, b, ElementWiseOperation.PROD).outputs[0]
        )
        rewriter.note(f"{einsum.name!r} multiplies element by element")


def _along(rewriter: Rewriter, x: ITensor, own: str, result: str) -> ITensor:
    """A tensor with an axis for each label of the result, in their order."""
    ordered = rewriter.make.transpose(x, [own.index(label) for label in result if label in own])
    lengths = dict(zip(own, x.type.shape, strict=True))
    return rewriter.make.reshape(ordered, [lengths.get(label, 1) for label in result])


def _factors(rewriter: Rewriter, layer: IReduceLayer) -> tuple[ITensor, ITensor] | None:
    """The matrices and the vectors whose products are summed along the last axis, in a loop; None for anything else."""
    x, output = operand(layer, 0), layer.outputs[0]
    product = x.producer
    sums = layer.op is ReduceOperation.SUM and layer.axes == 1 << (x.type.rank - 1) and len(layer.inputs) == 1
    multiplies = isinstance(product, IElementWiseLayer) and product.op is ElementWiseOperation.PROD
    fits = rewriter.may_replace(output) and bool(rewriter.scopes.of(output)) and x.type.dtype == np.float32
    if product is None or not (sums and multiplies and fits) or x.type.rank < 2:
        return None
    a, b = operand(product, 0), operand(product, 1)
    return (a, b) if _is_vector(b, a) else (b, a) if _is_vector(a, b) else None


def _is_vector(vector: ITensor, matrix: ITensor) -> bool:
    """Whether each of some rows multiplies all rows of the matrix at the same place."""
    *batch, rows, length = matrix.type.shape
    return rows > 1 and length > 1 and vector.type.shape == (*batch, 1, length)
