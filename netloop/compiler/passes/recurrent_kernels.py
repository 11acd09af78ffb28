"""Compute whole recurrent layers by kernels of netloop's own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from netloop.compiler.machine_code.processor import BFLOAT16, PROCESSORS, Processor, processor
from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.kernel_functions import FUNCTIONS
from netloop.compiler.passes.recurrent_cells import MOST_CACHED, MOST_ROUNDED_ROWS, ROWS_AHEAD, Unfit, require
from netloop.compiler.passes.recurrent_loops import LEAST_ROWS, LoopRecognition
from netloop.compiler.passes.rewriter import Rewriter
from netloop.compiler.recurrent.cell import RecurrentCell
from netloop.compiler.recurrent.machine_code import iterate
from netloop.model.graph.layer import ILayer, Operation, Types, layer
from netloop.model.layers.loop import ILoop
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.nest import LayerStep, LoopStep
from netloop.values.enums import LayerType
from netloop.values.types import Array, TensorType

LEAST_WEIGHTS = 1 << 12
"""The least elements of the weights of the states, those of an LSTM of 32. A smaller loop takes microseconds, of which
a kernel saves a third, and it takes 0.1 s to compile."""
MOST_ROWS = 256
"""The most rows for which it was measured: 0.85 of XLA's time, as the packing is little of what so many rows take."""

MOST_LATE = 0.25
"""The largest part of the weights that only outputs need: fission multiplies these for all iterations at once. On an
Intel Xeon with AMX, an LSTM of 512 and one row with as many weights of outputs took 1.5 times as long as a kernel."""

MOST_PANEL = 48 << 10
"""The most bytes of weights of a block that are read for each few rows, where registers hold the sums of three rows
only. More come from the second-level cache: an LSTM of 512 and 16 rows took 1.1 to 1.3 of XLA's time with AVX2."""


