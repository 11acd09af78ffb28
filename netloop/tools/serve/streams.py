"""Requests of a loop as a service: the rows of each stream to its caller."""

import queue as queues
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from netloop.api.slot_engine import SlotEngine
from netloop.api.slot_requests import Rows, SlotRequest
from netloop.model.call_inputs import check_values
from netloop.model.graph.attributes import check_instance
from netloop.process.forked import require_jax
from netloop.tools.serve.answer import Outputs
from netloop.tools.serve.service import CLOCK, Clock, Request, Service, require_same_tensors
from netloop.values.types import Array

OnRow = Callable[[Rows], Any]


@dataclass(eq=False, kw_only=True)
class StreamRequest(Request):
    """A request in the queue or in a slot.

    Attributes:
        on_row: receives the rows of each iteration.
        slot: the request in the slots of an engine, once it is there.
        engine: that engine.
        failure: why its engine failed; None if it did not.
    """

    on_row: OnRow | None
    slot: SlotRequest | None = None
    engine: SlotEngine | None = None
    failure: Exception | None = None

    @property
    def is_over(self) -> bool:
        """Whether its slot is free again."""
        return self.slot is not None and self.slot.is_over

    def report(self, _: SlotRequest, rows: Rows) -> None:
        """Hand the rows of an iteration to the caller; one that raises wants no more of them."""
        if self.on_row is not None and not self.future.done():
            try:
                self.on_row(rows)
            except BaseException:  # the other requests go on, even if it exits
                self.future.cancel()


