"""A process that runs one system and nothing else."""

from __future__ import annotations

import gc
import multiprocessing
import time
import traceback
from collections.abc import Callable
from math import ceil
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.systems import Made, System
from benchmarks.workload import Arrays, Workload

SHORTEST_SAMPLE = 2e-3
"""Seconds. Faster variants run several times in each sample."""

LONG = 0.1
"""Seconds. Slower variants need no runs before a turn to fill the caches."""

WARM = 10e-3
"""The least number of seconds of the runs before a turn."""


class WorkerError(Exception):
    """A system failed; the message is its error."""


class Bench:
    """The inside of the process: the prepared variants."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.made: dict[str, Made] = {}
        self.seconds: dict[str, float] = {}

    def variants(self, workload: Workload) -> list[str]:
        """Return the names of the variants of a workload, and drop those of the one before."""
        self.made.clear()
        self.seconds.clear()
        gc.collect()
        return list(self.system.variants(workload))

    def prepare(self, workload: Workload, variant: str) -> tuple[Arrays, float]:
        """Prepare a variant, and return its results and the seconds of a run."""
        run = self.made[variant] = self.system.make(workload, variant)
        results = self.system.results(run())
        elapsed(run, workload.first_calls - 1)
        seconds = elapsed(run, 1)
        self.seconds[variant] = seconds if seconds > LONG else min(seconds, elapsed(run, 1))
        return results, self.seconds[variant]

    def measure(self, variant: str, samples: int) -> list[float]:
        """Return samples of the seconds of a run, after warm-up runs that do not count."""
        run, seconds = self.made[variant], self.seconds[variant]
        if seconds <= LONG:
            elapsed(run, ceil(WARM / seconds))
        runs = max(1, ceil(SHORTEST_SAMPLE / seconds))
        return [elapsed(run, runs) / runs for _ in range(samples)]


def elapsed(run: Callable[[], Any], times: int) -> float:
    """Return the seconds that a number of runs take."""
    begin = time.perf_counter()
    for _ in range(times):
        run()
    return time.perf_counter() - begin


def serve(system: type[System], connection: Connection) -> None:
    """Answer questions, each the name of a method of ``Bench`` with arguments, until the connection closes."""
    bench = Bench(system())
    while True:
        try:
            method, *arguments = connection.recv()
        except EOFError:
            return
        try:
            connection.send((True, getattr(bench, method)(*arguments)))
        except Exception as error:
            traceback.print_exc()
            connection.send((False, f"{type(error).__name__}: {error}"))


class Worker:
    """The outside of the process."""

    def __init__(self, system: type[System], limit: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, inside = context.Pipe()
        self.process = context.Process(target=serve, args=(system, inside), daemon=True)
        self.process.start()
        inside.close()
        self.limit = limit

    def ask(self, *question: Any) -> Any:
        """Return the answer to a question.

        Raises:
            WorkerError: the process failed, ended or took too long. In the last two cases it is gone.
        """
        try:
            self.connection.send(question)
            if not self.connection.poll(self.limit):
                self.close()
                raise WorkerError(f"took more than {self.limit:g} s")
            succeeded, answer = self.connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise WorkerError("the process ended") from error
        if not succeeded:
            raise WorkerError(answer)
        return answer

    @property
    def alive(self) -> bool:
        """Whether it answers questions."""
        return not self.connection.closed

    def close(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.kill()
        self.process.join()
