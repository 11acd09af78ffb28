"""Engines as services: requests of many callers run as batched calls, with limits, time-outs and metrics."""

from netloop.tools.serve import (
    Closed,
    Endpoint,
    Metrics,
    NotRun,
    Overloaded,
    RequestError,
    Sequences,
    ServeError,
    Server,
    Step,
    Streams,
    TimedOut,
    UnknownSequence,
    write_repository,
)

__all__ = [
    "Closed",
    "Endpoint",
    "Metrics",
    "NotRun",
    "Overloaded",
    "RequestError",
    "Sequences",
    "ServeError",
    "Server",
    "Step",
    "Streams",
    "TimedOut",
    "UnknownSequence",
    "write_repository",
]
