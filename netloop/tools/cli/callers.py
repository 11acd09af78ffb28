"""Throughput: how many calls a second several callers get answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

import netloop as trt
from netloop.tools.cli.timing import CallTime


def throughput(engine: trt.ICudaEngine, arrays: Mapping[str, Any], callers: int, duration: float) -> list[CallTime]:
    """The calls of some callers, each of which makes the next when its last is answered.

    Requests of several callers run together in a ``netloop.serve.Server`` where the first axis of each input is open,
    and one after another otherwise.

    Args:
        engine: the engine.
        arrays: the inputs of each call.
        callers: the number of callers, each a thread.
        duration: the seconds that they call.

    Raises:
        NetloopError: a call failed, or too many requests wait.
    """
    with _service(engine, arrays) as call, ThreadPoolExecutor(callers) as threads:
        call()  # the first may compile
        start = time.perf_counter()

        def work(_: int) -> list[CallTime]:
            own: list[CallTime] = []
            while (began := time.perf_counter() - start) < duration or not own:
                call()
                own.append(CallTime(began, time.perf_counter() - start - began))
            return own

        return [timed for own in threads.map(work, range(callers)) for timed in own]


@contextmanager
def _service(engine: trt.ICudaEngine, arrays: Mapping[str, Any]) -> Generator[Callable[[], Any]]:
    """A call of the engine by one of several callers."""
    server = None
    try:
        server = trt.serve.Server(engine)
        server.compile(arrays)
    except trt.NetworkError:  # inputs have no rows, or rows depend on each other
        if server is not None:
            server.close()
        yield lambda: {name: np.asarray(value) for name, value in engine(arrays).items()}
        return
    with server:
        yield lambda: server(arrays)


def line_of(calls: list[CallTime], callers: int) -> str:
    """The rate and the times of the calls of several callers."""
    times = 1e3 * np.array([call.took for call in calls])
    rate = len(calls) / max(call.began + call.took for call in calls)
    median, high = np.percentile(times, [50, 99])
    return f"{callers} callers: {rate:.4g} calls per second; median {median:.4g} ms, 99% {high:.4g} ms"
