"""A bounded queue of requests, and the thread that runs them in batches."""

import atexit
import math
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from netloop.model.network import INetworkDefinition
from netloop.process.forked import FORK, require_jax
from netloop.tools.serve.answer import Answer, Outputs, ServiceThread
from netloop.tools.serve.errors import Closed, closed, ended, overloaded, timed_out
from netloop.tools.serve.metrics import Metrics, Recorder
from netloop.values.checked_attributes import seconds, whole
from netloop.values.diagnostics import Finding, NetworkError, quoted, reason
from netloop.values.unpicklable import Unpicklable

Clock = Callable[[], float]
CLOCK: Clock = time.monotonic
"""The clock of services, in seconds."""


@dataclass(eq=False)
class Request:
    """A request in the queue.

    Attributes:
        inputs: its arrays by name.
        arrived: the time of its arrival.
        deadline: the time after which it is not run.
        future: receives its outputs by name, or its error.
    """

    inputs: dict[str, Any]
    arrived: float
    deadline: float
    future: Answer = field(default_factory=Answer)


R = TypeVar("R", bound=Request)
Errors = list[tuple[R, Exception]]
"""Requests that are not run, each with the reason."""


class Service(Unpicklable, ABC, Generic[R]):
    """A queue of limited length, and a thread that takes batches from it.

    What ends the thread ends the service: it refuses what waits and what comes, and says what ended it.

    Attributes:
        network: the network of its engine.

    Args:
        queue: the largest number of requests that wait; one more is refused.
        timeout: the seconds after which a request is not run any more; None or infinity for no limit.
        delay: the seconds that a batch waits for more requests after its first.
        clock: returns the time in seconds.

    Raises:
        TypeError, ValueError: a number is not of its range.
        ExecutionError: the process was forked from one that had used JAX.
    """

    network: INetworkDefinition

    def __init__(self, queue: int, timeout: float | None, delay: float, clock: Clock) -> None:
        require_jax()
        if not callable(clock):
            raise TypeError(f"clock must be a function that returns the time in seconds, not {quoted(clock)}")
        self._room, self._timeout = whole(1)("queue", queue), limit("timeout", timeout)
        self._delay, self._clock = seconds()("delay", delay), clock
        self._queue: deque[R] = deque()
        self._taken: list[R] = []
        self._recorder = Recorder()
        self._changed = threading.Condition(threading.RLock())
        self._is_closed, self._ended_by = False, ""
        self._thread = ServiceThread(target=self._serve, name="netloop-serve", daemon=True)

    def _begin(self) -> None:
        """Start the thread, when the object is complete."""
        self._thread.start()
        # a thread that is inside XLA while Python ends would end the process with a signal
        atexit.register(self.close)

    @property
    def is_closed(self) -> bool:
        """Whether every request is refused, because the service was closed or its thread has ended."""
        return self._is_closed

    def input_types(self) -> dict[str, Any]:
        """The types of the inputs of a request, by name."""
        return {tensor.name: tensor.type for tensor in self.network.inputs}

    def output_types(self) -> dict[str, Any]:
        """The types of its outputs, by name."""
        return {tensor.name: tensor.type for tensor in self.network.outputs}

    # ------------------------------------------------------------------ what a service defines

    @abstractmethod
    def _most(self) -> int:
        """The largest number of requests in a batch."""

    @abstractmethod
    def _admission(self) -> Callable[[R], bool]:
        """A new batch: a function that says whether a request joins it."""

    @abstractmethod
    def _answer(self, batch: list[R]) -> None:
        """Run a batch, and give each request that ends with it its outputs or its error."""

    def _has_work(self) -> bool:
        """Whether there is something to run, with the lock held."""
        return bool(self._queue)

    def _starts(self, request: R) -> bool:
        """Whether a request of the queue is still wanted, as it is about to run."""
        return request.future.set_running_or_notify_cancel()

    def _dependents(self, request: R) -> list[R]:
        """The requests of the queue that make no sense once this one is not run."""
        return []

    def _left(self, request: R) -> None:
        """Note that a request needs nothing any longer."""

    def _not_run(self, request: R) -> Exception:
        """The error of a request after one that was not run; a service with dependents defines it."""
        raise NotImplementedError

    def _sequence_count(self) -> int:
        return 0

    # ------------------------------------------------------------------ callers

    def _entered(self) -> threading.Condition:
        """The lock, for a caller: in a forked process, the thread of the parent may hold it forever."""
        require_jax()
        return self._changed

    def _deadline(self, timeout: float | None) -> tuple[float, float]:
        """The time, and the deadline of a request that arrives now."""
        now = self._clock()
        return now, now + self._least(timeout)

    def _least(self, timeout: float | None) -> float:
        """The seconds that a request has, infinity for no limit."""
        limits = [number for number in (limit("timeout", timeout), self._timeout) if number is not None]
        return min(limits, default=math.inf)

    def _put(self, requests: Sequence[R]) -> list[Future[Outputs]]:
        """Append requests to the queue, all or none, with the lock held."""
        if self._is_closed:
            raise self._refusal()
        if len(self._queue) + len(requests) > self._room:
            self._recorder.add("refused", len(requests))
            what = f"{len(self._queue)} of at most {self._room} requests wait in the queue"
            raise overloaded(what, "send the request again later, or give the service a longer queue")
        self._queue.extend(requests)
        self._recorder.add("accepted", len(requests))
        self._changed.notify_all()
        return [request.future for request in requests]

    def _wait(self, future: Future[Outputs], timeout: float | None) -> Outputs:
        """The outputs of a request, waiting for them as long as its time-outs allow."""
        least = self._least(timeout)
        try:
            return future.result(None if least == math.inf else least)
        except FutureTimeoutError:
            future.cancel()
            raise timed_out("a request has no result in time") from None

    def _all(self, submits: Iterable[Callable[[], Future[Outputs]]]) -> list[Outputs | Exception]:
        """Put requests into the queue together, so that they share calls; return the outputs or the error of each."""
        futures: list[Future[Outputs] | Exception] = []
        with self._entered():
            for other in submits:
                try:
                    futures.append(other())
                except Exception as error:  # the others run
                    futures.append(error)
        return [self._outcome(future) for future in futures]

    def _outcome(self, future: Future[Outputs] | Exception) -> Outputs | Exception:
        try:
            return future if isinstance(future, Exception) else self._wait(future, None)
        except Exception as error:
            return error

    def metrics(self) -> Metrics:
        """The counts and latencies so far."""
        with self._entered():
            return self._recorder.metrics(len(self._queue), self._sequence_count())

    def close(self) -> None:
        """Refuse new requests, answer those in the queue with an error, and wait for the call in progress.

        In a forked process there is nothing to close: the thread belongs to the parent.
        """
        if FORK.lost_jax:
            return
        self._refuse([])
        atexit.unregister(self.close)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _refuse(self, begun: Iterable[R]) -> None:
        """Run nothing more; answer the requests of the queue with an error, and those that have begun."""
        with self._changed:
            self._is_closed = True
            waiting = [*dict.fromkeys((*begun, *self._queue))]
            self._queue.clear()
            self._recorder.add("failed", len(waiting))
            self._changed.notify_all()
        answer_all([(request, self._refusal()) for request in waiting])

    def _refusal(self) -> Closed:
        return ended(self._ended_by) if self._ended_by else closed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ------------------------------------------------------------------ the thread

    def _serve(self) -> None:
        try:
            self._answer_batches()
        except BaseException as error:
            self._ended_by = "".join(traceback.format_exception_only(error)).strip()
            raise
        finally:
            # a caller waits for each request, whatever ended the thread
            self._refuse(self._begun())

    def _begun(self) -> list[R]:
        """The requests that have left the queue, and have no outcome."""
        return [request for request in self._taken if not request.future.done()]

    def _answer_batches(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._has_work() or self._is_closed)
                if self._delay and not self._is_closed:
                    self._changed.wait_for(lambda: len(self._queue) >= self._most() or self._is_closed, self._delay)
                if self._is_closed:
                    return
                batch, errors = self._take()
                has_work = bool(batch) or self._has_work()
            # callbacks of futures may take as long as they like, so the lock is not held here
            answer_all(errors)
            if has_work:
                self._answer(batch)
            self._taken = []

    def _take(self) -> tuple[list[R], Errors[R]]:
        """The next batch, and the errors of requests whose time is over; requests that do not fit stay in order."""
        batch: list[R] = []
        skipped: list[R] = []
        errors: Errors[R] = []
        joins, now = self._admission(), self._clock()
        while self._queue and len(batch) < self._most():
            request = self._queue.popleft()
            self._taken.append(request)
            if request.deadline < now:
                error = timed_out("a request waited in the queue until its time was over")
                errors += [(request, error), *self._drop(request, "timed_out")]
            elif not joins(request):
                skipped.append(request)
            elif self._starts(request):
                batch.append(request)
            else:
                errors += self._drop(request, "cancelled")
        self._queue.extendleft(reversed(skipped))
        self._taken = [*batch, *(request for request, _ in errors)]
        return batch, errors

    def _drop(self, request: R, count: str) -> Errors[R]:
        """Count a request without outputs; return the errors of those that cannot run without it."""
        lost = self._dependents(request)
        self._recorder.add(count)
        self._recorder.add("failed", len(lost))
        for other in lost:
            self._queue.remove(other)
        for other in (*lost, request):
            self._left(other)
        return [(request, self._not_run(request)) for request in lost]


