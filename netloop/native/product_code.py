"""The product of rows and a packed matrix, as code that XLA calls and whose tasks threads of its pool share.

A task multiplies a chunk of rows by a few panels. Each thread has a share of the tasks of its own, so that the same
panels stay in the cache of its core from one call to the next, and then takes what is left of those of the others.
"""

from __future__ import annotations

from typing import Any

from netloop.native.code import FLOAT_BYTES, Code, external, ir
from netloop.native.ffi import ARGUMENTS, RESOURCE_EXHAUSTED, RESULTS, Handler
from netloop.native.micro_kernel import MicroKernel

HANDLER = "product"

CHUNK = 96
"""The rows of a task, whose elements stay in the cache next to a panel; a multiple of the rows of each micro-kernel."""
TASK = 1 << 17
"""The least number of multiplications of a task: some microseconds."""
MOST_THREADS = 64
SPINS = 1000
"""How often a thread looks whether the others have ended before it lets other threads run in between."""

FIELDS = [
    "references",
    "rows",
    "panels",
    "out",
    "count",
    "length",
    "columns",
    "panel_count",
    "chunk",
    "per_task",
    "tasks",
    "threads",
    "next",
    "done",
]
AT = {name: 8 * position for position, name in enumerate(FIELDS)}
"""The places of the fields of a job in its memory."""
TAKEN, LINE = 256, 64
"""The place of the number of tasks taken of each share, a cache line apart."""
JOB_BYTES = TAKEN + MOST_THREADS * LINE


