"""Requests without states, run as batched calls."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from netloop.api.batches import Batches
from netloop.api.engine import ICudaEngine
from netloop.model.call_inputs import check_values
from netloop.model.graph.attributes import check_instance
from netloop.process.forked import require_jax
from netloop.tools.serve.answer import Outputs
from netloop.tools.serve.service import CLOCK, BatchService, Clock, Request, require_same_tensors
from netloop.values.diagnostics import ExecutionError, Finding, InputError, reason
from netloop.values.string_arrays import contents
from netloop.values.types import Array


@dataclass(eq=False, kw_only=True)
class RowsRequest(Request):
    """Some rows in the queue.

    Attributes:
        rows: their number.
        alike: what the requests of a call have in common: the shapes and element types of rows, and shared values.
    """

    rows: int
    alike: tuple[Any, ...]


class OneByOne:
    """An engine that runs each request by itself, where ``Batches`` joins rows."""

    sizes = ()
    shared = frozenset[str]()

    def __init__(self, engine: ICudaEngine) -> None:
        self.engine = check_instance("engine", engine, ICudaEngine)

    def __call__(self, inputs: Mapping[str, Any]) -> Outputs:
        """Run the engine; return the outputs as numpy arrays."""
        outputs: Mapping[str, Any] = self.engine(inputs)
        return {name: np.asarray(of) if isinstance(of, jax.Array) else of for name, of in outputs.items()}

    def compile(self, inputs: Mapping[str, Any]) -> None:
        """Compile the program for the shapes of some inputs."""
        self.engine.executable.prepare(inputs)


class Server(BatchService[RowsRequest]):
    """An engine whose callers, in many threads, share batched calls.

    ``server(x=rows)`` returns what ``engine(x=rows)`` does, as numpy arrays. Requests that wait at the same time are
    one call, padded to one of a few sizes as :class:`netloop.Batches` does; where that call fails, each of its requests
    runs by itself, so that an error reaches its own caller only. A refit of the engine takes effect in the next call.

    Args:
        engine: the engine; all inputs and outputs have rows, on a first axis of open length, and row i of the outputs
            depends on row i of the inputs alone.
        sizes: the numbers of rows for which programs are compiled; the largest is the most that share a call. Without
            any, each request is a call by itself, and inputs and outputs need no rows: Triton's ``max_batch_size: 0``.
        shared: the names of inputs that are the same for all rows; requests share a call if these are equal.
        queue: the largest number of requests that wait; one more raises Overloaded.
        timeout: the seconds after which a request is not run any more; None or infinity for no limit.
        delay: the seconds that a call waits for more requests after the first.
        clock: returns the time in seconds.

    Raises:
        TypeError, ValueError: an argument is not of its range.
        NetworkError: an input or output has no rows.
    """

    def __init__(
        self,
        engine: ICudaEngine,
        sizes: Iterable[int] = (1, 4, 16, 64),
        *,
        shared: Iterable[str] = (),
        queue: int = 1024,
        timeout: float | None = None,
        delay: float = 0.0,
        clock: Clock = CLOCK,
    ) -> None:
        super().__init__(queue, timeout, delay, clock)
        sizes = (*sizes,)
        self._batches = Batches(engine, sizes, shared=shared) if sizes else OneByOne(engine)
        self.network = engine.network
        self._latest: dict[str, Array] | None = None
        self._begin()

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> Outputs:
        """Run some rows; return the outputs by name, with as many rows.

        Args:
            inputs: an array for each input, by name; all have the same number of rows, at least one.
            named: the arrays as arguments, instead of the dict.

        Raises:
            TypeError: there are both a dict and named arrays.
            InputError: inputs do not fit, or have different numbers of rows.
            NetworkError: rows depend on each other, or the network is invalid for these shapes.
            ExecutionError: a computation failed in one of the rows.
            ServeError: the request was refused (Overloaded, Closed), or has no result in time (TimedOut).
        """
        if inputs is not None and named:
            raise TypeError("a server takes a dict of arrays, or the arrays by name, and not both")
        return self._wait(self.submit(named if inputs is None else inputs), None)

    def call_all(self, requests: Iterable[Mapping[str, Any]]) -> list[Outputs | Exception]:
        """Run several requests together; return the outputs, or the error, of each."""
        return self._all([partial(self.submit, request) for request in requests])

    def submit(self, inputs: Mapping[str, Any], *, timeout: float | None = None) -> Future[Outputs]:
        """Put some rows into the queue; return the future of their outputs. Errors are those of a call.

        Args:
            inputs: an array for each input, by name.
            timeout: the seconds after which the request is not run any more, if fewer than those of the server.
        """
        values = {tensor.name: value for tensor, value in check_values(self.network.inputs, inputs).items()}
        rows, alike = self._rows(values) if self.sizes else (1, ())
        with self._entered():
            now, deadline = self._deadline(timeout)
            return self._put([RowsRequest(values, now, deadline, rows=rows, alike=alike)])[0]

    def _rows(self, inputs: Mapping[str, Any]) -> tuple[int, tuple[Any, ...]]:
        """The number of rows of a request, and what it has in common with those that share its call."""
        shared = {name: np.asarray(value) for name, value in inputs.items() if name in self._batches.shared}
        rows = {name: np.asarray(value) for name, value in inputs.items() if name not in shared}
        counts = {name: len(array) for name, array in rows.items()}
        if len({*counts.values()}) != 1 or 0 in counts.values():
            what = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
            fix = "pass the same number of rows in each input, and at least one"
            raise InputError(Finding("NL615", f"the rows of a request: {what}", "", reason("NL615"), fix))
        types = ((of.shape[1:], of.dtype) for of in rows.values())
        return next(iter(counts.values())), (*types, *((of.shape, contents(of)) for of in shared.values()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of rows for which programs are compiled; none where each request is a call by itself."""
        return self._batches.sizes

    def compile(self, inputs: Mapping[str, Any]) -> None:
        """Compile the programs of all sizes, for inputs of the shapes of these; their values do not matter."""
        self._batches.compile(inputs)

    def reload(self, engine: ICudaEngine) -> None:
        """Use another engine from the next call on.

        Programs for rows of the shapes of the latest request are compiled here, while calls go on with the old engine.

        Raises:
            NetworkError: an input or output is of another name or type; the old one stays.
        """
        require_jax()
        require_same_tensors(check_instance("engine", engine, ICudaEngine).network, self.network)
        old = self._batches
        new = Batches(engine, old.sizes, shared=old.shared) if old.sizes else OneByOne(engine)
        latest = self._latest
        if latest is not None:
            new.compile(latest)
        self._batches, self.network = new, engine.network

    # ------------------------------------------------------------------ the thread

    def _most(self) -> int:
        return max(self.sizes, default=1)

    def _admission(self) -> Callable[[RowsRequest], bool]:
        joined: list[RowsRequest] = []
        most = self._most()

        def joins(request: RowsRequest) -> bool:
            rows = sum(request.rows for request in joined) + request.rows
            # a request of more rows than the largest size has a call of its own
            if joined and (rows > most or request.alike != joined[0].alike):
                return False
            joined.append(request)
            return True

        return joins

    def _run(self, batch: list[RowsRequest]) -> Sequence[Outputs | Exception]:
        batches = self._batches
        self._latest = batch[0].inputs
        try:
            return _run_together(batches, batch)
        except ExecutionError as error:
            return [error] if len(batch) == 1 else [_run_alone(batches, request) for request in batch]


def _run_together(batches: Batches | OneByOne, batch: list[RowsRequest]) -> list[Outputs]:
    first = batch[0].inputs
    if len(batch) == 1:
        return [batches(first)]
    joined = {
        name: np.concatenate([request.inputs[name] for request in batch]) for name in first.keys() - batches.shared
    }
    arrays = batches({**first, **joined})
    results: list[Outputs] = []
    begin = 0
    for request in batch:
        # copies: a view would keep the rows of the others alive
        results.append({name: of[begin : begin + request.rows].copy() for name, of in arrays.items()})
        begin += request.rows
    return results


def _run_alone(batches: Batches | OneByOne, request: RowsRequest) -> Outputs | Exception:
    try:
        return batches(request.inputs)
    except ExecutionError as error:
        return error
