"""Cases that may end the process in which they run.

``outcomes`` runs the cases of a module in processes of their own, with little memory and time. A process names each
case before it runs it, so that the case is known if the process dies; the next process goes on with the case after it.
"""

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, TypeVar

import jax
import numpy as np

import netloop as trt

MEMORY = 3 << 30
"""The bytes of memory that a process may use: with more, the reference has room for results of 2 GiB, for minutes."""

STARTING, RUNNING = 120, 20
"""The most seconds until the first case, and for each case."""

T = TypeVar("T")


def serve(
    sources: Mapping[str, Callable[[], Iterable[T]]], outcome: Callable[[T], str], memory: int | None = MEMORY
) -> None:
    """Run the cases of a source, both named by the command line, and print a line before and after each."""
    source, first = sys.argv[1], int(sys.argv[2])
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number, case in enumerate(sources[source]()):
        if number >= first:
            print("START", number, case, flush=True)
            print("END", number, outcome(case), flush=True)
    print("DONE", 0, source, flush=True)


def outcomes(
    module: str, source: str, starting: float = STARTING, seconds: float = RUNNING
) -> Iterator[tuple[str, str]]:
    """The cases of a source of a module that calls ``serve``, and what they lead to.

    ``starting`` and ``seconds`` are the most seconds until the first case, and for each case.
    """
    first, ended = 0, False
    while not ended:
        case = None
        for word, number, text in _lines(module, source, first, (starting, seconds)):
            if word == "START":
                first, case = int(number) + 1, text
            elif word == "DIED":
                assert case is not None, f"a process ended without a case, {text}"
                yield case, f"DIED {text}"
            elif word == "END":
                assert case is not None
                yield case, text
                case = "(none)"
            else:
                ended = True


def _lines(module: str, source: str, first: int, limits: tuple[float, float]) -> Iterator[list[str]]:
    """The lines of a process; the last is DONE, or DIED with the reason."""
    command = [sys.executable, "-m", module, source, str(first)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"}
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, stdout=pipe, stderr=both, text=True, env=environment) as child:
        assert child.stdout is not None
        other = ""
        for line in _timed(child, child.stdout, *limits):
            parts = line.rstrip("\n").split(" ", 2)
            if parts[0] in ("START", "END", "DONE"):
                yield parts
                if parts[0] == "DONE":
                    return
            else:
                other += line
    yield ["DIED", "", f"with {child.returncode}: {other[-300:]!r}"]


def _timed(child: subprocess.Popen[str], output: IO[str], starting: float, seconds: float) -> Iterator[str]:
    """The lines of a process, which is killed if one takes too long."""
    timer = threading.Timer(starting, child.kill)
    timer.start()
    for line in output:
        timer.cancel()
        timer = threading.Timer(seconds, child.kill)
        timer.start()
        yield line
    timer.cancel()


def raised(run: Callable[[], object]) -> str:
    """The error that a run raises; "RAW" begins what no input may lead to."""
    try:
        jax.tree.map(np.asarray, run())
    except trt.NetloopError as error:
        return f"{type(error).__name__} {error.findings[0].code}"
    except Exception as error:
        return f"RAW {type(error).__name__}: {str(error).splitlines()[:1]}"
    return "fine"


def is_bad(text: str) -> bool:
    """Whether a case led to what no input may lead to."""
    return "RAW" in text or "DIED" in text