@layer(LayerType.INTERNAL, "Recurrent Kernel")
class RecurrentKernelLayer(Operation):
    """All iterations of a loop with products of its states.

    The inputs are the arrays along the iterations, those that are the same in all of them, the packed weights
    [blocks, depth, n, lanes] of each source, and the states before. The outputs are the stacked values
    [count, rows, units] and the states [rows, units] after all iterations.

    Attributes:
        cell: one iteration.
        processor: the vectors of the processor for which the weights are packed.
        count: the number of iterations.
        loop: the loop; None if it is one step.
    """

    HAS_PRODUCTS = True

    cell: RecurrentCell
    processor: Processor
    count: int
    loop: ILoop | None

    @property
    def NUM_OUTPUTS(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The number of stacked values and states."""
        return len(self.cell.stacked) + len(self.cell.states)

    def infer(self, *inputs: TensorType) -> Types:
        shape, cell = (self.cell.rows, self.cell.units), self.cell
        shapes = [(self.count, *shape)] * len(cell.stacked) + [shape] * len(cell.states)
        return tuple(TensorType(np.dtype(np.float32), own) for own in shapes)

    def evaluate(self, *inputs: Array) -> tuple[Array, ...]:
        arrays, cell = list(inputs), self.cell
        first = len(cell.iterators) + len(cell.invariants)
        for place, source in enumerate(cell.sources, first):
            parts = arrays[place].transpose(1, 2, 0, 3)
            arrays[place] = parts.reshape(source.depth, len(source.products), -1)[:, :, : cell.units]
        return tuple(cell.evaluate(FUNCTIONS, self.count, arrays))

    def lower(self, *inputs: Any) -> tuple[Any, ...]:
        return tuple(iterate(self.cell, self.processor, self.count, inputs))


class RecurrentKernelPass(Pass):
    """A pass that computes all iterations of loops in one call, each with a kernel for its cell.

    Attributes:
        layers: the kinds of layers of which a loop has one.
        has_products: whether it has products too.
    """

    level = 3
    platforms = frozenset({"cpu"})
    # they take loops as they are built, before products are joined and laid out for XLA
    after = ("induction_variables",)
    alternatives = (OFF,)
    layers: ClassVar[tuple[type[ILayer], ...]]
    has_products: ClassVar[bool]

    @abstractmethod
    def cell(self, recognition: LoopRecognition) -> RecurrentCell:
        """An iteration of a loop.

        Raises:
            Unfit: a kernel of it is not worth it.
        """

    def rewrite(self, rewriter: Rewriter) -> bool:
        steps = [] if rewriter.is_pure else [step for step in rewriter.loops() if self._may_be_a_kernel(step)]
        # most networks have no such loop, and need no compiler imported
        own = processor() if steps else None
        if own is None:
            return False
        flags = [self._replaced(rewriter, step, own) for step in steps]
        return any(flags)

    def _may_be_a_kernel(self, step: LoopStep) -> bool:
        layers = [inner.layer for inner in step.body.steps if isinstance(inner, LayerStep)]
        is_plain = len(layers) == len(step.body.steps) and not step.has_assertions
        has_products = any(isinstance(layer, IMatrixMultiplyLayer) for layer in layers)
        return (
            is_plain and has_products == self.has_products and any(isinstance(layer, self.layers) for layer in layers)
        )

    def _replaced(self, rewriter: Rewriter, step: LoopStep, own: Processor) -> bool:
        """Replace a loop by a kernel if it can be one, and is worth it."""
        try:
            recognition = LoopRecognition(rewriter, step, own, self.has_products)
            cell = self.cell(recognition)
        except Unfit:
            return False
        loop, inputs = step.loop, recognition.inputs(cell)
        kernel = RecurrentKernelLayer(cell=cell, processor=own, count=recognition.count, loop=loop)
        kernel.name = loop.name
        recognition.take_over(rewriter.network.add(kernel, inputs).outputs, cell)
        rewriter.note(f"{loop.name!r} is {call_of(cell)}")
        return True


class RecurrentKernels(RecurrentKernelPass):
    """Compute all iterations of an LSTM, a GRU or another recurrent layer in one call.

    XLA packs the matrix of each product anew in each iteration, and reads and writes the gates. An LSTM of 512 and 16
    rows takes 0.65 of its time on two threads of an AMD EPYC with AVX-512, and of one row 0.70.
    """

    name = "recurrent_kernels"
    layers = (IMatrixMultiplyLayer,)
    has_products = True
    rule = (
        "On CPUs, where the extra `kernels` is installed: a loop with a known number of iterations, of products of its "
        "float32 states with weights and of element-wise layers between states of one length, is one call of machine "
        f"code of netloop's own, for which the weights are packed in advance. The states have {LEAST_WEIGHTS:,} "
        f"weights or more and at most {MOST_ROWS} rows; without AVX-512, {LEAST_ROWS} rows or more read at most "
        f"{MOST_PANEL >> 10} KiB of weights for 8 units. Products of the input are part of it from {LEAST_ROWS} rows "
        f"on, for as many iterations at a time as have {ROWS_AHEAD} rows, and are computed before the loop for fewer. "
        f"At most {MOST_LATE:.0%} of the weights are those of products that only outputs need. Weights of more than "
        f"{MOST_CACHED / 2**20} MiB for each core, of at most {MOST_ROUNDED_ROWS} rows, are "
        "bfloat16 where JAX is set to round the operands of float32 products to it, as by `BF16_BF16_F32`. "
        "Only in engines: not in what `to_jax` returns, in exported programs, on meshes, in slots and for several rows "
        "of a service, and not with `max_trips`. "
        "Only on Linux, on x86-64 processors with AVX2 and FMA or AVX-512."
    )

    def cell(self, recognition: LoopRecognition) -> RecurrentCell:
        cell = recognition.cell()
        require(recognition.weights_of_states() >= LEAST_WEIGHTS and is_worth_it(cell, recognition.processor))
        require(recognition.late <= MOST_LATE * recognition.weights())
        return cell


def call_of(cell: RecurrentCell) -> str:
    """The words of a note for the kernel of a cell."""
    return "one call of machine code" + (" with bfloat16 weights" if cell.weight_type == BFLOAT16 else "")


def is_worth_it(cell: RecurrentCell, own: Processor) -> bool:
    """Whether a kernel of a cell is faster than XLA: the rows are not too many, nor weights read too often."""
    widest = max(source.depth * len(source.products) for source in cell.sources) * own.lanes * 4
    reads_too_much = own != PROCESSORS["avx512f"] and cell.rows >= LEAST_ROWS and widest > MOST_PANEL
    return cell.rows <= MOST_ROWS and not reads_too_much
