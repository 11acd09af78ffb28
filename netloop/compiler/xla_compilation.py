"""Compilation by XLA, which Ctrl-C can leave.

Python handles Ctrl-C only between two of its own instructions, and XLA compiles a program in one. So XLA runs in a
thread, for which the main thread waits. It cannot be cancelled: after Ctrl-C it goes on, and its result is dropped.
"""

import atexit
import gc
import io
import operator
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

import jax

from netloop.compiler.gpu_notice import warn_of_idle_gpu
from netloop.compiler.jax_settings import pinned_settings
from netloop.compiler.launches import Launches
from netloop.compiler.phases import Phase, unwatched
from netloop.compiler.recursion_limit import raised_recursion_limit
from netloop.compiler.xla_faults import options_without_faults, triton
from netloop.model.device_errors import can_run_out, completed, require_memory
from netloop.process.garbage_collection import collection_paused

STACK = 64 << 20
"""The size in bytes of the thread's stack: XLA recurses into nested loops, and some systems give a thread little."""

log_compiles = operator.attrgetter("jax_log_compiles")

LONGEST_FUSED_BODY = 2000
"""XLA's compiler for CPUs has crashed while fusing loop bodies of 4,000 operations."""

UNKNOWN_OPTION = "No such compile option", "is not a valid enum value"
"""The parts of messages of releases of XLA that lack an option, or one of its values."""

GRAPHS_OF_ANY_SIZE = {"xla_gpu_graph_min_graph_size": 1}
"""By default a body of fewer than five launches is no CUDA graph, and costs the host each of them."""
GRAPHS_WITH_LOOPS = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,WHILE,CONDITIONAL"
}
"""The list replaces XLA's, which has no loops and conditionals."""

POLL = 0.2
"""The seconds after which the main thread looks for Ctrl-C: on Windows, it does not end a wait."""


def compile_lowered(lowered: Any, options: dict[str, Any] | None = None) -> Any:
    """Compile what ``jax.jit(...).lower(...)`` returned, with compiler options; KeyboardInterrupt is raised at once.

    In another thread than the main one, which gets no Ctrl-C, it is compiled there. A program in which XLA computes
    wrong numbers is compiled anew.
    """
    if threading.current_thread() is not threading.main_thread():
        return _compiled(lowered, options)
    outcome: Future[Any] = Future()
    logs = log_compiles(jax.config)

    def run() -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            with pinned_settings(), jax.log_compiles(logs):  # these belong to a thread
                outcome.set_result(_compiled(lowered, options))
        except BaseException as error:
            outcome.set_exception(error)

    try:
        _start(run)
        _wait_for(outcome)
    except BaseException:  # KeyboardInterrupt, or what a signal handler of the script raises
        if not outcome.cancel():  # the thread has begun
            atexit.register(_end, outcome)
        raise
    return outcome.result()


class Nest(Protocol):
    """A program whose loops and conditionals JAX and XLA walk into.

    ``longest_body`` is a number of layers, and ``has_loop_graphs`` says that it is to be one CUDA graph with its loops.
    ``drop_kernels`` takes an error, and says whether the program had kernels; traced anew, it has none. ``lock`` is
    that of the thread that traces it: tracing adds to its tables of errors and notes.
    """

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    @property
    def depth(self) -> int: ...

    @property
    def longest_body(self) -> int: ...

    @property
    def platform(self) -> str: ...

    @property
    def has_loop_graphs(self) -> bool: ...

    def drop_kernels(self, error: Exception) -> bool: ...


