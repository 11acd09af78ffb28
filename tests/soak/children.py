"""Work that only a process of its own can do: calls that Ctrl-C ends, and calls for which there is no memory.

``python -m tests.soak.children interrupted`` or ``pressed`` is such a process, which the soak starts.
"""

import queue
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import netloop as trt
from tests.compiler.host.test_interruptible import endless
from tests.soak.subjects import found_and_stacked
from tests.support.networks import Op, combine, mark

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
ROUNDS = 6


# ---------------------------------------------------------------------------- Ctrl-C


def interrupted() -> None:
    """Begin calls that never end, and print when each begins and is interrupted; the same engine then works."""
    engine = None
    for number in range(ROUNDS):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            print("begins", flush=True)
            if engine is None or number % 2:  # half of the signals arrive in a call that also compiles
                engine = trt.compile(endless(inner=number % 3 == 0), interruptible=True)
            engine({"yes": np.bool_(True)})
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        last = trt.compile(endless(inner=False), interruptible=True) if engine is None else engine
        assert int(last({"yes": np.bool_(False)})["y"]) in (0, 3)
        print("interrupted", flush=True)


def interrupt_calls(chance: Random) -> None:
    """Send Ctrl-C to calls of a child process, each after a while drawn by chance."""
    with _child("interrupted") as process:
        lines = _Lines(process)
        for number in range(ROUNDS):
            assert lines.next(60) == "begins\n", f"call {number} did not begin"
            time.sleep(chance.choice([0, 0.01, 0.1, 0.3, 1]) * chance.random())
            assert _answer(process, lines) == "interrupted\n", f"Ctrl-C did not end call {number}"
        assert process.wait(30) == 0, f"the process that Ctrl-C interrupts ended with {process.returncode}"


def _answer(process: subprocess.Popen[str], lines: "_Lines") -> str:
    """The answer to Ctrl-C, which is sent again if there is none: JAX's callback of the garbage collector loses it."""
    for _ in range(6):
        process.send_signal(signal.SIGINT)
        if line := lines.next(10):
            return line
    return ""


# ---------------------------------------------------------------------------- memory


def pressed() -> None:
    """Run calls that fail for lack of memory, and call the same engines once there is memory again."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1,))
    mark(network, y=combine(network, x, x), z=combine(network, x, 3.0, Op.PROD))
    compiled, on_host = trt.compile(network), trt.compile(found_and_stacked())
    small, large = (np.arange(count, dtype=np.float32) for count in (8, 32 * MIB))
    for engine in (compiled, on_host):
        engine({"x": large})  # LLVM ends a process that has no memory for the code of a program
    failures = 0
    for _ in range(ROUNDS):
        for engine, name, wanted in ((compiled, "y", small + small), (on_host, "places", np.arange(1, 8)[None])):
            engine({"x": small})
            failures += _fails(lambda call=engine: call({"x": large}))
            np.testing.assert_array_equal(engine({"x": small})[name], wanted)
        np.testing.assert_array_equal(compiled({"x": large})["y"], large + large)
    assert failures, "there was enough memory for each call"


def _fails(call: Callable[[], Any]) -> bool:
    """Whether a call fails with little memory; it fails with an error of netloop."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2 * MIB, resource.RLIM_INFINITY))
    try:
        call()
    except trt.NetloopError:
        return True
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return False


def press_memory(chance: Random) -> None:
    """Run a child process that lacks memory."""
    with _child("pressed", stderr=subprocess.PIPE) as process:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, f"the process without memory ended with {process.returncode}:\n{errors}"


# ---------------------------------------------------------------------------- processes


class _child(subprocess.Popen[str]):
    """A process that runs a function of this module, and does not outlive its context."""

    def __init__(self, name: str, **more: Any) -> None:
        command = [sys.executable, "-m", "tests.soak.children", name]
        super().__init__(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **more)

    def __exit__(self, *error: Any) -> None:
        self.kill()
        super().__exit__(*error)


class _Lines(threading.Thread):
    """The lines that a process prints, as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._queue: queue.Queue[str] = queue.Queue()
        self.start()

    def run(self) -> None:
        """Read lines until the process ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._queue.put(line)

    def next(self, seconds: float) -> str:
        """The next line; empty if there is none in time."""
        try:
            return self._queue.get(timeout=seconds)
        except queue.Empty:
            return ""


if __name__ == "__main__":
    {"interrupted": interrupted, "pressed": pressed}[sys.argv[1]]()
