"""One loop to ``lax.scan`` or ``lax.while_loop``.

Both carry the value of every recurrence. A scan runs a number of trips that is known while compiling; its iterators and
stacked outputs are the scan's own. A while loop carries the number of the trip too, and a buffer for every stacked
output, written in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from netloop.enums import LoopOutput, TripLimit
from netloop.graph.tensor import ITensor
from netloop.layers.loop import IIteratorLayer, ILoopOutputLayer
from netloop.lower.frame import Frame
from netloop.nest import LoopStep, Step
from netloop.types import normal_axis

if TYPE_CHECKING:
    from netloop.lower.program import Program

DEEPEST_SCAN = 24
"""Scans nested 64 deep have met Python's recursion limit inside JAX; while loops go deeper."""


@dataclass(frozen=True)
class Road:
    """How a loop runs, and why.

    Attributes:
        name: ``"scan"`` or ``"while"``.
        why: the reason for the choice.
        trips: the number of trips, if it is known.
    """

    name: str
    why: str
    trips: int | None = None


def lower_loop(program: Program, step: LoopStep, frame: Frame) -> None:
    """Bring the outputs of a loop into the frame."""
    loop = _Loop(program, step, frame)
    program.roads[step.loop] = road = choose_road(program, step)
    done = loop.scan(road.trips) if road.name == "scan" and road.trips is not None else loop.repeat()
    if loop.can_fail:
        frame.status = done.status
    for layer in step.outputs:
        frame.values[layer.outputs[0]] = loop.output(layer, done)


def choose_road(program: Program, step: LoopStep) -> Road:
    """The road for a loop: a scan where the trips are known, a while loop elsewhere."""
    if step.loop.limit(TripLimit.WHILE) is not None:
        return Road("while", "its WHILE limit is decided from trip to trip")
    trips = program.count(step.loop)
    if trips is None:
        return Road("while", "its COUNT limit is known only in the call")
    if len(program.scopes.around(step.loop)) >= DEEPEST_SCAN:
        return Road("while", f"it is nested more than {DEEPEST_SCAN} deep", trips)
    return Road("scan", "its COUNT limit is known, and it has no WHILE limit", trips)


def lower_iterator(program: Program, layer: IIteratorLayer, frame: Frame) -> None:
    """Bring the slice of an iterator for the present trip into the frame, unless the scan did."""
    output = layer.outputs[0]
    if output in frame.values:
        return
    array = program.array(layer.tensor(0), frame)
    axis = normal_axis(layer.axis, array.ndim)
    trip = frame.trips[layer.loop]
    position = _count(program, layer, frame) - 1 - trip if layer.reverse else trip
    length = array.shape[axis]
    if layer.loop in frame.ended or not program.stays_inside(layer):
        finding = layer.finding("NL601", *layer.past_the_end("past the end", length))
        program.failures.report(frame, (position < 0) | (position >= length), finding)
    if length == 0:
        frame.values[output] = jnp.zeros(program.types[output].shape, array.dtype)
    else:
        frame.values[output] = lax.dynamic_index_in_dim(array, position, axis, keepdims=False)


def _count(program: Program, layer: IIteratorLayer, frame: Frame) -> Any:
    limit = layer.loop.limit(TripLimit.COUNT)
    assert limit is not None
    return jnp.maximum(jnp.asarray(program.read(limit.tensor(0), frame), jnp.int64), 0)


class _Done(NamedTuple):
    """A loop that has ended.

    Attributes:
        trips: the number of trips that it made.
        states: the values of the recurrences.
        rows: for every stacked output its elements, along axis 0.
        status: the status.
    """

    trips: Any
    states: list[Any]
    rows: list[Any]
    status: Any


