"""Products of few rows are formed in parts."""

from __future__ import annotations

import os

from netloop.enums import MatrixOperation, TripLimit
from netloop.layers.matrix import IMatrixMultiplyLayer
from netloop.nest import LayerStep, LoopStep
from netloop.passes.rewriter import Rewriter, operand
from netloop.passes.weight_prepacking import is_of_weights, made_by_trip

NONE, TRANSPOSE = MatrixOperation.NONE, MatrixOperation.TRANSPOSE

MOST_ROWS = 8
PART = 64_000
"""The elements of a matrix in a part, at least. A product of some rows and of a few elements more goes to a library of
XLA whose threads cost more than they gain; of one row only so large a part is formed beside another one."""
LARGEST, LARGEST_FOR_ONE = 1 << 18, 1_000_000
"""The elements of the largest matrix, for several rows and for one; XLA shares out larger products itself."""
CACHED = 1 << 19
"""The elements of matrices that stay in the cache of a core, where one row is multiplied faster by this core alone."""


def multiply_in_parts(rewriter: Rewriter) -> None:
    """Form x [A B ..] as a batch of products x A, x B, .. where several cores then share them better."""
    if cores() == 1:
        return
    by_trip = made_by_trip(rewriter)
    for step in rewriter.loops():
        products = [each for each in _products(rewriter, step) if operand(each, 0) in by_trip]
        spills = sum(operand(each, 1).type.volume for each in products) > CACHED
        for layer in products:
            parts = _parts(layer, spills)
            if parts > 1:
                _split(rewriter, layer, parts)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parts(layer: IMatrixMultiplyLayer, spills: bool) -> int:
    """In how many parts to form a product; ``spills`` tells that the matrices around it fill more than a cache."""
    (rows, width), elements = layer.outputs[0].type.shape, operand(layer, 1).type.volume
    if rows > MOST_ROWS or elements > (LARGEST if rows > 1 else LARGEST_FOR_ONE) or not (rows > 1 or spills):
        return 1
    most = elements // PART
    wanted = most if rows > 1 else min(most, cores())
    return wanted if wanted and width % wanted == 0 else 1


def _products(rewriter: Rewriter, step: LoopStep) -> list[IMatrixMultiplyLayer]:
    """The products with matrices of weights that the next trip needs; others can be formed for all trips at once."""
    goes_on = step.loop.limit(TripLimit.WHILE)
    following = [each.tensor(1) for each in step.recurrences] + ([] if goes_on is None else [goes_on.tensor(0)])
    layers = [each.layer for each in step.body.needed(following) if isinstance(each, LayerStep)]
    return [
        each
        for each in layers
        if isinstance(each, IMatrixMultiplyLayer)
        and is_of_weights(rewriter, each)
        and operand(each, 0).type.rank == 2
        and rewriter.may_replace(each.outputs[0])
    ]


def _split(rewriter: Rewriter, layer: IMatrixMultiplyLayer, parts: int) -> None:
    """Along its rows each part of a matrix is read for one row, and along its columns for more."""
    make, rows, matrix = rewriter.make, operand(layer, 0), operand(layer, 1)
    (count, length), width = rows.type.shape, layer.outputs[0].type.shape[1]
    if layer.op1 is NONE:
        matrix = make.transpose(matrix, [1, 0])
    op = TRANSPOSE if count == 1 else NONE
    matrices = make.reshape(matrix, [parts, width // parts, length])
    matrices = matrices if op is TRANSPOSE else make.transpose(matrices, [0, 2, 1])
    copies = make.concat([make.reshape(rows, [1, count, length])] * parts, 0)
    product = rewriter.network.add_matrix_multiply(copies, layer.op0, matrices, op).outputs[0]
    made = make.reshape(make.transpose(product, [1, 0, 2]), [count, width])
    rewriter.replace(layer.outputs[0], made)
    rewriter.note(f"{layer.name!r} is formed in {parts} parts")