class ProductCode:
    """The functions of the product in a module.

    Args:
        module: the module.
        lanes: the floats of a vector.
        sizes: the numbers of rows of the micro-kernels, from the largest down to 1.
    """

    def __init__(self, module: Any, lanes: int, sizes: tuple[int, ...]) -> None:
        self.module = module
        self.kernels = [MicroKernel(module, rows, lanes) for rows in sizes]
        self.width = self.kernels[0].width
        self.malloc, self.free = external(module, "malloc", 1), external(module, "free", 1)
        self.sched_yield = external(module, "sched_yield", 0)
        self.task = self._task()
        self.work = self._work()
        self.release = self._release()
        self.help = self._help()
        self._handler()

    def _task(self) -> Any:
        """Compute a task of a job, by its number."""
        code = Code(self.module, "task", 2)
        job, number = code.arguments
        field = {name: code.load(job, at) for name, at in AT.items()}
        groups = code.divide_up(field["panel_count"], field["per_task"])
        first_row = code.multiply(code.divide(number, groups), field["chunk"])
        first = code.multiply(code.builder.urem(number, groups), field["per_task"])
        last = code.least(field["panel_count"], code.add(first, field["per_task"]))
        rows = code.least(field["chunk"], code.subtract(field["count"], first_row))
        stride, out_stride = (code.multiply(field[each], FLOAT_BYTES) for each in ("length", "columns"))
        start = code.add(field["rows"], code.multiply(first_row, stride))
        out = code.add(field["out"], code.multiply(first_row, out_stride))
        with code.counting(first, last) as panel:
            column = code.multiply(panel, self.width)
            at = code.add(field["panels"], code.multiply(code.multiply(column, field["length"]), FLOAT_BYTES))
            to = code.add(out, code.multiply(column, FLOAT_BYTES))
            columns = code.least(self.width, code.subtract(field["columns"], column))
            self._all_rows(code, rows, (start, stride, at, field["length"], to, out_stride, columns))
        code.end()
        return code.function

    def _all_rows(self, code: Code, rows: Any, given: tuple[Any, ...]) -> None:
        """Call the micro-kernels for a number of rows."""
        start, stride, panel, length, out, out_stride, columns = given
        begin: Any = 0
        for each in self.kernels:
            left = code.subtract(rows, begin)
            end = code.add(begin, code.subtract(left, code.builder.urem(left, code.number(each.rows))))
            with code.counting(begin, end, each.rows) as row:
                own, to = (code.add(at, code.multiply(row, by)) for at, by in ((start, stride), (out, out_stride)))
                code.call(each.function, own, stride, panel, length, to, out_stride, columns)
            begin = end

    def _work(self) -> Any:
        """Compute the tasks of a job that nobody has taken, those of a thread's own share first."""
        code = Code(self.module, "work", 2)
        job, thread = code.arguments
        tasks, threads = code.load(job, AT["tasks"]), code.load(job, AT["threads"])
        with code.counting(0, threads) as turn:
            share = code.builder.urem(code.add(thread, turn), threads)
            begin = code.divide(code.multiply(tasks, share), threads)
            end = code.divide(code.multiply(tasks, code.add(share, 1)), threads)
            taken = code.add(job, code.add(TAKEN, code.multiply(share, LINE)))
            start = code.new_block()
            number = code.add(begin, code.fetch_and_add(taken, 1))
            is_left = code.is_less(number, end)
            with code.builder.if_then(is_left):
                code.call(self.task, job, number)
                code.fetch_and_add(job, 1, AT["done"])
            code.jump_back(is_left, start)
        code.end()
        return code.function

    def _release(self) -> Any:
        """Free a job when the last thread leaves it."""
        code = Code(self.module, "release", 1)
        (job,) = code.arguments
        is_held = code.differs(code.fetch_and_add(job, -1, AT["references"]), 1)
        with code.builder.if_then(code.builder.not_(is_held)):
            code.call(self.free, job)
        code.end()
        return code.function

    def _help(self) -> Any:
        """Work on a job in a thread of the pool; it may begin when the job has ended."""
        code = Code(self.module, "help", 1)
        (job,) = code.arguments
        code.call(self.work, job, code.fetch_and_add(job, 1, AT["next"]))
        code.call(self.release, job)
        code.end()
        return code.function

    def _handler(self) -> None:
        """Multiply: rows [count, length] and panels [panels, length, width] give [count, columns]."""
        handler = Handler(self.module, HANDLER, ((2, 3), (2,)))
        code = handler.code
        count, length = (handler.length(ARGUMENTS, 0, axis) for axis in (0, 1))
        panels, columns = handler.length(ARGUMENTS, 1, 0), handler.length(RESULTS, 0, 1)
        handler.require_equal(handler.length(ARGUMENTS, 1, 1), length, "a panel has not the length of a row")
        handler.require_equal(handler.length(ARGUMENTS, 1, 2), self.width, f"a panel has not {self.width} columns")
        handler.require_equal(handler.length(RESULTS, 0, 0), count, "there is not one row of results for each row")
        handler.require_equal(panels, code.divide_up(columns, self.width), "the panels have not the results' columns")
        job = code.call(self.malloc, JOB_BYTES)
        handler.require(code.differs(job, 0), "there is no memory for it", RESOURCE_EXHAUSTED)
        data = [handler.data(ARGUMENTS, 0), handler.data(ARGUMENTS, 1), handler.data(RESULTS, 0)]
        self._fill(code, job, [1, *data, count, length, columns, panels])
        self._share(handler, job)
        code.call(self.work, job, 0)
        self._wait(code, job)
        code.call(self.release, job)
        code.end(0)

    def _fill(self, code: Code, job: Any, known: list[Any]) -> None:
        """Write the fields of a job."""
        *_, count, length, _, panels = known
        chunk = code.least(count, CHUNK)
        of_panel = code.most(1, code.multiply(code.multiply(chunk, length), self.width))
        per_task = code.least(code.most(1, panels), code.divide_up(TASK, of_panel))
        chunks = code.divide_up(count, code.most(1, chunk))
        tasks = code.multiply(chunks, code.divide_up(panels, per_task))
        for name, value in zip(FIELDS, [*known, chunk, per_task, tasks, 1, 1, 0], strict=True):
            code.store(value, job, AT[name])

    def _share(self, handler: Handler, job: Any) -> None:
        """Let other threads help if there are several tasks."""
        code, tasks = handler.code, handler.code.load(job, AT["tasks"])
        code.store(0, job, TAKEN)
        with code.builder.if_then(code.is_less(1, tasks)):
            threads = code.least(code.least(handler.number_of_threads(), MOST_THREADS), tasks)
            code.store(threads, job, AT["threads"])
            with code.counting(1, threads) as each:
                code.store(0, code.add(job, code.multiply(each, LINE)), TAKEN)
            with code.counting(1, threads):
                code.fetch_and_add(job, 1, AT["references"])
                is_coming = handler.schedule(self.help, job)
                with code.builder.if_then(code.builder.not_(is_coming), likely=False):
                    code.fetch_and_add(job, -1, AT["references"])

    def _wait(self, code: Code, job: Any) -> None:
        """Wait for the tasks that others have taken."""
        tasks, spins = code.load(job, AT["tasks"]), code.memory(8)
        code.store(0, spins)
        with code.builder.if_then(code.is_less(code.load_shared(job, AT["done"]), tasks)):
            start = code.new_block()
            self._pause(code)
            count = code.add(code.load(spins), 1)
            code.store(count, spins)
            with code.builder.if_then(code.is_less(SPINS, count), likely=False):
                code.call(self.sched_yield)
            code.jump_back(code.is_less(code.load_shared(job, AT["done"]), tasks), start)

    def _pause(self, code: Code) -> None:
        name = "llvm.x86.sse2.pause"
        kind = ir.FunctionType(ir.VoidType(), [])
        code.builder.call(self.module.globals.get(name) or ir.Function(self.module, kind, name), [])
