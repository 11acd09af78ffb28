"""Split matrix products of few rows into parts that CPU cores share."""

import os

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.passes.weight_prepacking import depend_on_iteration, multiplies_weights
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.nest import LayerStep, LoopStep
from netloop.values.enums import MatrixOperation, TripLimit

NONE, TRANSPOSE = MatrixOperation.NONE, MatrixOperation.TRANSPOSE

MAX_ROWS = 8
PART_ELEMENTS = 64_000
"""The smallest part of a matrix. XLA hands a product of some rows and a few elements more to a library whose threads
cost more than they gain; for one row, only parts of this size are worth computing side by side."""
MAX_ELEMENTS, MAX_ELEMENTS_ONE_ROW = 1 << 18, 1_000_000
"""The largest matrix, for several rows and for one. XLA shares out larger products itself."""
CACHED_ELEMENTS = 1 << 19
"""The float32 elements that stay in the cache of a core, where this core multiplies one row faster by itself."""


class MatmulPartitioning(Pass):
    """Compute x [A B ..] as the products x A, x B, ..

    XLA multiplies one row by one core only, and several rows by a large matrix through a slower library.
    """

    name = "matmul_partitioning"
    level = 2
    platforms = frozenset({"cpu"})
    # the sizes that count are those of fused products, and a product that is folded away or has a kernel needs no parts
    after = ("horizontal_fusion", "embedding_folding", "product_kernels")
    rule = (
        f"On CPUs with several cores, a product in a loop of at most {MAX_ROWS} rows, which depend on a state, with a "
        f"matrix of weights of {2 * PART_ELEMENTS:,} elements or more is computed in parts. One row: in as many parts "
        f"as there are cores, for matrices of up to {MAX_ELEMENTS_ONE_ROW:,} elements, if the matrices of the loop "
        f"have more than {4 * CACHED_ELEMENTS >> 20} MiB. Several rows: in parts of {PART_ELEMENTS:,} elements, for "
        f"matrices of up to {MAX_ELEMENTS:,}."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        if cores() == 1:
            return False
        varying, is_changed = depend_on_iteration(rewriter), False
        for step in rewriter.loops():
            products = [product for product in _products(rewriter, step) if operand(product, 0) in varying]
            # all matrices of an iteration count, as the next iteration reads them again
            spills = sum(operand(product, 1).type.volume for product in products) > CACHED_ELEMENTS
            for layer in products:
                parts = _number_of_parts(layer, spills)
                if parts > 1:
                    _split(rewriter, layer, parts)
                    is_changed = True
        return is_changed


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _number_of_parts(layer: IMatrixMultiplyLayer, spills: bool) -> int:
    """Return the number of parts of a product. ``spills`` says that the loop's matrices do not fit a core's cache."""
    (rows, width), elements = layer.outputs[0].type.shape, operand(layer, 1).type.volume
    most = MAX_ELEMENTS if rows > 1 else MAX_ELEMENTS_ONE_ROW
    if rows > MAX_ROWS or elements > most or not (rows > 1 or spills):
        return 1
    fitting = elements // PART_ELEMENTS
    wanted = fitting if rows > 1 else min(fitting, cores())
    # the parts are a batch, whose matrices have one shape
    return wanted if wanted and width % wanted == 0 else 1


def _products(rewriter: Rewriter, step: LoopStep) -> list[IMatrixMultiplyLayer]:
    """Return the products with weights that the next iteration needs; fission batches the others over iterations."""
    condition = step.loop.limit(TripLimit.WHILE)
    following = step.next_states + ([] if condition is None else [condition.tensor(0)])
    layers = [inner.layer for inner in step.body.needed(following) if isinstance(inner, LayerStep)]
    return [
        layer
        for layer in layers
        if isinstance(layer, IMatrixMultiplyLayer)
        and multiplies_weights(rewriter, layer)
        and operand(layer, 0).type.rank == 2
        and rewriter.may_replace(layer.outputs[0])
    ]


def _split(rewriter: Rewriter, layer: IMatrixMultiplyLayer, parts: int) -> None:
    product = _batched if layer.outputs[0].type.shape[0] == 1 else _joined
    rewriter.replace(layer.outputs[0], product(rewriter, layer, parts))
    rewriter.note(f"{layer.name!r} is computed in {parts} parts")


def _batched(rewriter: Rewriter, layer: IMatrixMultiplyLayer, parts: int) -> ITensor:
    """The product of one row as a batch, which cores share. It is fastest along the rows of a part."""
    make, row, matrix = rewriter.make, operand(layer, 0), operand(layer, 1)
    length, width = row.type.shape[1], layer.outputs[0].type.shape[1]
    if layer.op1 is NONE:
        matrix = make.transpose(matrix, [1, 0])
    copies = make.concat([make.reshape(row, [1, 1, length])] * parts, 0)
    matrices = make.reshape(matrix, [parts, width // parts, length])
    product = rewriter.network.add_matrix_multiply(copies, layer.op0, matrices, TRANSPOSE).outputs[0]
    return make.reshape(product, [1, width])


def _joined(rewriter: Rewriter, layer: IMatrixMultiplyLayer, parts: int) -> ITensor:
    """The products of several rows side by side.

    The parts of a batch would be one behind the other, and XLA would read its elements in the order of the rows one by
    one wherever they are read: a softmax of 4 x 1,000 took 8.5 us instead of 2.8 on an Intel Xeon.
    """
    make, rows, matrix = rewriter.make, operand(layer, 0), operand(layer, 1)
    if layer.op1 is TRANSPOSE:
        matrix = make.transpose(matrix, [1, 0])
    widths = make.constant([matrix.type.shape[1] // parts] * parts)
    return make.concat([make.matmul(rows, part) for part in make.split(matrix, 1, widths)], 1)
