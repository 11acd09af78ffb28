"""Cells without products: each unit depends on its own past only, so that its iterations need no other unit's.

A stripe of a row is a few vectors wide. All of its iterations follow each other, and its states stay in registers.
"""

from __future__ import annotations

from typing import Any

from netloop.compiler.machine_code.vectors import Vectors
from netloop.compiler.recurrent.block import RowCode
from netloop.compiler.recurrent.job import TRIPS, JobLayout

MOST_VECTORS = 16
"""The most vectors of a stripe."""


class ScanCode:
    """The code of all iterations of a stripe.

    Args:
        module: the module of LLVM that gets the code.
        job: the layout of jobs.
        lanes: the numbers of a vector.
        registers: the vectors that registers hold next to operands.

    Attributes:
        function: the function that computes a stripe, of a job and the number of the stripe.
        stripes: the number of stripes.
    """

    def __init__(self, module: Any, job: JobLayout, lanes: int, registers: int) -> None:
        self._module, self._job, self._cell, self._lanes = module, job, job.cell, lanes
        blocks = self._cell.blocks(lanes)
        self._vectors = max(1, min(MOST_VECTORS, blocks, registers // max(1, len(self._cell.states))))
        # what is left of a row is stripes of one vector, the last of which may have fewer numbers
        whole = self._cell.units // lanes // self._vectors if self._vectors > 1 else blocks
        self._whole, self._per_row = whole, whole + blocks - whole * self._vectors
        self.stripes = self._cell.rows * self._per_row
        self.function = self._function()

    def _function(self) -> Any:
        code = Vectors(self._module, "stripe", 2, lanes=self._lanes)
        job, stripe = code.arguments
        row, place = code.divide(stripe, self._per_row), code.remainder(stripe, self._per_row)
        begins = {1: (code.subtract(place, self._whole), self._whole * self._vectors), self._vectors: (place, 0)}
        is_wide = code.is_less(place, self._whole)
        for vectors, (number, first) in begins.items():
            with code.builder.if_then(is_wide if vectors == self._vectors else code.builder.not_(is_wide)):
                code.call(self._stripe(vectors), job, row, code.add(code.multiply(number, vectors), first))
        code.end()
        return code.function

    def _stripe(self, vectors: int) -> Any:
        """The function that computes some vectors of a row: of a job, the row, and the number of the first vector."""
        code = Vectors(self._module, f"stripe_of_{vectors}", 3, lanes=self._lanes)
        job, row, first = code.arguments
        blocks = [code.add(first, number) for number in range(vectors)]
        trips, zero = code.load(job, TRIPS), code.number(0)
        with code.builder.if_then(code.is_less(0, trips)):
            before = [self._row(code, zero, row, block).states_before() for block in blocks]
            with code.repeating(trips, 1) as loop:
                states = [[loop.variable(value) for value in values] for values in before]
                after: list[list[Any]] = []
                for block, own in zip(blocks, states, strict=True):
                    after.append(self._row(code, loop.count, row, block, own).iterate())
                for own, values in zip(states, after, strict=True):
                    for state, value in zip(own, values, strict=True):
                        loop.set_next(state, value)
            for block, values in zip(blocks, after, strict=True):
                self._row(code, trips, row, block).store_states(values)
        code.end()
        return code.function

    def _row(self, code: Vectors, trip: Any, row: Any, block: Any, states: list[Any] | None = None) -> RowCode:
        return RowCode(self._job, code, (code.arguments[0], trip, block, row), states=states)
