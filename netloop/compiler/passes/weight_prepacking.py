"""Lay weight matrices out in memory as products of few rows read them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph.layer import Operation, layer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.matrix import PRECISION, IMatrixMultiplyLayer, reference_type
from netloop.model.nest import LayerStep, Step, walk
from netloop.values.enums import LayerType, MatrixOperation
from netloop.values.types import Array, TensorType

MIN_ELEMENTS = 1 << 12
"""A smaller matrix is as fast either way."""
MIN_ELEMENTS_ONE_ROW = 1 << 18
"""A smaller matrix stays in a cache, and multiplies one row as fast either way."""
MIN_ELEMENTS_LEFT = 1 << 19
"""A smaller matrix is packed in the cache, which costs little."""
LEFT_ROWS = range(8, 65)
"""With fewer rows XLA packs nothing, and with more their own work outweighs the packing."""

RIGHT = "right_operands"
"""The form in which weights stay the right operand."""


@layer(LayerType.INTERNAL, "Weights On The Left")
class WeightsOnLeftLayer(Operation):
    """The product of rows [m, k] and weights [n, k], computed as the product of the weights and the columns.

    XLA's CPU product packs its right operand anew each time: here that is the rows, and not the weights.
    """

    HAS_PRODUCTS = True

    def infer(self, rows: TensorType, weights: TensorType) -> TensorType:
        return rows.with_shape((rows.shape[0], weights.shape[0]))

    def evaluate(self, rows: Array, weights: Array) -> Array:
        wide = reference_type(rows.dtype)
        return (rows.astype(wide) @ weights.astype(wide).T).astype(rows.dtype)

    def lower(self, rows: Any, weights: Any) -> Any:
        columns = jax.lax.dot_general(jnp.asarray(weights), jnp.asarray(rows), (((1,), (1,)), ((), ())), PRECISION)
        # without the barrier XLA swaps the operands back
        return jax.lax.optimization_barrier(columns).T


class WeightPrepacking(Pass):
    """Transpose weight matrices in advance where products then read them faster.

    A product of one row is one pass over the memory of the matrix. Along the rows of W' [n, k] that pass keeps its sums
    in registers. For several rows, a large W' is fastest as the left operand, and otherwise W [k, n] is faster.

    On GPUs XLA sums along the rows of W' in the kernel that computes the row. Along columns it does so only if the row
    is cheap: behind a layer norm or an activation it wrote all k n products to memory, and summed them in another
    kernel. A decoder of two layers has 37 launches in an iteration instead of 41, and reads its weights once.
    """

    name = "weight_prepacking"
    level = 2
    platforms = frozenset({"cpu", "gpu"})
    # partitioning has its own layout for what it splits, and does not know a product with its weights on the left
    after = ("matmul_partitioning",)
    rule = (
        "On CPUs, a matrix of weights is transposed in advance, so that the product sums along its rows if it "
        f"multiplies one row that depends on a state or a call and has {MIN_ELEMENTS_ONE_ROW:,} elements or more, and "
        f"along its columns otherwise. If it multiplies {LEFT_ROWS[0]} to {LEFT_ROWS[-1]} such rows and has "
        f"{MIN_ELEMENTS_LEFT:,} elements of float32 or more, it becomes the left operand. On GPUs, it is transposed if "
        f"it multiplies one such row and has {MIN_ELEMENTS:,} elements or more."
    )
    alternatives = (OFF, RIGHT)

    def rewrite(self, rewriter: Rewriter) -> bool:
        varying, repeated, is_changed = depend_on_iteration(rewriter), _repeated(rewriter), False
        for step in rewriter.steps():
            layer = step.layer if isinstance(step, LayerStep) else None
            if not isinstance(layer, IMatrixMultiplyLayer) or not multiplies_weights(rewriter, layer):
                continue
            rows, size = operand(layer, 0), operand(layer, 1).type.volume
            # rows that fission batches over iterations are many, whatever their number in one
            count = rows.type.volume // rows.type.shape[-1] if rows in varying else 0
            may_swap = rewriter.form != RIGHT and _may_swap(rewriter, layer)
            if rewriter.platform == "gpu":
                is_changed |= count == 1 and _transpose(rewriter, layer, MatrixOperation.TRANSPOSE)
            elif may_swap and count in LEFT_ROWS and size >= MIN_ELEMENTS_LEFT and step in repeated:
                _swap(rewriter, layer)
                is_changed = True
            elif size >= (MIN_ELEMENTS_ONE_ROW if count == 1 else MIN_ELEMENTS):
                op = MatrixOperation.TRANSPOSE if count == 1 else MatrixOperation.NONE
                is_changed |= _transpose(rewriter, layer, op)
        return is_changed


def multiplies_weights(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> bool:
    """Whether a product is one of rows and a matrix of weights that is not small."""
    rows, matrix = operand(layer, 0), operand(layer, 1)
    is_plain = layer.op0 is not MatrixOperation.TRANSPOSE and layer.op1 is not MatrixOperation.VECTOR
    if not is_plain or matrix not in rewriter.weights or rows in rewriter.weights or not rows.type.is_float:
        return False
    return matrix.type.rank == 2 and matrix.type.volume >= MIN_ELEMENTS


def _may_swap(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> bool:
    rows = operand(layer, 0)
    return rows.type.rank == 2 and rows.type.dtype == np.float32 and rewriter.may_replace(layer.outputs[0])


def depend_on_iteration(rewriter: Rewriter) -> set[ITensor]:
    """Return the tensors that fission cannot compute for many iterations at once.

    They depend on a state, or are outside of loops.
    """
    by_state = {state for loop in rewriter.loops() for state in loop.states}
    outside = set(rewriter.network.inputs)
    iterators = {iterator for loop in rewriter.loops() for iterator in loop.iterators}
    for step in walk(rewriter.block):
        # fission is for loops: every other layer runs once in a call as it is
        if not any(map(rewriter.scopes.depth, step.writes)):
            outside.update(step.writes)
        elif not (isinstance(step, LayerStep) and (step.layer in iterators or by_state.isdisjoint(step.reads))):
            by_state.update(step.writes)
    return by_state | outside


def _repeated(rewriter: Rewriter) -> set[Step]:
    """Return the steps that fission does not put after the iterations: a state needs them, or they are outside."""
    steps = set(rewriter.block.steps)
    for loop in rewriter.loops():
        # fission computes what only outputs need after the loop, for all iterations at once
        steps.update(loop.body.needed(loop.next_states))
    return steps


def _transpose(rewriter: Rewriter, layer: IMatrixMultiplyLayer, op: MatrixOperation) -> bool:
    """Transpose the matrix of a product unless it is read by ``op`` already."""
    if layer.op1 is op:
        return False
    layer.set_input(1, rewriter.make.transpose(operand(layer, 1), [1, 0]))
    layer.op1 = op
    rewriter.note(f"the matrix of {layer.name!r} is transposed in advance")
    return True


def _swap(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> None:
    """Make the weights of a product its left operand."""
    weights = operand(layer, 1)
    if layer.op1 is MatrixOperation.NONE:
        weights = rewriter.make.transpose(weights, [1, 0])
    tensor = rewriter.network.add(WeightsOnLeftLayer(), [operand(layer, 0), weights]).outputs[0]
    rewriter.replace(layer.outputs[0], tensor)
    rewriter.note(f"{layer.name!r} has its weights on the left")
