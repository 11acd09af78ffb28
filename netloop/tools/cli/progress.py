"""The progress of a command, on a terminal: a line of stderr that appears after two seconds and goes at the end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import netloop as trt
from netloop.tools.cli.verbosity import is_quiet, report_time

PATIENCE = 2.0
"""The seconds after which the line appears."""
PERIOD = 0.5
"""The seconds between two changes of the line."""
CLEAR = "\r\x1b[K"
"""Moves to the beginning of a line and clears it."""


class Status:
    """The line. Without a terminal, it is never written.

    Attributes:
        says: what is being done.
    """

    def __init__(self, says: str, stream: Any = None) -> None:
        self.says = says
        self._stream = sys.stderr if stream is None else stream
        self._began = time.monotonic()
        self._done = threading.Event()

    @contextmanager
    def shown(self) -> Generator[Status]:
        """Show the line while the context lasts."""
        if is_quiet() or not self._stream.isatty():
            yield self
            return
        thread = threading.Thread(target=self._write, name="netloop status", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._done.set()
            thread.join()

    def _write(self) -> None:
        is_shown = False
        while not self._done.wait(PERIOD if is_shown else PATIENCE):
            is_shown = True
            print(
                f"{CLEAR}{self.says} ... {time.monotonic() - self._began:.0f} s", end="", file=self._stream, flush=True
            )
        if is_shown:
            print(CLEAR, end="", file=self._stream, flush=True)


@contextmanager
def status(says: str) -> Generator[Status]:
    """Show what is being done while the context lasts."""
    began = time.monotonic()
    with Status(says).shown() as line:
        yield line
    report_time(says, time.monotonic() - began)


def compiled(network: trt.INetworkDefinition, what: str, **options: Any) -> trt.ICudaEngine:
    """The engine of a network, by options of ``netloop.compile``; the line says which phase is running."""
    began: dict[str, float] = {}
    with status(f"compiling {what}") as line:

        class Monitor(trt.IProgressMonitor):
            """Puts the name of the phase into the line, and reports how long it took."""

            def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
                line.says = f"compiling {what}: {phase_name.lower()}"
                began[phase_name] = time.monotonic()

            def phase_finish(self, phase_name: str) -> None:
                report_time(f"  {phase_name.lower()}", time.monotonic() - began[phase_name])

        return trt.compile(network, progress=Monitor(), **options)
