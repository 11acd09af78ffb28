"""A loop whose buffers become twice as large when they are full."""

from collections.abc import Callable, Hashable

import numpy as np

from netloop.compiler.host.compiled_pieces import LoopPart, Pieces, fits
from netloop.compiler.host.frame import HostFrame
from netloop.compiler.host.loop import HostLoop, Run
from netloop.compiler.host.routes import MOST_RUNS, reads_of
from netloop.compiler.lower.loop.state import Carry
from netloop.compiler.passes import FAR, LEAST_ROWS
from netloop.model.graph import ITensor
from netloop.model.nest import Block, LayerStep, LoopStep, Step, walk
from netloop.values.diagnostics import ExecutionError, Finding, reason


class GrowingLoop:
    """A loop whose buffers have room for as many iterations as the tensor ``rows`` says.

    Args:
        step: the loop.
        rows: the tensor.
        block: the network.
        pieces: the compiled pieces.
        run: runs steps.
    """

    def __init__(self, step: LoopStep, rows: ITensor, block: Block, pieces: Pieces, run: Run) -> None:
        self._step, self._rows, self._pieces, self._run = step, rows, pieces, run
        self._allocating = _between(rows, step, block)
        self._reads = reads_of([step])
        self._parts: dict[Hashable, LoopPart] = {}

    def __call__(self, frame: HostFrame, on_host: Callable[[], HostLoop]) -> None:
        """Run the loop, and add its outputs to the frame; ``on_host`` makes the loop that runs if it has to be there.

        Raises:
            ExecutionError: an assertion does not hold, or there are too many iterations.
        """
        rows, carry = LEAST_ROWS, None
        while True:
            frame.values[self._rows] = np.array(rows, np.int64)
            # their shapes are other ones now
            for tensor in (tensor for allocating in self._allocating for tensor in allocating.writes):
                frame.values.pop(tensor, None)
            self._run(self._allocating, frame)
            carry, goes_on = self._part(frame, carry, rows, on_host)
            if not goes_on:
                return
            if rows >= FAR:
                raise ExecutionError(self._too_long())
            rows *= 2

    def _part(
        self, frame: HostFrame, carry: Carry | None, rows: int, on_host: Callable[[], HostLoop]
    ) -> tuple[Carry | None, bool]:
        """The carry after some iterations, and whether the loop goes on."""
        key = frame.is_iteration, *map(frame.key_of, self._reads)
        part = self._parts.get(key)
        # a value that failed, or one that only the run knows, is for Python, which begins anew
        if frame.poisoned(self._step.reads) is not None:
            return None, not on_host()(frame, rows)
        if part is None:
            types = frame.type_table()
            if not fits(self._step, types):
                return None, not on_host()(frame, rows)
            if len(self._parts) >= MOST_RUNS:
                self._parts.clear()
            part = self._parts[key] = self._pieces.find_part(self._step, frame, types)
        carry = part(frame, carry, rows)
        return carry, carry is not None

    def _too_long(self) -> Finding:
        loop = self._step.loop
        what = f"{loop.name!r} makes more than {FAR:,} iterations, and its states grow in each"
        fix = "compile without the pass growing_states, or end the loop earlier"
        return Finding("NL666", what, loop.where, reason("NL666"), fix, at=loop)


def _between(rows: ITensor, step: LoopStep, block: Block) -> list[Step]:
    """The layers outside of a loop that depend on a tensor, in running order."""
    inside, dependent, steps = {*walk(step.body)}, {rows}, list[Step]()
    for other in walk(block):
        if other is step:
            break
        if isinstance(other, LayerStep) and other not in inside and dependent.intersection(other.reads):
            steps.append(other)
            dependent.update(other.writes)
    return steps