class XlaFunction:
    """A function that is compiled for the types of its first call, and always called with these; Ctrl-C leaves XLA.

    Args:
        function: the function, which JAX traces.
        nest: the program that it runs, for which Python's and XLA's limits are set; None if it has no loops.
        phase: the context of each phase of its compilation: trace and compile.
        options: those of ``jax.jit``.
    """

    def __init__(
        self, function: Callable[..., Any], nest: Nest | None = None, phase: Phase = unwatched, **options: Any
    ) -> None:
        self._jitted = jax.jit(function, **options)
        self._anew: Callable[[], Any] = lambda: jax.jit(lambda *arguments: function(*arguments), **options)
        self._nest, self._phase = nest, phase
        self._lock = threading.RLock() if nest is None else nest.lock
        self._compiled: jax.stages.Compiled | None = None
        self._waits = True

    def __call__(self, *arguments: Any) -> Any:
        """Compile the function if this is the first call, and call it."""
        return (self._compiled or self.compile(*arguments))(*arguments)

    def completed(self, *arguments: Any) -> Any:
        """Call the function; on a CPU, wait for its results if there may be too little memory for them."""
        results = self(*arguments)
        return completed(results) if self._waits else results

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that it needs besides inputs, outputs and weights; 0 before, or if XLA does not say."""
        analysis = self._compiled.memory_analysis() if self._compiled is not None else None
        return int(analysis.temp_size_in_bytes) if analysis is not None else 0

    @property
    def text(self) -> str:
        """XLA's optimized program; empty before it is compiled, or if XLA does not say."""
        return (self._compiled.as_text() or "") if self._compiled is not None else ""

    @property
    def launches(self) -> Launches | None:
        """The launches of a call on a GPU; None on other devices, and where there is no text."""
        is_for_gpus = self._nest is not None and self._nest.platform == "gpu"
        text = self.text if is_for_gpus else ""
        return Launches.of(text) if text else None

    def compile(self, *arguments: Any) -> jax.stages.Compiled:
        """XLA's program for some arguments, or for their types; it is compiled once."""
        if self._compiled is None:
            warn_of_idle_gpu()
            with self._lock, raised_recursion_limit(0 if self._nest is None else self._nest.depth):
                # another thread may have compiled it
                self._compiled = self._compiled or self._built_with_kernels(arguments)
        return self._compiled

    def _built_with_kernels(self, arguments: tuple[Any, ...]) -> jax.stages.Compiled:
        """XLA's program; if its kernels are not compiled, without them."""
        try:
            compiled = self._built(arguments)
        except Exception as error:
            # a kernel that neither the list of primitives nor its limits refuse
            if self._nest is None or not self._nest.drop_kernels(error):
                raise
            self._jitted = self._anew()
            compiled = self._built(arguments)
        # a call of a small program takes microseconds, and to wait for each result would be a good part of them
        executable = compiled.runtime_executable()
        self._waits = executable is None or can_run_out(compiled, executable.local_devices()[0])
        return compiled

    def _built(self, arguments: tuple[Any, ...]) -> jax.stages.Compiled:
        with self._phase("trace"), collection_paused:
            lowered = self._jitted.lower(*arguments)
        if self._nest is not None and self._nest.platform == "cpu":
            require_memory(jax.tree.leaves(lowered.out_info))
        with self._phase("compile"):
            return compile_lowered(lowered, {} if self._nest is None else compiler_options(self._nest))


def compiler_options(nest: Nest) -> dict[str, Any]:
    """XLA's compiler options for a program."""
    if nest.platform == "gpu":
        of_any_size = GRAPHS_OF_ANY_SIZE if nest.longest_body else {}
        return of_any_size | (GRAPHS_WITH_LOOPS if nest.has_loop_graphs else {})
    return {"xla_disable_hlo_passes": "fusion"} if nest.longest_body > LONGEST_FUSED_BODY else {}


def _compiled(lowered: Any, options: dict[str, Any] | None) -> Any:
    """XLA's program, without its known faults."""
    compiled = _with_known(options, lowered)
    without_faults = options_without_faults(compiled.as_text()) if _is_for_cpus(compiled) else {}
    if without_faults:
        return lowered.compile(compiler_options={**(options or {}), **without_faults})
    return compiled


def _with_known(options: dict[str, Any] | None, lowered: Any) -> Any:
    """XLA's program by some options, or by none where this release of XLA does not know them."""
    try:
        return triton.compiled(lowered, options)
    except jax.errors.JaxRuntimeError as error:
        if not options or not any(text in str(error) for text in UNKNOWN_OPTION):
            raise
    return triton.compiled(lowered, None)


def _is_for_cpus(compiled: jax.stages.Compiled) -> bool:
    """Whether a program runs on CPUs, which need not be JAX's default devices: a mesh may be of others."""
    executable = compiled.runtime_executable()
    return executable is not None and {device.platform for device in executable.local_devices()} == {"cpu"}


def _start(run: Callable[[], None]) -> None:
    before = threading.stack_size(STACK)
    try:
        threading.Thread(target=run, name="netloop compilation", daemon=True).start()
    finally:
        threading.stack_size(before)


def _wait_for(outcome: Future[Any]) -> None:
    # not by Thread.join: in Python 3.11, one that is interrupted takes the thread for one that has ended
    while not outcome.done():
        wait([outcome], POLL)


# ---------------------------------------------------------------------------- the end of the process


def _end(outcome: Future[Any]) -> None:
    """Wait for XLA before Python ends, which would abort the thread; do not wait if Ctrl-C is what ends it."""
    if not outcome.done() and not isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
        print("waiting for XLA, which still compiles what was interrupted; Ctrl-C ends the process", file=sys.stderr)
        with suppress(KeyboardInterrupt):
            _wait_for(outcome)
    if not outcome.done():
        _end_by_interrupt()


def _end_by_interrupt() -> None:
    """End the process as Python ends one that Ctrl-C ends, except that objects are not destroyed."""
    atexit.unregister(_end)
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage] (multiprocessing ends its processes by it too)
    for object_ in gc.get_objects():
        if issubclass(type(object_), io.IOBase):
            with suppress(Exception):
                object_.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.raise_signal(signal.SIGINT)
