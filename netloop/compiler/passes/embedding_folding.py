"""Fold ``embedding @ W`` into the embedding table."""

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.values.enums import GatherMode, MatrixOperation

MAX_TABLE_BYTES = 1 << 20
"""The largest folded table, unless the matrix that is no longer read is larger."""

READ_AS = {0: MatrixOperation.VECTOR, 1: MatrixOperation.NONE}
"""How a product reads the rows that indices of a rank give."""


class EmbeddingFolding(Pass):
    """Multiply a whole table by a matrix in advance, instead of each row that is read."""

    name = "embedding_folding"
    level = 2
    # several products of the same rows are one by then, and make one table
    after = ("horizontal_fusion",)
    rule = (
        "A table of weights is multiplied in advance by the matrix of weights that its rows would be, if the result "
        f"has at most {MAX_TABLE_BYTES >> 20} MiB, or at most the size of the matrix."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        folded = [_fold(rewriter, layer) for layer in rewriter.layers(IMatrixMultiplyLayer)]
        return any(folded)


def _fold(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> bool:
    rows = folded_gather(rewriter, layer)
    if rows is None:
        return False
    table, matrix = operand(rows, 0), operand(layer, 1)
    tensor = rewriter.network.add_matrix_multiply(table, MatrixOperation.NONE, matrix, layer.op1).outputs[0]
    rewriter.replace(layer.outputs[0], rewriter.make.gather(tensor, operand(rows, 1)))
    rewriter.note(f"the rows of {table.name!r} are multiplied in advance, for {layer.name!r}")
    return True


def folded_gather(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> IGatherLayer | None:
    """The layer that reads the left operand of a product from a table, if the table is multiplied in advance."""
    gather, matrix = operand(layer, 0).producer, operand(layer, 1)
    if not isinstance(gather, IGatherLayer) or not rewriter.may_replace(layer.outputs[0]):
        return None
    table, indices = operand(gather, 0), operand(gather, 1)
    reads_rows = gather.mode is GatherMode.DEFAULT and gather.num_elementwise_dims == 0 and gather.axis in (0, -2)
    # one index gives a vector, and a list of them the rows of a matrix
    fits = table.type.rank == matrix.type.rank == 2 and layer.op0 is READ_AS.get(indices.type.rank)
    is_fixed = table in rewriter.weights and matrix in rewriter.weights and indices not in rewriter.weights
    if not (reads_rows and fits and is_fixed):
        return None
    depth, width = table.type.shape[1], layer.outputs[0].type.shape[-1]
    return gather if max(MAX_TABLE_BYTES, matrix.type.nbytes) >= table.type.nbytes // depth * width else None
