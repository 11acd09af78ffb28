"""The runner: compares the results of all variants of a workload, then times them in turns."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from benchmarks.systems import SYSTEMS, System, present
from benchmarks.worker import Worker, WorkerError
from benchmarks.workload import Arrays, Workload

ROUND = 5
"""The number of samples in a turn of a variant."""

FEWEST = 3
"""The least number of samples, for variants that are too slow for more."""

OURS = "netloop"


@dataclass(frozen=True)
class Timing:
    """The time of a variant in milliseconds.

    Attributes:
        median, low, high: the median and the quartiles.
        samples: the number of samples.
    """

    median: float
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        """Summarize samples."""
        low, median, high = np.quantile(seconds, [0.25, 0.5, 0.75]) * 1e3
        return cls(float(median), float(low), float(high), len(seconds))


@dataclass
class Result:
    """The result of a workload.

    Attributes:
        name: the name of the workload.
        threads: the number of cores for each variant.
        floors, beyond: the limits of the workload.
        timings: the timings by variant.
        failures: the error of each variant that was not timed, or how its results differ.
    """

    name: str
    threads: int
    floors: Mapping[str, float]
    beyond: Mapping[str, float] = field(default_factory=dict[str, float])
    timings: dict[str, Timing] = field(default_factory=dict[str, Timing])
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def best_peer(self) -> str | None:
        """The fastest of the other systems; numba does not count, as it stands for the limit."""
        peers = [timing for timing in self.timings if timing.split()[0] in {"onnxruntime", "openvino", "torch"}]
        return min(peers, key=lambda peer: self.timings[peer].median, default=None)

    def ratio(self, variant: str | None) -> float | None:
        """The time of netloop divided by that of a variant."""
        if variant not in self.timings or OURS not in self.timings:
            return None
        return self.timings[OURS].median / self.timings[variant].median


@dataclass(frozen=True)
class Plan:
    """The settings of a measurement.

    Attributes:
        threads: the number of cores for each process.
        repetitions: the number of samples of each variant.
        places: how often a variant is prepared anew, as the location of its memory decides how well it fits a cache.
        seconds: the time after which a variant gets no more samples than the minimum.
        limit: the seconds after which a system that does not answer is killed.
        systems: the systems that are compared.
        times_what_differs: whether variants with other results are timed too, and the difference is noted.
    """

    threads: int
    repetitions: int = 30
    seconds: float = 10.0
    places: int = 3
    limit: float = 300.0
    systems: Sequence[type[System]] = tuple(SYSTEMS)
    times_what_differs: bool = False


class Runner:
    """Runs workloads. Each system has its own process, which stays alive between workloads."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.workers: dict[type[System], Worker] = {}

    def run(self, workload: Workload) -> Result:
        """Compare and time the variants of a workload."""
        result = Result(workload.name, self.plan.threads, dict(workload.floors), dict(workload.beyond))
        samples: dict[str, list[float]] = defaultdict(list)
        with pinned(self.plan.threads):
            for _ in range(self.plan.places):
                for variant, found in self.time(dict(self.prepare(workload, result)), result).items():
                    samples[variant] += found
        wanted = self.plan.times_what_differs
        timed = (variant for variant in samples if samples[variant] and (wanted or variant not in result.failures))
        result.timings.update((variant, Timing.of(samples[variant])) for variant in timed)
        return result

    def prepare(self, workload: Workload, result: Result) -> Iterator[tuple[str, tuple[Worker, int]]]:
        """Yield the variants with correct results, each with its process and its number of samples."""
        first, expected = "", Arrays()
        for system in (kind for kind in present(self.plan.systems) if kind.solves(workload)):
            worker = self.worker(system)
            for variant in ask(worker, result, system.__name__, "variants", workload) or []:
                worker = self.worker(system)
                answer: tuple[Arrays, float] | None = ask(worker, result, variant, "prepare", workload, variant)
                if answer is None:
                    continue
                arrays, seconds = answer
                if not first:
                    first, expected = variant, arrays
                problem = difference(arrays, expected, workload.tolerance)
                if problem:
                    result.failures[variant] = f"differs from {first}: {problem}"
                    if not self.plan.times_what_differs:
                        continue
                yield variant, (worker, self.samples(seconds))

    def samples(self, seconds: float) -> int:
        """The number of samples for a variant that takes ``seconds``."""
        fit = int(self.plan.seconds / self.plan.places / max(seconds, 1e-9))
        return min(-(-self.plan.repetitions // self.plan.places), max(FEWEST, fit))

    def time(self, variants: dict[str, tuple[Worker, int]], result: Result) -> dict[str, list[float]]:
        """Time variants in turns."""
        samples: dict[str, list[float]] = {variant: [] for variant in variants}
        for turn in count():
            waiting = [name for name, (_, wanted) in variants.items() if len(samples[name]) < wanted]
            if not waiting:
                break
            first = turn % len(waiting)  # the first one after another process may find the core in another state
            for variant in waiting[first:] + waiting[:first]:
                worker, wanted = variants[variant]
                answer = ask(worker, result, variant, "measure", variant, min(ROUND, wanted - len(samples[variant])))
                if answer is None:
                    del variants[variant]
                else:
                    samples[variant] += answer
        return {variant: samples[variant] for variant in variants}

    def worker(self, system: type[System]) -> Worker:
        """The process of a system; a new one if the last has ended."""
        if system not in self.workers or not self.workers[system].alive:
            self.workers[system] = Worker(system, min(self.plan.limit, system.limit))
        return self.workers[system]

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.close()


def ask(worker: Worker, result: Result, what: str, *question: Any) -> Any:
    """Return the answer of a process; None if it failed, after recording the reason in the result."""
    try:
        return worker.ask(*question)
    except WorkerError as error:
        result.failures[what] = str(error)
        return None


def difference(found: Arrays, expected: Arrays, tolerance: float) -> str | None:
    """Return how results differ; None if they agree."""
    for name, wanted in expected.items():
        if name not in found:
            return f"there is no {name!r}"
        array = np.asarray(found[name])
        if array.shape != wanted.shape:
            return f"{name!r} has shape {array.shape} instead of {wanted.shape}"
        most = tolerance * max(1e-30, float(np.max(np.abs(wanted), initial=0)))
        off = float(np.max(np.abs(array.astype(np.float64) - wanted), initial=0))
        if not off <= most:
            return f"{name!r} is off by {off:.2g}"
    return None


@contextmanager
def pinned(threads: int) -> Generator[None]:
    """Limit this process, and those that it starts, to a number of cores."""
    cores = os.sched_getaffinity(0)
    if threads > len(cores):
        raise SystemExit(f"{threads} cores were requested, and there are {len(cores)}")
    os.sched_setaffinity(0, sorted(cores)[:threads])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def absent(systems: Sequence[type[System]]) -> list[str]:
    """Return the packages of systems that are not installed."""
    return sorted({system.package for system in systems if system not in present(systems)})