class _Loop:
    """A loop, with the values around it."""

    def __init__(self, program: Program, step: LoopStep, frame: Frame) -> None:
        self.program = program
        self.step = step
        self.frame = frame
        self.states = [each.outputs[0] for each in step.recurrences]
        self.next = [each.tensor(1) for each in step.recurrences]
        self.stacked = [each for each in step.outputs if each.stacks]
        self.body = step.body.needed([*self.next, *(each.tensor(0) for each in self.stacked)], assertions=True)
        self.can_fail = program.can_fail([step])

    # ------------------------------------------------------------------ the two roads

    def scan(self, trips: int) -> _Done:
        """Run a known number of trips."""
        iterators = [each for each in self.step.iterators if self.program.stays_inside(each)]
        slices = [self._slices(each, trips) for each in iterators]

        def body(carry: Any, given: Any) -> Any:
            trip, elements = given
            inside = self._inside(trip, *carry)
            inside.values.update(zip((layer.outputs[0] for layer in iterators), elements, strict=True))
            states, rows = self._trip(inside)
            return (states, self._status(inside)), rows

        carry = self._initial(), self._status(self.frame)
        (states, status), rows = lax.scan(body, carry, (jnp.arange(trips), slices), length=trips)
        return _Done(trips, states, rows, status)

    def repeat(self) -> _Done:
        """Run until a limit ends it."""
        carried = self.program.can_fail(self._while_steps())

        def test(carry: Any) -> Any:
            trip, states, _, status, goes_on = carry
            return goes_on if carried else self._goes_on(trip, states, status)[0]

        def body(carry: Any) -> Any:
            trip, states, buffers, status, goes_on = carry
            inside = self._inside(trip, states, status)
            states, rows = self._trip(inside)
            buffers = [_write(buffer, row, trip) for buffer, row in zip(buffers, rows, strict=True)]
            status = self._status(inside)
            if carried:
                goes_on, status = self._goes_on(trip + 1, states, status)
            return trip + 1, states, buffers, status, goes_on

        trip, states, status = jnp.int64(0), self._initial(), self._status(self.frame)
        goes_on, status = self._goes_on(trip, states, status) if carried else (None, status)
        buffers = [self._buffer(each) for each in self.stacked]
        return _Done(*lax.while_loop(test, body, (trip, states, buffers, status, goes_on))[:4])

    def _goes_on(self, trip: Any, states: list[Any], status: Any) -> tuple[Any, Any]:
        """Whether there is a trip of this number, and the status after asking; past the count nothing fails."""
        count, goes_on = self.step.loop.limit(TripLimit.COUNT), self.step.loop.limit(TripLimit.WHILE)
        within = jnp.bool_(True) if count is None else trip < self.program.read(count.tensor(0), self.frame)
        if goes_on is None:
            return within, status
        inside = self._inside(trip, states, status)
        self.program.run(self._while_steps(), inside)
        true = jnp.logical_and(within, self.program.read(goes_on.tensor(0), inside))
        return true, None if status is None else jnp.where(within, jnp.int32(inside.status), status)

    def _while_steps(self) -> list[Step]:
        goes_on = self.step.loop.limit(TripLimit.WHILE)
        return [] if goes_on is None else self.step.body.needed([goes_on.tensor(0)])

    # ------------------------------------------------------------------ one trip

    def _inside(self, trip: Any, states: list[Any], status: Any) -> Frame:
        inside = self.frame.inside()
        inside.trips[self.step.loop] = trip
        inside.values.update(zip(self.states, states, strict=True))
        inside.status = 0 if status is None else status
        return inside

    def _trip(self, inside: Frame) -> tuple[list[Any], list[Any]]:
        """The next values of the recurrences and the elements of the stacked outputs."""
        self.program.run(self.body, inside)
        rows = [self.program.array(each.tensor(0), inside) for each in self.stacked]
        return [self.program.array(each, inside) for each in self.next], rows

    def _initial(self) -> list[Any]:
        return [self.program.array(each.tensor(0), self.frame) for each in self.step.recurrences]

    def _status(self, frame: Frame) -> Any:
        """The status to carry; None, which costs nothing, where nothing can fail."""
        return jnp.int32(frame.status) if self.can_fail else None

    def _slices(self, layer: IIteratorLayer, trips: int) -> jax.Array:
        """What an iterator reads, in the order in which it does, along axis 0."""
        array = self.program.array(layer.tensor(0), self.frame)
        rows = jnp.moveaxis(array, layer.axis, 0)[:trips]
        return jnp.flip(rows, 0) if layer.reverse else rows

    def _buffer(self, layer: ILoopOutputLayer) -> jax.Array:
        row = self.program.types[layer.tensor(0)]
        return jnp.zeros((self._length(layer), *row.shape), row.dtype)

    # ------------------------------------------------------------------ outputs

    def output(self, layer: ILoopOutputLayer, done: _Done) -> Any:
        """The value of an output of the loop that has ended."""
        if not layer.stacks:
            return self._last(layer.tensor(0), done)
        length = self._length(layer)
        if not self.program.has_room(self.step.loop, layer.tensor(1)):
            finding = layer.finding("NL601", *layer.too_short(f"more than {length}", length))
            self.program.failures.report(self.frame, done.trips > length, finding)
        rows = _arrange(done.rows[self.stacked.index(layer)], done.trips, length, layer.kind)
        return jnp.moveaxis(rows, 0, normal_axis(layer.axis, rows.ndim))

    def _last(self, tensor: ITensor, done: _Done) -> Any:
        """Element n of a tensor, after n trips."""
        inside = self._inside(jnp.int64(done.trips), done.states, done.status)
        inside.ended.add(self.step.loop)
        self.program.run(self.step.body.needed([tensor]), inside)
        if self.can_fail:
            self.frame.status = inside.status
        return self.program.array(tensor, inside)

    def _length(self, layer: ILoopOutputLayer) -> int:
        known = self.program.types[layer.tensor(1)].ints()
        assert known is not None
        return known[0]


def _write(buffer: jax.Array, row: jax.Array, trip: Any) -> jax.Array:
    return lax.dynamic_update_index_in_dim(buffer, row, trip, 0) if len(buffer) else buffer


def _arrange(rows: jax.Array, trips: Any, length: int, kind: LoopOutput) -> jax.Array:
    """The first ``trips`` rows, in the order of ``kind``, then zeros up to ``length``."""
    if len(rows) < length:
        rows = jnp.pad(rows, [(0, length - len(rows)), *[(0, 0)] * (rows.ndim - 1)])
    rows = rows[:length]
    if kind is LoopOutput.REVERSE:
        rows = jnp.flip(rows, 0)
        rows = rows if isinstance(trips, int) and trips >= length else jnp.roll(rows, trips - length, 0)
    return rows
