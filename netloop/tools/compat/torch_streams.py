"""The streams, events and graphs of PyTorch, on the host: work is done when it is asked for, or captured.

Source: https://docs.pytorch.org/docs/stable/cuda.html
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from netloop.process.stream_captures import CAPTURES, Work
from netloop.tools.compat.handles import EVENTS, STREAMS


class HostStream:
    """A stream of PyTorch's."""

    def __init__(self, device: Any = None, priority: int = 0, *, handle: int | None = None) -> None:
        self.cuda_stream = STREAMS.create() if handle is None else handle

    def synchronize(self) -> None:
        """Wait for the stream."""

    def wait_stream(self, stream: HostStream) -> None:
        """Let the stream wait for another."""

    def wait_event(self, event: HostEvent) -> None:
        """Let the stream wait for an event."""

    def record_event(self, event: HostEvent | None = None) -> HostEvent:
        result = event or HostEvent()
        result.record(self)
        return result

    def query(self) -> bool:
        """Whether all work is done: True."""
        return True


class HostEvent:
    """An event of PyTorch's."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.cuda_event = EVENTS.create()

    def record(self, stream: HostStream | None = None) -> None:
        """Record the present time."""
        EVENTS.record(self.cuda_event)

    def synchronize(self) -> None:
        """Wait for the event."""

    def wait(self, stream: HostStream | None = None) -> None:
        """Let a stream wait for the event."""

    def query(self) -> bool:
        """Whether the event is done: True."""
        return True

    def elapsed_time(self, end_event: HostEvent) -> float:
        """The milliseconds until another event."""
        return 1000 * (EVENTS.times[end_event.cuda_event] - EVENTS.times[self.cuda_event])


class CurrentStream:
    """The stream that PyTorch's functions would use."""

    def __init__(self) -> None:
        self.stream = HostStream(handle=0)

    def get(self, device: Any = None) -> HostStream:
        return self.stream

    @contextmanager
    def using(self, stream: HostStream) -> Generator[HostStream]:
        """A context in which it is another."""
        before, self.stream = self.stream, stream
        try:
            yield stream
        finally:
            self.stream = before

    @contextmanager
    def capturing(
        self, cuda_graph: HostGraph, pool: Any = None, stream: HostStream | None = None, **options: Any
    ) -> Generator[None]:
        """A context in which work is captured, on a stream of its own by default."""
        with self.using(stream or HostStream()) as used:
            cuda_graph.begin(used)
            try:
                yield
            finally:
                cuda_graph.end()


class HostGraph:
    """A graph of PyTorch's: the runs of contexts and the functions that were called in its capture, for each replay.

    The functions run in the capture too, and each replay writes their results where those of the capture are.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._stream = 0
        self._work: tuple[Work, ...] = ()

    def begin(self, stream: HostStream) -> None:
        """Capture the work of a stream."""
        self._stream = stream.cuda_stream
        CAPTURES[self._stream] = []

    def end(self) -> None:
        """End the capture."""
        self._work = (*CAPTURES.pop(self._stream),)

    def replay(self) -> None:
        """Do the work.

        Raises:
            RuntimeError: a run of a context failed.
        """
        for work in self._work:
            if not work(self._stream):
                raise RuntimeError("a run of the graph failed; the log of its engine says why")

    def reset(self) -> None:
        """Forget the work."""
        self._work = ()

    def pool(self) -> tuple[int, int]:
        """The pool of the memory of results, which has no meaning here."""
        return 0, 0


def written_again(results: Sequence[Any], function: Callable[..., Any], stream: int) -> bool:
    """Call a function of PyTorch again, and write its results where the earlier ones are."""
    for earlier, later in zip(results, listed(function()), strict=True):
        if later is not earlier and hasattr(earlier, "copy_"):
            earlier.copy_(later)
    return True


def listed(result: Any) -> Sequence[Any]:
    """The results of a function that may have several."""
    return result if isinstance(result, tuple | list) else (result,)