class Streams(Service[StreamRequest]):
    """A ``SlotEngine`` whose callers, in many threads, hand in requests at any time and get the rows as they are made.

    ``streams.rows(x=x)`` yields the rows of each iteration, and ``streams(x=x)`` returns all outputs. A caller that
    stops, or cancels its future, frees its slot after the iterations in progress.

    Args:
        engine: the engine; only the service uses it.
        queue: the largest number of requests that wait for a slot; one more raises Overloaded.
        timeout: the seconds after which a request that waits is not begun any more; None or infinity for no limit.
        clock: returns the time in seconds.

    Raises:
        TypeError, ValueError: an argument is not of its range.
    """

    def __init__(
        self, engine: SlotEngine, *, queue: int = 1024, timeout: float | None = None, clock: Clock = CLOCK
    ) -> None:
        super().__init__(queue, timeout, 0.0, clock)
        self._use(check_instance("engine", engine, SlotEngine))
        self._running: list[StreamRequest] = []
        self._begin()

    # ------------------------------------------------------------------ callers

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> Outputs:
        """Run a request to its end; return all its outputs, by name.

        Args:
            inputs: an array for each input, by name.
            named: the arrays as arguments, instead of the dict.

        Raises:
            TypeError: there are both a dict and named arrays.
            InputError: inputs do not fit.
            NetworkError, ExecutionError: the network is invalid for these shapes, or a computation failed.
            ServeError: the request was refused (Overloaded, Closed), or has no result in time (TimedOut).
        """
        return self._wait(self.submit(_inputs(inputs, named)), None)

    def rows(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> Iterator[Rows]:
        """Yield the rows of the outputs that stream, iteration by iteration; arguments and errors are those of a call.

        The request is given up when the iterator is closed before its end.
        """
        rows = queues.SimpleQueue[Rows | None]()
        future = self.submit(_inputs(inputs, named), rows.put)
        future.add_done_callback(lambda _: rows.put(None))
        return _until_done(rows, future)

    def submit(
        self, inputs: Mapping[str, Any], on_row: OnRow | None = None, *, timeout: float | None = None
    ) -> Future[Outputs]:
        """Put a request into the queue; return the future of its outputs, whose ``cancel`` gives it up at any time.

        Args:
            inputs: an array for each input, by name.
            on_row: called with the rows of each iteration, by output name, in the thread of the service; an exception
                that it raises gives the request up.
            timeout: the seconds after which it is not begun any more, if fewer than those of the service.

        Raises:
            InputError: inputs do not fit.
            ServeError: the request was refused (Overloaded, Closed).
        """
        checked = check_values(self.network.inputs, inputs)
        arrays = {tensor.name: np.array(value) for tensor, value in checked.items()}
        with self._entered():
            now, deadline = self._deadline(timeout)
            return self._put([StreamRequest(arrays, now, deadline, on_row=on_row)])[0]

    @property
    def streamed(self) -> frozenset[str]:
        """The names of the outputs whose rows stream; empty before the first request."""
        return frozenset(self._engine.streamed)

    def reload(self, engine: SlotEngine) -> None:
        """Let requests begin in another engine from now on; those that run end in the old one.

        Raises:
            NetworkError: an input or output is of another name or type; the old one stays.
        """
        require_jax()
        require_same_tensors(check_instance("engine", engine, SlotEngine).network, self.network)
        self._use(engine)

    def _use(self, engine: SlotEngine) -> None:
        self._engine, self.network = engine, engine.network

    # ------------------------------------------------------------------ the thread

    def _most(self) -> int:
        return self._engine.slots - sum(request.engine is self._engine for request in self._running)

    def _admission(self) -> Callable[[StreamRequest], bool]:
        return lambda _: True

    def _has_work(self) -> bool:
        return bool(self._queue or self._running)

    def _sequence_count(self) -> int:
        return len(self._running)

    def _starts(self, request: StreamRequest) -> bool:
        # it stays pending while it runs, so that its future can be cancelled
        return not request.future.cancelled()

    def _begun(self) -> list[StreamRequest]:
        # those whose future is cancelled too: concurrent.futures.wait ends with this
        begun, self._running = [*super()._begun(), *self._running], []
        return begun

    def _answer(self, batch: list[StreamRequest]) -> None:
        """Let requests begin, and make some iterations of all that run."""
        self._recorder.add("calls")
        engine = self._engine
        for request in batch:
            request.engine, request.slot = engine, engine.submit(request.inputs, request.report)
        self._taken = running = [*self._running, *batch]
        for engine, theirs in _by_engine(running).items():
            _step(engine, theirs)
        over = [request for request in running if request.is_over]
        with self._changed:
            self._running = [request for request in running if not request.is_over]
        for request in over:
            self._end(request, _outcome(request))

    def _end(self, request: StreamRequest, result: Outputs | Exception) -> None:
        if not request.future.set_running_or_notify_cancel():
            self._recorder.add("cancelled")
        elif isinstance(result, Exception):
            self._recorder.add("failed")
            request.future.set_exception(result)
        else:
            self._recorder.complete(self._clock() - request.arrived)
            request.future.set_result(result)


def _inputs(inputs: Mapping[str, Any] | None, named: Mapping[str, Any]) -> Mapping[str, Any]:
    if inputs is not None and named:
        raise TypeError("a service takes a dict of arrays, or the arrays by name, and not both")
    return named if inputs is None else inputs


def _until_done(rows: queues.SimpleQueue[Rows | None], future: Future[dict[str, Array]]) -> Iterator[Rows]:
    try:
        # what the thread of the service has not made when the process forks, it never makes in the fork
        require_jax()
        while (row := rows.get()) is not None:
            yield row
            require_jax()
        future.result()
    finally:
        future.cancel()


def _by_engine(running: list[StreamRequest]) -> dict[SlotEngine, list[StreamRequest]]:
    requests: dict[SlotEngine, list[StreamRequest]] = {}
    for request in running:
        assert request.engine is not None
        requests.setdefault(request.engine, []).append(request)
    return requests


def _step(engine: SlotEngine, running: list[StreamRequest]) -> None:
    """Make iterations of an engine, without the requests that were given up."""
    for request in running:
        if request.future.cancelled() and request.slot is not None:
            request.slot.cancel()
    try:
        engine.step()
    except Exception as error:  # a caller waits for each request, whatever failed
        for request in running:
            request.failure = error
            if request.slot is not None:
                request.slot.cancel()


def _outcome(request: StreamRequest) -> Outputs | Exception:
    assert request.slot is not None
    try:
        return request.slot.result()
    except Exception as error:
        return request.failure or error
