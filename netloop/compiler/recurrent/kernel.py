"""The kernel of a cell: all iterations in one call, shared by threads.

Each thread begins with its own part of the blocks of an iteration, whose weights stay in its cache, and goes on with
those that others have not begun. It waits only for blocks that have been begun, so that a call ends even if no other
thread comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netloop.compiler.machine_code import jobs
from netloop.compiler.machine_code.code import FLOAT_BYTES, FunctionCode
from netloop.compiler.machine_code.compilation import HANDLER
from netloop.compiler.machine_code.handler import ARGUMENTS, INTEGERS, RESULTS, Handler
from netloop.compiler.machine_code.jobs import LINE
from netloop.compiler.machine_code.processor import FLOAT32, MOST_THREADS
from netloop.compiler.recurrent.block import PhaseCode
from netloop.compiler.recurrent.cell import ROW, WHOLE, RecurrentCell
from netloop.compiler.recurrent.job import BEGUN, DONE, THREADS, TRIPS, JobLayout
from netloop.compiler.recurrent.scan import ScanCode

WORK_OF_THREAD = 1 << 16
"""The multiplications of an iteration that are worth a thread: they take 1 us, and to wait for another 0.3 us."""
WORK_OF_CALL = 1 << 20
"""The multiplications of a call that are worth a thread: to wake one takes 10 to 40 us."""


class RecurrentKernel:
    """The code of a cell's kernel, whose function ``HANDLER`` XLA calls.

    Args:
        module: the module of LLVM that gets the code.
        cell: the cell.
        lanes: the numbers of a vector.
        registers: the vectors of sums that registers hold.
    """

    def __init__(self, module: Any, cell: RecurrentCell, lanes: int, registers: int) -> None:
        self._module, self._cell, self._job = module, cell, JobLayout(cell)
        self._blocks, self._lanes = cell.blocks(lanes), lanes
        if cell.sources:
            phases = range(cell.number_of_phases)
            functions = [PhaseCode(module, self._job, phase, lanes, registers).function for phase in phases]
        else:
            # the iterations of a stripe need nothing of others, and all are one step
            scan = ScanCode(module, self._job, lanes, registers)
            self._blocks, functions = scan.stripes, [scan.function]
        self._handler(self._work(functions))

    def _work(self, phases: Sequence[Any]) -> Any:
        """The function that computes blocks until there are none: of a job and the number of the thread."""
        code = FunctionCode(self._module, "work", 2)
        job, thread = code.arguments
        begun = code.divide(code.load_shared(job, DONE), self._blocks)
        threads, mine = code.load(job, THREADS), code.memory(8)
        with code.counting(begun, self._steps(code, code.load(job, TRIPS))) as step:
            jobs.wait(code, job, DONE, code.multiply(step, self._blocks))
            code.store(0, mine)
            with code.counting(0, threads) as other:
                lane = code.remainder(code.add(thread, other), threads)
                first = code.divide(code.multiply(lane, self._blocks), threads)
                count = code.subtract(code.divide(code.multiply(code.add(lane, 1), self._blocks), threads), first)
                # what a thread has begun is counted through all steps and never set back, so that a thread that comes
                # late finds no block of a step that is over
                base = code.multiply(step, count)
                end = code.add(base, count)
                place = code.add(job, code.add(code.multiply(lane, LINE), BEGUN))
                with code.builder.if_then(code.is_less(code.load_shared(place), end)):
                    start = code.new_block()
                    position = code.load_shared(place)
                    # another thread may have begun the last one meanwhile
                    with code.builder.if_then(code.is_less(position, end)):
                        is_mine = code.exchanged(place, position, code.add(position, 1))
                        with code.builder.if_then(is_mine):
                            own = self._back_and_forth(code, step, code.subtract(position, base), count)
                            self._compute(code, phases, step, code.add(first, own))
                            code.store(code.add(code.load(mine), 1), mine)
                    code.jump_back(code.is_less(code.load_shared(place), end), start)
            with code.builder.if_then(code.is_less(0, code.load(mine))):
                code.fetch_and_add(job, code.load(mine), DONE)
        code.end()
        return code.function

    def _back_and_forth(self, code: FunctionCode, step: Any, position: Any, count: Any) -> Any:
        """The block of a thread's part that is computed at a position of a step: every other iteration goes backwards.

        So it begins with the weights that were read last. A cache that holds some of a part would have none of its
        beginning left.
        """
        is_odd = code.equals(code.remainder(code.divide(step, self._cell.number_of_phases), 2), 1)
        return code.builder.select(is_odd, code.subtract(code.subtract(count, 1), position), position)

    def _steps(self, code: FunctionCode, trips: Any) -> Any:
        """The number of steps, before each of which all blocks of the one before are complete."""
        return code.multiply(trips, self._cell.number_of_phases) if self._cell.sources else code.number(1)

    def _compute(self, code: FunctionCode, phases: Sequence[Any], step: Any, block: Any) -> None:
        """Compute a block of a step, which is a phase of an iteration, or all iterations of a stripe."""
        if not self._cell.sources:
            code.call(phases[0], code.arguments[0], block)
            return
        trip, number = code.divide(step, len(phases)), code.remainder(step, len(phases))
        for phase, function in enumerate(phases):
            with code.builder.if_then(code.equals(number, phase)):
                code.call(function, code.arguments[0], trip, block)

    def _handler(self, work: Any) -> None:
        """The function that XLA calls: its first argument is the number of iterations, int32 [1]."""
        cell, layout, part = self._cell, self._job, self._cell.rows * self._cell.units
        code = FunctionCode(self._module, HANDLER, 1, returns=True, is_public=True)
        weights = [source.depth * len(source.products) * self._blocks * self._lanes for source in cell.sources]
        arguments = [(FLOAT32, 0)] * len(cell.iterators)
        arguments += [(FLOAT32, {ROW: width, WHOLE: cell.rows * width}.get(kind, 1)) for kind, width in cell.invariants]
        arguments += [(cell.weight_type, size) for size in weights]
        arguments += [(FLOAT32, part)] * len(cell.states)
        results = [0] * len(cell.stacked) + [2 * part] * len(cell.states)
        results += [part * len(cell.kept), cell.numbers_ahead(self._lanes)]
        handler = Handler(code, [(INTEGERS, 1), *arguments], [(FLOAT32, size) for size in results])
        trips = code.load_number(handler.data(ARGUMENTS, 0))
        handler.require(code.is_less(-1, trips), "there are fewer than 0 iterations")
        lengths = [(ARGUMENTS, 1 + at, cell.rows * width) for at, (width, _) in enumerate(cell.iterators)]
        lengths += [(RESULTS, at, part) for at in range(len(cell.stacked))]
        for where, position, size in lengths:
            is_short = code.is_less(handler.size(where, position), code.multiply(trips, size))
            handler.require(code.builder.not_(is_short), "there are more iterations than elements")
        job = jobs.allocated(handler, layout.size)
        for position, place in enumerate(layout.places.values()):
            late = position - len(arguments)
            code.store(handler.data(ARGUMENTS, 1 + position) if late < 0 else handler.data(RESULTS, late), job, place)
        for number in range(len(cell.states)):
            before, state = (layout.array(code, job, name, number) for name in ("before", "state"))
            code.call_library("memcpy", state, before, part * FLOAT_BYTES)
        most = min(MOST_THREADS, self._blocks)
        if cell.sources:
            most = min(most, cell.work() // cell.number_of_phases // WORK_OF_THREAD)
        threads = code.number(1)
        if most > 1:
            worth = code.add(code.divide(code.multiply(trips, cell.work()), WORK_OF_CALL), 1)
            threads = code.least(code.least(handler.number_of_threads(), most), worth)
        for value, place in ((0, DONE), (trips, TRIPS), (threads, THREADS)):
            code.store(value, job, place)
        with code.counting(0, threads) as thread:
            code.store(0, code.add(job, code.multiply(thread, LINE)), BEGUN)
        jobs.work_together(handler, job, work, threads)
        jobs.wait(code, job, DONE, code.multiply(self._steps(code, trips), self._blocks))
        jobs.release(code, job)
        code.end(0)
