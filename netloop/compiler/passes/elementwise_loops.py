"""Compute loops of element-wise layers by kernels of netloop's own."""

from __future__ import annotations

from dataclasses import replace

from netloop.compiler.passes.recurrent_cells import require
from netloop.compiler.passes.recurrent_kernels import RecurrentKernelPass
from netloop.compiler.passes.recurrent_loops import LoopRecognition
from netloop.compiler.recurrent.cell import ROW, WHOLE, RecurrentCell
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer, IUnaryLayer

LEAST_ELEMENTS = 16
"""The least elements of a state, those of a vector."""
LEAST_WORK = 1 << 14
"""The least elements of the states of all iterations. What is less takes XLA microseconds."""
ROUNDED = frozenset({"tanh", "sigmoid", "scaled_tanh"})
"""The functions that kernels compute less exactly than XLA."""


class ElementwiseLoops(RecurrentKernelPass):
    """Compute all iterations of a loop of element-wise layers in one call, with its states in registers.

    XLA writes and reads the states in each iteration, and starts anew. A running sum of 4096 rows of 256 takes 0.28 of
    its time on one thread of an AMD EPYC with AVX-512, of 1024 rows of 64 0.14.
    """

    name = "elementwise_loops"
    layers = (IElementWiseLayer, IActivationLayer, IUnaryLayer)
    has_products = False
    rule = (
        "On CPUs, where the extra `kernels` is installed: a loop with a known number of iterations, of sums, products "
        "and other exact element-wise float32 layers between states of one shape, is one call of machine code of "
        f"netloop's own, as in `recurrent_kernels`. The states have {LEAST_ELEMENTS} elements or more, and in all "
        f"iterations {LEAST_WORK:,} or more. tanh and sigmoids stay with XLA."
    )

    def cell(self, recognition: LoopRecognition) -> RecurrentCell:
        cell = recognition.cell()
        elements = cell.rows * cell.units
        require(elements >= LEAST_ELEMENTS and elements * recognition.count >= LEAST_WORK)
        require(not any(value.kind in ROUNDED for value in cell.values))
        return _flat(cell) if all(len(parts) == 1 for parts, _ in recognition.stacked) else cell


def _flat(cell: RecurrentCell) -> RecurrentCell:
    """The cell with one row of all elements, if nothing is the same in all rows or has several parts."""
    size = cell.rows * cell.units
    widths = {width for width, _ in cell.iterators} | {width for kind, width in cell.invariants if kind == WHOLE}
    if widths - {cell.units} or any(kind == ROW for kind, _ in cell.invariants):
        return cell
    return replace(
        cell, rows=1, units=size, iterators=tuple(read._replace(width=size) for read in cell.iterators),
        invariants=tuple((kind, size if kind == WHOLE else width) for kind, width in cell.invariants),
    )  # fmt: skip
