"""Times of calls, measured in turns, and what they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

FIRST = "netloop"
"""The name of what the others are compared with."""


class CallTime(NamedTuple):
    """One call: when it began, in seconds after the first one, and how many seconds it took."""

    began: float
    took: float


Times = Mapping[str, Sequence[CallTime]]
"""The calls of each system; those of one index are of one turn."""


def in_turns(calls: Mapping[str, Callable[[], Any]], iterations: int, duration: float, warm_up: float) -> Times:
    """Measure functions in turns, each once a turn, in another order each turn.

    Args:
        calls: the functions by name.
        iterations: the fewest turns; there is at least one.
        duration: the fewest seconds that the calls of each function take together, on average over the functions.
        warm_up: the seconds of calls of each function before, which are not measured; there is at least one call.
    """
    for call in calls.values():
        begin = time.perf_counter()
        call()
        while time.perf_counter() - begin < warm_up:
            call()
    result: dict[str, list[CallTime]] = {name: [] for name in calls}
    turns, spent, names, start = 0, 0.0, list(calls), time.perf_counter()
    while turns < max(iterations, 1) or spent < duration * len(calls):
        turns += 1
        for name in names:
            begin = time.perf_counter()
            calls[name]()
            took = time.perf_counter() - begin
            result[name].append(CallTime(begin - start, took))
            spent += took
        # the first one after another system may find the caches of the core in another state
        names.append(names.pop(0))
    return result


def lines_of(times: Times, percentiles: Sequence[float]) -> Iterator[str]:
    """A table of the times in milliseconds, and the ratio to each other system."""
    heads = ["median", "mean", "min", "max", *(f"{percentile:g}%" for percentile in percentiles)]
    width = max(map(len, times))
    turns = len(times[FIRST])
    yield f"{turns} calls{' each, in turns' if len(times) > 1 else ''}; times in ms"
    yield " " * width + "".join(f"{head:>11}" for head in [*heads, "per second"])
    for name, calls in times.items():
        numbers = 1e3 * np.array([call.took for call in calls])
        row = [np.median(numbers), numbers.mean(), numbers.min(), numbers.max(), *np.percentile(numbers, percentiles)]
        rate = 1e3 / numbers.mean()
        yield f"{name:<{width}}" + "".join(f"{value:>11.4g}" for value in [*row, rate])
    for name in times:
        if name != FIRST:
            yield _ratio(name, times)


def _ratio(name: str, times: Times) -> str:
    mine, theirs = (np.array([call.took for call in times[each_name]]) for each_name in (FIRST, name))
    low, median, high = np.quantile(mine / theirs, [0.25, 0.5, 0.75])
    return f"{FIRST} / {name}: {median:.3g} (median of the ratios of the turns; quartiles {low:.3g} and {high:.3g})"


def as_records(times: Times) -> list[dict[str, Any]]:
    """Every call, with the keys of trtexec's ``--exportTimes``, and the system."""
    return [
        {
            "system": name,
            "startComputeMs": 1e3 * call.began,
            "endComputeMs": 1e3 * (call.began + call.took),
            "computeMs": 1e3 * call.took,
            "latencyMs": 1e3 * call.took,
        }
        for name, calls in times.items()
        for call in calls
    ]


def profile(
    model: str, calls: Sequence[CallTime], phases: Mapping[str, float], layers: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The times of a model and of its layers, with the keys of trtexec's ``--exportProfile``."""
    numbers = 1e3 * np.array([call.took for call in calls])
    whole = {"name": model, "timeMs": float(numbers.sum()), "averageMs": float(numbers.mean())}
    built = {name: 1e3 * seconds for name, seconds in phases.items() if name != "call"}
    return [
        {"count": len(calls), "compilationMs": built},
        {**whole, "medianMs": float(np.median(numbers)), "percentage": 100.0},
        *(
            {"name": name, "averageMs": 1e3 * seconds, "percentage": share}
            for name, seconds, share in _with_shares(layers)
        ),
    ]


def lines_of_layers(layers: Mapping[str, float]) -> Iterator[str]:
    """A table of the times of layers in a call."""
    if not layers:
        yield "no times of layers: some run on the host, or the profiler of the device has none"
        return
    yield f"{'ms':>10}{'%':>8}  layer"
    for name, seconds, share in _with_shares(layers):
        yield f"{1e3 * seconds:>10.4g}{share:>8.1f}  {name}"


def _with_shares(layers: Mapping[str, float]) -> Iterator[tuple[str, float, float]]:
    total = sum(layers.values())
    return ((name, seconds, 100 * seconds / total) for name, seconds in layers.items())
