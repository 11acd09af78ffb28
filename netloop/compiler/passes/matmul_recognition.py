"""Recognize sums of element-wise products as matrix products, and einsums without a sum as element-wise products."""

import numpy as np

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.matrix import IEinsumLayer
from netloop.model.layers.pointwise import IElementWiseLayer
from netloop.model.layers.reduce import IReduceLayer
from netloop.values.enums import ElementWiseOperation, MatrixOperation, ReduceOperation

NONE, TRANSPOSE = MatrixOperation.NONE, MatrixOperation.TRANSPOSE


class MatmulRecognition(Pass):
    """Compute the sum over k of a[.., i, k] b[.., 0, k] as a matrix-vector product.

    XLA would fuse what computes ``a`` into the loop that sums, where it is computed again and without vectors. Other
    devices than CPUs may round the operands of products, and those of sums never.
    """

    name = "matmul_recognition"
    level = 2
    platforms = frozenset({"cpu"})
    # first the boundary of loops, then their bodies: those see iterators and stacked outputs; a loop that becomes a
    # kernel is taken as it is
    after = ("induction_variables", "recurrent_kernels")
    rule = (
        "In loops on CPUs, a float32 sum along the last axis of the products of rows with one vector becomes a product "
        "of a matrix and this vector, and an einsum of two operands that sums over nothing becomes an element-wise one."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        # lists, as any() of a generator would stop at the first change
        flags = [_multiply(rewriter, layer) for layer in rewriter.layers(IEinsumLayer)]
        flags += [_sum_as_product(rewriter, layer) for layer in rewriter.layers(IReduceLayer)]
        return any(flags)


def terms(einsum: IEinsumLayer) -> list[str]:
    """Return the labels of each operand of an einsum, and of the result; nothing if they are not all written out."""
    # without an arrow the order of the result follows from the alphabet, and dots stand for axes without labels
    if "->" not in einsum.equation or "." in einsum.equation:
        return []
    return einsum.equation.replace(" ", "").replace("->", ",").split(",")


def _multiply(rewriter: Rewriter, einsum: IEinsumLayer) -> bool:
    """Multiply the two operands of an einsum in a loop element by element, if it sums over nothing."""
    (output,) = einsum.outputs
    *operands, result = terms(einsum) or [""]
    is_plain = len(operands) == 2 and set().union(*operands) == set(result) and rewriter.scopes.depth(output) > 0
    # a label that an operand has twice means its diagonal
    if not is_plain or any(len(set(own)) < len(own) for own in operands):
        return False
    a, b = (_along(rewriter, operand(einsum, position), own, result) for position, own in enumerate(operands))
    rewriter.replace(output, rewriter.network.add_elementwise(a, b, ElementWiseOperation.PROD).outputs[0])
    rewriter.note(f"{einsum.name!r} multiplies element by element")
    return True


def _along(rewriter: Rewriter, x: ITensor, own: str, result: str) -> ITensor:
    """Return a tensor with an axis for each label of the result, in their order."""
    ordered = rewriter.make.transpose(x, [own.index(label) for label in result if label in own])
    lengths = dict(zip(own, x.type.shape, strict=True))
    return rewriter.make.reshape(ordered, [lengths.get(label, 1) for label in result])


def _sum_as_product(rewriter: Rewriter, layer: IReduceLayer) -> bool:
    factors = _factors(rewriter, layer)
    if factors is None:
        return False
    output, (matrix, vector) = layer.outputs[0], factors
    product = rewriter.network.add_matrix_multiply(matrix, NONE, vector, TRANSPOSE).outputs[0]
    rewriter.replace(output, rewriter.make.reshape(product, output.type.shape))
    rewriter.note(f"{layer.name!r} is a product of a matrix and a vector")
    return True


def _factors(rewriter: Rewriter, layer: IReduceLayer) -> tuple[ITensor, ITensor] | None:
    """Return the matrices and vectors whose products a layer in a loop sums along the last axis; None for others."""
    x, output = operand(layer, 0), layer.outputs[0]
    product = x.producer
    sums = layer.op is ReduceOperation.SUM and layer.axes == 1 << (x.type.rank - 1) and len(layer.inputs) == 1
    multiplies = isinstance(product, IElementWiseLayer) and product.op is ElementWiseOperation.PROD
    fits = rewriter.may_replace(output) and rewriter.scopes.depth(output) > 0 and x.type.dtype == np.float32
    if product is None or not (sums and multiplies and fits) or x.type.rank < 2:
        return None
    a, b = operand(product, 0), operand(product, 1)
    return (a, b) if _is_vector(b, a) else (b, a) if _is_vector(a, b) else None


def _is_vector(vector: ITensor, matrix: ITensor) -> bool:
    """Whether a tensor has one row for each matrix, which multiplies all rows of that matrix."""
    *batch, rows, length = matrix.type.shape
    return rows > 1 and length > 1 and vector.type.shape == (*batch, 1, length)
