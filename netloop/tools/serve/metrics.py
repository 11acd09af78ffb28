"""Counts and durations of a service."""

import json
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

MOST_LATENCIES = 4096
"""The number of latest requests whose latencies are known."""


@dataclass(frozen=True)
class Metrics:
    """Counts and times of the work of a service so far.

    Attributes:
        accepted: the requests that entered the queue.
        completed: those with a result.
        failed: those whose inputs or computation had an error, or that were not run because of one.
        timed_out: those whose time was over before they ran.
        cancelled: those whose future was cancelled before they ran.
        refused: the requests that found no room, which are not among the accepted.
        calls: the batched calls.
        queued: the requests in the queue now.
        sequences: the sequences that have a state now.
        median, p95, p99: quantiles of the seconds from the arrival of a request to its result, among the latest 4,096
            completed; NaN before the first.
    """

    accepted: int
    completed: int
    failed: int
    timed_out: int
    cancelled: int
    refused: int
    calls: int
    queued: int
    sequences: int
    median: float
    p95: float
    p99: float

    @property
    def batch_size(self) -> float:
        """The mean number of requests in a call; NaN before the first."""
        return (self.completed + self.failed) / self.calls if self.calls else float("nan")

    def as_text(self) -> str:
        """The metrics as Prometheus reads them, a line each."""
        return "".join(f"netloop_serve_{field.name} {getattr(self, field.name)}\n" for field in fields(self))


def prometheus(models: Mapping[str, Metrics]) -> str:
    """The metrics of several models as Prometheus reads them: of each metric a line for each model, with its name."""
    lines: list[str] = []
    for name in (field.name for field in fields(Metrics)):
        kind = "counter" if name in COUNTS else "gauge"
        lines.append(f"# TYPE netloop_serve_{name} {kind}")
        for model, metrics in models.items():
            lines.append(
                f"netloop_serve_{name}{{model={json.dumps(model, ensure_ascii=False)}}} {getattr(metrics, name)}"
            )
    return "".join(f"{line}\n" for line in lines)


COUNTS = ("accepted", "completed", "failed", "timed_out", "cancelled", "refused", "calls")
"""The metrics that only grow."""


class Recorder:
    """The counts of a service while it runs, by the names of ``Metrics``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        self._latencies: deque[float] = deque(maxlen=MOST_LATENCIES)

    def add(self, name: str, number: int = 1) -> None:
        """Add to a count."""
        with self._lock:
            self._counts[name] += number

    def complete(self, seconds: float) -> None:
        """Count a request with a result, and the time that it took."""
        with self._lock:
            self._counts["completed"] += 1
            self._latencies.append(seconds)

    def metrics(self, queued: int, sequences: int) -> Metrics:
        """All metrics of this moment."""
        with self._lock:
            counts, latencies = dict(self._counts), [*self._latencies]
        median, p95, p99 = np.quantile(latencies, (0.5, 0.95, 0.99)).tolist() if latencies else [float("nan")] * 3
        return Metrics(**counts, queued=queued, sequences=sequences, median=median, p95=p95, p99=p99)
