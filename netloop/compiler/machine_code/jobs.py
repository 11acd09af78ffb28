"""Jobs: what the threads of one call share.

A job is memory that its last thread frees. It begins with the number of the threads that hold it, and with the function
that another thread calls with it.

To wake a thread of XLA's pool takes 10 to 40 us, as long as half a convolution. So a thread that has helped waits for
another job for a moment, at one of the places of the process where kernels leave them.
"""

from __future__ import annotations

from typing import Any

from netloop.compiler.machine_code.code import INT, FunctionCode, ir
from netloop.compiler.machine_code.handler import RESOURCE_EXHAUSTED, Handler
from netloop.compiler.machine_code.processor import MOST_THREADS

LINE = 64
"""The bytes of a cache line: what several threads write to is on lines of its own."""
REFERENCES, COME, HELP, FIELDS = 0, 8, 16, 24
"""The fields of a job: the number of the threads that hold it, that of those that have come, and the address of the
function of other threads; what follows is the kernel's."""
SPINS = 4096
"""The looks at a number after which a waiting thread lets others run."""

WAITING_PLACES = "netloop_waiting_places"
"""The memory of the process with a line for each thread that waits for a job."""
WAITING_SIZE = (MOST_THREADS - 1) * LINE
NOBODY, WAITING = 0, 1
"""The contents of a place, besides the address of a job that its thread is to take."""
PATIENCE = 150_000
"""The ticks of the processor's clock, 50 to 75 us, for which a thread waits: longer than what is between the kernels of
a network, and too short to matter behind the last one."""


def allocated(handler: Handler, size: int) -> Any:
    """A new job of some bytes, which the calling thread holds."""
    job = handler.code.call_library("aligned_alloc", LINE, -(-size // LINE) * LINE)
    handler.require(handler.code.builder.not_(handler.code.equals(job, 0)), "there is no memory", RESOURCE_EXHAUSTED)
    for field in (REFERENCES, COME):
        handler.code.store(1, job, field)
    return job


def release(code: FunctionCode, job: Any) -> None:
    """Let a thread let go of a job."""
    with code.builder.if_then(code.equals(code.fetch_and_add(job, -1, REFERENCES), 1)):
        code.call_library("free", job)


def work_together(handler: Handler, job: Any, work: Any, threads: Any = None) -> None:
    """Call a function with a job and the number of the thread, here and in others: ``threads`` in all, None for one."""
    if threads is not None:
        _share(handler, job, threads, _help(handler.code.module, work))
    handler.code.call(work, job, 0)


def _help(module: Any, work: Any) -> Any:
    """The function of another thread: of a job."""
    code = FunctionCode(module, "help", 1)
    (job,) = code.arguments
    # threads have the numbers in which they come
    code.call(work, job, code.fetch_and_add(job, 1, COME))
    release(code, job)
    code.end()
    return code.function


def _places(module: Any) -> Any:
    """The address of the waiting places."""
    places = module.globals.get(WAITING_PLACES)
    if places is None:
        places = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8), WAITING_SIZE), WAITING_PLACES)
    return places.ptrtoint(INT)


def _helper(module: Any) -> Any:
    """The function of a thread of the pool: it helps with a job, and with those that come soon."""
    code = FunctionCode(module, "helper", 1)
    job, places = code.memory(8), _places(module)
    code.store(code.arguments[0], job)
    again = code.new_block()
    code.call_address(code.load(code.load(job), HELP), code.load(job))
    code.store(0, job)
    with code.counting(0, WAITING_SIZE, LINE) as offset:
        place = code.add(places, offset)
        is_free = code.builder.and_(code.equals(code.load(job), 0), code.equals(code.load_shared(place), NOBODY))
        with (
            code.builder.if_then(is_free),
            code.builder.if_then(code.exchanged(place, code.number(NOBODY), code.number(WAITING))),
        ):
            _await_job(code, place, job)
            # one place is enough
            code.store(code.builder.select(code.equals(code.load(job), 0), code.number(-1), code.load(job)), job)
    code.jump_back(code.is_less(0, code.load(job)), again)
    code.end()
    return code.function


def _await_job(code: FunctionCode, place: Any, job: Any) -> None:
    """Wait at a place for a while, and leave the address of a job that comes in memory."""
    end = code.add(_clock(code), PATIENCE)
    start = code.new_block()
    code.call_intrinsic("llvm.x86.sse2.pause", ir.VoidType())
    is_alone = code.equals(code.load_shared(place), WAITING)
    code.jump_back(code.builder.and_(is_alone, code.is_less(_clock(code), end)), start)
    # a job may come at the last moment
    has_left = code.exchanged(place, code.number(WAITING), code.number(NOBODY))
    with code.builder.if_then(code.builder.not_(has_left)):
        code.store(code.load_shared(place), job)
        code.exchanged(place, code.load(job), code.number(NOBODY))


def _clock(code: FunctionCode) -> Any:
    return code.call_intrinsic("llvm.readcyclecounter", INT)


def _share(handler: Handler, job: Any, threads: Any, help_: Any) -> None:
    """Let other threads, one fewer than ``threads``, call a function with a job, which each releases."""
    code, places = handler.code, _places(handler.code.module)
    code.store(code.builder.ptrtoint(help_, INT), job, HELP)
    helper, is_coming = _helper(code.module), code.memory(8)
    with code.counting(1, threads) as number:
        code.fetch_and_add(job, 1, REFERENCES)
        place = code.add(places, code.multiply(code.subtract(number, 1), LINE))
        code.store(0, is_coming)
        with code.builder.if_then(code.equals(code.load_shared(place), WAITING)):
            taken = code.exchanged(place, code.number(WAITING), job)
            code.store(code.builder.zext(taken, INT), is_coming)
        with code.builder.if_then(code.equals(code.load(is_coming), 0)):
            code.store(code.builder.zext(handler.schedule(helper, job), INT), is_coming)
        with code.builder.if_then(code.equals(code.load(is_coming), 0), likely=False):
            code.fetch_and_add(job, -1, REFERENCES)


def wait(code: FunctionCode, job: Any, field: int, number: Any) -> None:
    """Wait until a field of a job, which threads count up, has reached a number."""
    spins = code.memory(8)
    code.store(0, spins)
    with code.builder.if_then(code.is_less(code.load_shared(code.add(job, field)), number)):
        start = code.new_block()
        code.call_intrinsic("llvm.x86.sse2.pause", ir.VoidType())
        count = code.add(code.load(spins), 1)
        code.store(count, spins)
        with code.builder.if_then(code.is_less(SPINS, count), likely=False):
            code.call_library("sched_yield")
        code.jump_back(code.is_less(code.load_shared(code.add(job, field)), number), start)
