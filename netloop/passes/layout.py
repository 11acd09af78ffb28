"""Matrices of weights lie in memory as a product of few rows reads them."""

from __future__ import annotations

from netloop.enums import MatrixOperation
from netloop.graph.tensor import ITensor
from netloop.layers.matrix import IMatrixMultiplyLayer
from netloop.nest import LayerStep, walk
from netloop.passes.draft import Draft, operand

MOST_ROWS = 2
"""A product with more rows is as fast either way."""
SMALLEST = 1 << 14
"""A matrix with fewer elements stays in a cache, and is as fast either way."""


def lay_out_weights(draft: Draft) -> None:
    """Transpose a matrix of weights beforehand where the product then reads it faster.

    With few rows the product is one pass over the memory of the matrix; summed along its rows, W' [n, k], that pass
    keeps its sums in registers. With many rows W [k, n] is faster.
    """
    by_trip = made_by_trip(draft)
    for step in list(walk(draft.block)):
        layer = step.layer if isinstance(step, LayerStep) else None
        if isinstance(layer, IMatrixMultiplyLayer) and _is_of_weights(draft, layer):
            rows = operand(layer, 0)
            few = rows in by_trip and rows.type.volume <= MOST_ROWS * rows.type.shape[-1]
            wanted = MatrixOperation.TRANSPOSE if few else MatrixOperation.NONE
            if layer.op1 is not wanted:
                _transpose(draft, layer, wanted)


def _is_of_weights(draft: Draft, layer: IMatrixMultiplyLayer) -> bool:
    """Whether rows are multiplied by a large matrix of weights."""
    rows, matrix = operand(layer, 0), operand(layer, 1)
    is_plain = layer.op0 is not MatrixOperation.TRANSPOSE and layer.op1 is not MatrixOperation.VECTOR
    if not is_plain or matrix not in draft.weights or rows in draft.weights or not rows.type.is_float:
        return False
    return matrix.type.rank == 2 and matrix.type.volume >= SMALLEST


def made_by_trip(draft: Draft) -> set[ITensor]:
    """The tensors that cannot be made for many trips at once: they depend on a state, or are outside of loops."""
    found = {each.outputs[0] for loop in draft.loops() for each in loop.recurrences} | set(draft.network.inputs)
    for step in walk(draft.block):
        outside = not isinstance(step, LayerStep) or not any(map(draft.scopes.of, step.writes))
        if outside or not found.isdisjoint(step.reads):
            found.update(step.writes)
    for loop in draft.loops():
        found.difference_update(each.outputs[0] for each in loop.iterators)
    return found


def _transpose(draft: Draft, layer: IMatrixMultiplyLayer, op: MatrixOperation) -> None:
    transposed = draft.make.transpose(operand(layer, 1), [1, 0])
    layer.set_input(1, transposed)
    layer.op1 = op
    draft.note(f"the matrix of {layer.name!r} is transposed beforehand")
