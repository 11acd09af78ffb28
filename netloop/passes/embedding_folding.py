"""Rows of a table that are multiplied by weights are rows of another table."""

from __future__ import annotations

from netloop.enums import GatherMode, MatrixOperation
from netloop.graph.tensor import ITensor
from netloop.layers.gather import IGatherLayer
from netloop.layers.matrix import IMatrixMultiplyLayer
from netloop.nest import LayerStep, walk
from netloop.passes.rewriter import Rewriter, operand

LARGEST_TABLE = 1 << 20
"""A table may have so many bytes, or as many as the matrix that is no longer read."""


def multiply_tables(rewriter: Rewriter) -> None:
    """Multiply a whole table by a matrix beforehand, where each row that is read would be: an embedding and the product
    behind it become one table.
    """
    for step in list(walk(rewriter.block)):
        layer = step.layer if isinstance(step, LayerStep) else None
        rows = _rows(rewriter, layer) if isinstance(layer, IMatrixMultiplyLayer) else None
        if isinstance(layer, IMatrixMultiplyLayer) and rows is not None:
            table, matrix = operand(rows, 0), operand(layer, 1)
            made = rewriter.network.add_matrix_multiply(table, MatrixOperation.NONE, matrix, layer.op1).outputs[0]
            if made.type.nbytes <= max(LARGEST_TABLE, matrix.type.nbytes):
                rewriter.replace(layer.outputs[0], rewriter.make.gather(made, operand(rows, 1)))
                rewriter.note(f"the rows of {table.name!r} are multiplied beforehand, for {layer.name!r}")


def _rows(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> IGatherLayer | None:
    """The layer that reads what is multiplied from a table, both of them weights."""
    gather, matrix = operand(layer, 0).producer, operand(layer, 1)
    if not isinstance(gather, IGatherLayer) or not rewriter.may_replace(layer.outputs[0]):
        return None
    table, indices = operand(gather, 0), operand(gather, 1)
    reads_rows = gather.mode is GatherMode.DEFAULT and gather.num_elementwise_dims == 0 and gather.axis in (0, -2)
    fits = table.type.rank == matrix.type.rank == 2 and layer.op0 is _read_as(indices)
    is_fixed = table in rewriter.weights and matrix in rewriter.weights and indices not in rewriter.weights
    return gather if reads_rows and fits and is_fixed else None


def _read_as(indices: ITensor) -> MatrixOperation | None:
    """How a product reads the rows that some indices give."""
    return {0: MatrixOperation.VECTOR, 1: MatrixOperation.NONE}.get(indices.type.rank)