class BatchService(Service[R]):
    """A service that answers all requests of a batch at once."""

    @abstractmethod
    def _run(self, batch: list[R]) -> Sequence[Outputs | Exception]:
        """The outputs, or the error, of each request of a batch."""

    def _answer(self, batch: list[R]) -> None:
        """Run a batch, and give each request its outputs or its error."""
        self._recorder.add("calls")
        try:
            results = self._run(batch)
        except Exception as error:  # a caller waits for each request, whatever failed
            results = [error] * len(batch)
        errors: Errors[R] = []
        with self._changed:
            for request, result in zip(batch, results, strict=True):
                if isinstance(result, Exception):
                    errors += self._drop(request, "failed")
                else:
                    self._recorder.complete(self._clock() - request.arrived)
                    self._left(request)
        answer_all(errors)
        for request, result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                request.future.set_exception(result)
            else:
                request.future.set_result(result)


def require_same_tensors(new: INetworkDefinition, old: INetworkDefinition) -> None:
    """Check that a network can take the place of another one in a service.

    Raises:
        NetworkError: an input or output is of another name or type.
    """
    for what in ("inputs", "outputs"):
        ours, theirs = ([(value.name, str(value.type)) for value in getattr(of, what)] for of in (old, new))
        if ours != theirs:
            what = f"the {what} of the new engine are {theirs}, and those of the old one {ours}"
            raise NetworkError(Finding("NL646", what, "", reason("NL646"), "make a new service for it"))


def answer_all(errors: Iterable[tuple[Request, Exception]]) -> None:
    """Give requests their errors, all of them, even if a callback of one raises Ctrl-C in this thread.

    Raises:
        BaseException: the last one that a callback raised.
    """
    raised: BaseException | None = None
    for request, error in errors:
        try:
            request.future.fail(error)
        except BaseException as failure:  # the others have callers that wait
            raised = failure
    if raised is not None:
        raise raised


def limit(name: str, value: float | None) -> float | None:
    """Return a number of seconds, or None for no limit, which infinity is too.

    Raises:
        TypeError, ValueError: it is none of them.
    """
    return None if value is None or seconds(endless=True)(name, value) == math.inf else value
