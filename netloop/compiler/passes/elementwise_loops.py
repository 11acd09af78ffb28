"""Compute loops of element-wise layers by kernels of netloop's own."""

from __future__ import annotations

from dataclasses import replace

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.recurrent_cells import Unfit
from netloop.compiler.passes.recurrent_kernels import replace_loop
from netloop.compiler.passes.recurrent_loops import LoopRecognition
from netloop.compiler.passes.rewriter import Rewriter
from netloop.compiler.recurrent.cell import ROW, WHOLE, RecurrentCell
from netloop.compiler.recurrent.machine_code import Processor, processor
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer, IUnaryLayer
from netloop.model.nest import LayerStep, LoopStep

LEAST_ELEMENTS = 16
"""The least elements of a state, those of a vector."""
LEAST_WORK = 1 << 14
"""The least elements of the states of all iterations. What is less takes XLA microseconds."""
ROUNDED = frozenset({"tanh", "sigmoid", "scaled_tanh"})
"""The functions that kernels compute less exactly than XLA."""


class ElementwiseLoops(Pass):
    """Compute all iterations of a loop of element-wise layers in one call, with its states in registers.

    XLA writes and reads the states in each iteration, and starts anew. A running sum of 4096 rows of 256 takes 0.28 of
    its time on one thread of an AMD EPYC with AVX-512, of 1024 rows of 64 0.14.
    """

    name = "elementwise_loops"
    level = 3
    platforms = frozenset({"cpu"})
    # it takes loops as they are built
    after = ("induction_variables",)
    rule = (
        "On CPUs, where the extra `kernels` is installed: a loop with a known number of iterations, of sums, products "
        "and other exact element-wise float32 layers between states of one shape, is one call of machine code of "
        f"netloop's own, as in `recurrent_kernels`. The states have {LEAST_ELEMENTS} elements or more, and in all "
        f"iterations {LEAST_WORK:,} or more. tanh and sigmoids stay with XLA."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        steps = [] if rewriter.is_pure else [step for step in rewriter.loops() if _may_be_a_kernel(step)]
        # most networks have no such loop, and need no compiler imported
        own = processor() if steps else None
        if own is None:
            return False
        flags = [_replaced(rewriter, step, own) for step in steps]
        return any(flags)


def _may_be_a_kernel(step: LoopStep) -> bool:
    layers = [inner.layer for inner in step.body.steps if isinstance(inner, LayerStep)]
    is_plain = len(layers) == len(step.body.steps) and not step.has_assertions
    computes = any(isinstance(layer, IElementWiseLayer | IActivationLayer | IUnaryLayer) for layer in layers)
    return is_plain and computes and not any(isinstance(layer, IMatrixMultiplyLayer) for layer in layers)


def _replaced(rewriter: Rewriter, step: LoopStep, own: Processor) -> bool:
    """Replace a loop by a kernel if it can be one, and is worth it."""
    try:
        recognition = LoopRecognition(rewriter, step, own, takes_products=False)
        cell = recognition.cell()
    except Unfit:
        return False
    if all(len(parts) == 1 for parts, _ in recognition.stacked):
        cell = _flat(cell)
    elements = cell.rows * cell.units
    if elements < LEAST_ELEMENTS or elements * recognition.count < LEAST_WORK:
        return False
    if any(value.kind in ROUNDED for value in cell.values):
        return False
    replace_loop(rewriter, recognition, cell)
    return True


def _flat(cell: RecurrentCell) -> RecurrentCell:
    """The cell with one row of all elements, if nothing is the same in all rows or has several parts."""
    size = cell.rows * cell.units
    widths = {width for width, _ in cell.iterators} | {width for kind, width in cell.invariants if kind == WHOLE}
    if widths - {cell.units} or any(kind == ROW for kind, _ in cell.invariants):
        return cell
    return replace(
        cell, rows=1, units=size, iterators=tuple(each._replace(width=size) for each in cell.iterators),
        invariants=tuple((kind, size if kind == WHOLE else width) for kind, width in cell.invariants),
    )  # fmt: skip
