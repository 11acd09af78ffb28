"""Matrices of weights lie in memory as a product of few rows reads them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.enums import LayerType, MatrixOperation
from netloop.graph.layer import Operation, layer
from netloop.graph.tensor import ITensor
from netloop.layers.matrix import PRECISION, IMatrixMultiplyLayer, reference_type
from netloop.nest import LayerStep, Step, walk
from netloop.passes.rewriter import Rewriter, operand
from netloop.types import Array, TensorType

SMALLEST = 1 << 12
"""A matrix with fewer elements is as fast either way."""
SMALLEST_OF_ONE = 1 << 18
"""A matrix with fewer elements stays in a cache, and multiplies one row as fast either way."""
SMALLEST_LEFT = 1 << 19
"""A matrix with fewer elements is packed in the cache, which costs little."""
LEFT_ROWS = range(8, 65)
"""With fewer rows nothing is packed, and with more their own work counts."""


@layer(LayerType.MATRIX_MULTIPLY, "Product From The Left")
class FromLeftLayer(Operation):
    """The product of rows [m, k] and weights that lie as [n, k], formed as that of the weights and the columns.

    XLA's product on a CPU packs its right operand anew each time: here the rows, and not the weights.
    """

    def infer(self, rows: TensorType, weights: TensorType) -> TensorType:
        return rows.with_shape((rows.shape[0], weights.shape[0]))

    def evaluate(self, rows: Array, weights: Array) -> Array:
        wide = reference_type(rows.dtype)
        with np.errstate(all="ignore"):
            return (rows.astype(wide) @ weights.astype(wide).T).astype(rows.dtype)

    def lower(self, rows: Any, weights: Any) -> Any:
        columns = jax.lax.dot_general(jnp.asarray(weights), jnp.asarray(rows), (((1,), (1,)), ((), ())), PRECISION)
        # else XLA turns the operands round
        return jax.lax.optimization_barrier(columns).T


def lay_out_weights(rewriter: Rewriter) -> None:
    """Transpose a matrix of weights beforehand where the product then reads it faster.

    With one row the product is one pass over the memory of the matrix; summed along its rows, W' [n, k], that pass
    keeps its sums in registers. With some rows a large W' is best the left operand, and else W [k, n] is faster.
    """
    by_trip, repeated = made_by_trip(rewriter), _repeated(rewriter)
    for step in list(walk(rewriter.block)):
        layer = step.layer if isinstance(step, LayerStep) else None
        if not isinstance(layer, IMatrixMultiplyLayer) or not is_of_weights(rewriter, layer):
            continue
        rows, size = operand(layer, 0), operand(layer, 1).type.volume
        count = rows.type.volume // rows.type.shape[-1] if rows in by_trip else 0
        if count in LEFT_ROWS and size >= SMALLEST_LEFT and step in repeated and _may_swap(rewriter, layer):
            _swap(rewriter, layer)
        elif count == 1:
            _transpose(rewriter, layer, MatrixOperation.TRANSPOSE, SMALLEST_OF_ONE)
        else:
            _transpose(rewriter, layer, MatrixOperation.NONE, SMALLEST)


def is_of_weights(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> bool:
    """Whether rows are multiplied by a matrix of weights."""
    rows, matrix = operand(layer, 0), operand(layer, 1)
    is_plain = layer.op0 is not MatrixOperation.TRANSPOSE and layer.op1 is not MatrixOperation.VECTOR
    if not is_plain or matrix not in rewriter.weights or rows in rewriter.weights or not rows.type.is_float:
        return False
    return matrix.type.rank == 2 and matrix.type.volume >= SMALLEST


def _may_swap(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> bool:
    rows = operand(layer, 0)
    return rows.type.rank == 2 and rows.type.dtype == np.float32 and rewriter.may_replace(layer.outputs[0])


def made_by_trip(rewriter: Rewriter) -> set[ITensor]:
    """The tensors that cannot be made for many trips at once: they depend on a state, or are outside of loops."""
    by_state = {each.outputs[0] for loop in rewriter.loops() for each in loop.recurrences}
    outside = set(rewriter.network.inputs)
    iterators = {each for loop in rewriter.loops() for each in loop.iterators}
    for step in walk(rewriter.block):
        if not any(map(rewriter.scopes.of, step.writes)):
            outside.update(step.writes)
        elif not (isinstance(step, LayerStep) and (step.layer in iterators or by_state.isdisjoint(step.reads))):
            by_state.update(step.writes)
    return by_state | outside


def _repeated(rewriter: Rewriter) -> set[Step]:
    """The steps that are not put off until after the trips: a state needs them, or they are outside of loops."""
    found = set(rewriter.block.steps)
    for loop in rewriter.loops():
        found.update(loop.body.needed([each.tensor(1) for each in loop.recurrences]))
    return found


def _transpose(rewriter: Rewriter, layer: IMatrixMultiplyLayer, op: MatrixOperation, smallest: int) -> None:
    """Transpose the matrix of a product if it is not read so, and not too small."""
    if layer.op1 is not op and operand(layer, 1).type.volume >= smallest:
        layer.set_input(1, rewriter.make.transpose(operand(layer, 1), [1, 0]))
        layer.op1 = op
        rewriter.note(f"the matrix of {layer.name!r} is transposed beforehand")


def _swap(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> None:
    """Form a product from the left."""
    weights = operand(layer, 1)
    if layer.op1 is MatrixOperation.NONE:
        weights = rewriter.make.transpose(weights, [1, 0])
    made = rewriter.network.add(FromLeftLayer(), [operand(layer, 0), weights]).outputs[0]
    rewriter.replace(layer.outputs[0], made)
    rewriter.note(f"{layer.name!r} has its weights on the left")
