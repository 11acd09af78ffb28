"""``SlotRequest``, the caller's handle of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Protocol

from netloop.compiler.execution.slots import Slots
from netloop.values.types import Array
from netloop.values.unpicklable import Unpicklable

Rows = dict[str, Array]
"""The rows of one iteration, by the names of the outputs that they belong to."""


class RequestState(StrEnum):
    """Where a request is.

    Attributes:
        WAITING: no slot is free for it yet.
        RUNNING: it makes iterations in a slot.
        DONE: its outputs are there.
        FAILED: a computation in it failed.
        CANCELLED: the caller gave it up.
    """

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class _RunOfSlots(Protocol):
    """The part of a SlotEngine that a request needs."""

    def step(self) -> list[SlotRequest]: ...

    def cancel(self, request: SlotRequest) -> None: ...


class SlotRequest(Unpicklable):
    """A run of a network, made by :meth:`SlotEngine.submit`; ``trips`` is the number of its iterations so far.

    Attributes:
        inputs: its inputs, by name.
        state: where it is.
        slot: the number of its slot while it is running; None otherwise.
        error: why it failed; None if it did not.
    """

    UNPICKLABLE = "cannot be pickled or copied, because it runs in this process; send what result() returns instead"

    def __init__(
        self, engine: _RunOfSlots, inputs: Mapping[str, Any], on_row: Callable[[SlotRequest, Rows], Any] | None
    ) -> None:
        self.inputs = inputs
        self.state = RequestState.WAITING
        self.slot: int | None = None
        self.trips = 0
        self.error: Exception | None = None
        self._engine, self._on_row = engine, on_row
        self._rows: list[Rows] = []
        self._reported = 0
        self._outputs: dict[str, Array] = {}
        self.group: Slots | None = None

    def __repr__(self) -> str:
        return f"<SlotRequest, {self.state.value}, {self.trips} iterations>"

    @property
    def is_over(self) -> bool:
        """Whether it is done, has failed or was cancelled."""
        return self.state not in (RequestState.WAITING, RequestState.RUNNING)

    def rows(self) -> Iterator[Rows]:
        """The rows of the outputs that stream, iteration by iteration: arrays of the type of a row, by output name.

        It lets the engine make iterations, of all its requests, while the next row is not there.

        Raises:
            ExecutionError: after the rows, if a computation in this request failed.
            CancelledError: after the rows, if it was cancelled.
        """
        at = 0
        while True:
            while at < len(self._rows):
                at += 1
                yield self._rows[at - 1]
            if self.is_over:
                break
            self._engine.step()
        self._require_result()

    def result(self) -> dict[str, Array]:
        """The outputs by name, as numpy arrays: those of an engine that runs this request by itself.

        It lets the engine make iterations, of all its requests, until this one is over.

        Raises:
            ExecutionError: a computation in this request failed.
            NetworkError: the network is invalid for the shapes of these inputs, or cannot run in slots for them.
            CancelledError: it was cancelled.
        """
        while not self.is_over:
            self._engine.step()
        self._require_result()
        return dict(self._outputs)

    def cancel(self) -> None:
        """Give the request up, and its slot to another one; nothing happens if it is over."""
        self._engine.cancel(self)

    def _require_result(self) -> None:
        if self.error is not None:
            raise self.error

    # ------------------------------------------------------------------ for the engine

    def begin(self, group: Slots, slot: int) -> None:
        """Record that it runs in a slot."""
        self.state, self.group, self.slot = RequestState.RUNNING, group, slot

    def receive(self, rows: list[Rows]) -> None:
        """Record the rows of some iterations."""
        self._rows += rows
        self.trips += len(rows)

    def end(self, outputs: dict[str, Array], names: list[str]) -> None:
        """Record its end: the outputs that do not stream, and the names of all, in order.

        Raises:
            ExecutionError: a stream has less room than there are rows.
        """
        assert self.group is not None
        rows = {stream.name: [row[stream.name] for row in self._rows] for stream in self.group.streams}
        streamed = {stream.name: stream.stack(rows[stream.name], outputs) for stream in self.group.streams}
        arrays = {**outputs, **streamed}
        self._outputs = {name: arrays[name] for name in names}
        self._leave(RequestState.DONE)

    def fail(self, error: Exception, state: RequestState = RequestState.FAILED) -> None:
        """Record that it has no outputs, and why."""
        self.error = error
        self._leave(state)

    def _leave(self, state: RequestState) -> None:
        self.state, self.slot, self.group = state, None, None

    def report(self) -> None:
        """Call back for each row that has not been reported."""
        while self._on_row is not None and self._reported < len(self._rows):
            self._reported += 1
            self._on_row(self, self._rows[self._reported - 1])
