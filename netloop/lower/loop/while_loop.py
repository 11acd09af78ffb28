"""One loop to ``lax.scan`` or ``lax.while_loop``.

Both carry the value of every recurrence. A scan runs a number of trips that is known while compiling; its iterators and
stacked outputs are the scan's own. A while loop carries the number of the trip too, and a buffer for every stacked
output, written in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.enums import LoopOutput, TripLimit
from netloop.graph.tensor import ITensor
from netloop.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer, IRecurrenceLayer
from netloop.layers.pointwise import POINTWISE
from netloop.lower.frame import Frame, first
from netloop.lower.loop.scan import scan
from netloop.lower.loop.state import Carry, Done, Faults
from netloop.nest import LoopStep, Step
from netloop.types import normal_axis

if TYPE_CHECKING:
    from netloop.lower.program import Program

DEEPEST_SCAN = 24
"""Scans nested 64 deep have met Python's recursion limit inside JAX; while loops go deeper."""


@dataclass(frozen=True)
class LoopStrategy:
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
    loop = enter(program, step, frame)
    if loop is None:
        return
    program.loop_strategies[step.loop] = strategy = choose_strategy(program, step)
    loop.leave(scan(loop, strategy.trips) if strategy.name == "scan" and strategy.trips is not None else loop.repeat())


def enter(program: Program, step: LoopStep, frame: Frame) -> Loop | None:
    """What is to run of a loop; None if nothing is, as its outputs are poisoned before it begins."""
    if _never_ends(program, step.loop):
        _give_up(program, step, frame)
        return None
    step = _without_hopeless(program, step, frame)
    return Loop(program, step, frame) if step.outputs or step.has_assertions else None


def _never_ends(program: Program, loop: ILoop) -> bool:
    """Whether a loop is known to make more trips than it may."""
    return loop.limit(TripLimit.WHILE) is None and program.count(loop) is not None and program.may_be_endless(loop)


def _give_up(program: Program, step: LoopStep, frame: Frame) -> None:
    """Spoil all that a loop would have made, without running it."""
    fault = _endless(program, step.loop, True)
    for layer in step.outputs:
        _spoil(program, layer, fault, frame)
    if step.has_assertions:
        frame.status = first(frame.status, fault)


def _endless(program: Program, loop: ILoop, failed: Any) -> Any:
    assert program.max_trips is not None
    return program.failures.fault(failed, loop.endless(program.max_trips))


def _spoil(program: Program, layer: ILoopOutputLayer, fault: Any, frame: Frame) -> None:
    (output,) = layer.outputs
    frame.values[output] = jnp.zeros(program.types[output].shape, program.types[output].dtype)
    frame.poison([output], fault)


def _without_hopeless(program: Program, step: LoopStep, frame: Frame) -> LoopStep:
    """The loop without the outputs that are known to have too little room, which are poisoned at once."""
    trips = program.count(step.loop)
    if trips is None or step.loop.limit(TripLimit.WHILE) is not None:
        return step
    kept: list[ILoopOutputLayer] = []
    for layer in step.outputs:
        room = program.types[layer.tensor(1)].ints() if layer.stacks else None
        if room is None or trips <= room[0]:
            kept.append(layer)
            continue
        finding = layer.finding("NL601", *layer.too_short(room[0]))
        _spoil(program, layer, program.failures.fault(True, finding), frame)
    return step if len(kept) == len(step.outputs) else replace(step, outputs=kept)


def choose_strategy(program: Program, step: LoopStep) -> LoopStrategy:
    """The strategy for a loop: a scan where the trips are known, a while loop elsewhere."""
    if step.loop.limit(TripLimit.WHILE) is not None:
        return LoopStrategy("while", "its WHILE limit is decided from trip to trip")
    trips = program.count(step.loop)
    if trips is None:
        return LoopStrategy("while", "its COUNT limit is known only in the call")
    if len(program.scopes.around(step.loop)) >= DEEPEST_SCAN:
        return LoopStrategy("while", f"it is nested more than {DEEPEST_SCAN} deep", trips)
    return LoopStrategy("scan", "its COUNT limit is known, and it has no WHILE limit", trips)


def lower_iterator(program: Program, layer: IIteratorLayer, frame: Frame) -> None:
    """Bring the slice of an iterator for the present trip into the frame, unless the scan did."""
    output = layer.outputs[0]
    frame.poison(layer.outputs, frame.fault(layer.inputs))
    if output in frame.values:
        return
    array = program.array(layer.tensor(0), frame)
    axis = normal_axis(layer.axis, array.ndim)
    trip = frame.trips[layer.loop]
    position = _count(program, layer, frame) - 1 - trip if layer.reverse else trip
    length = array.shape[axis]
    if layer.loop in frame.ended or not program.stays_inside(layer):
        finding = layer.finding("NL601", *layer.past_the_end(length))
        fault = program.failures.fault((position < 0) | (position >= length), finding)
        frame.poison(layer.outputs, first(frame.fault([output, layer.trips]), fault))
    if length == 0:
        frame.values[output] = jnp.zeros(program.types[output].shape, array.dtype)
    else:
        frame.values[output] = lax.dynamic_index_in_dim(array, position, axis, keepdims=False)


def _count(program: Program, layer: IIteratorLayer, frame: Frame) -> Any:
    assert layer.trips is not None
    return jnp.maximum(jnp.asarray(program.read(layer.trips, frame), jnp.int64), 0)


class Loop:
    """A loop, with the values around it."""

    def __init__(self, program: Program, step: LoopStep, frame: Frame) -> None:
        self.program = program
        self.step = step
        self.frame = frame
        self.states = [each.outputs[0] for each in step.recurrences]
        self.next = [each.tensor(1) for each in step.recurrences]
        self.stacked = [each for each in step.outputs if each.stacks]
        self.rows = [each.tensor(0) for each in self.stacked]
        self.body = step.body.needed([*self.next, *self.rows], assertions=True)
        self.carries = program.can_fail(step.body.steps) or frame.fault(step.reads) is not None
        self.most = program.max_trips if program.may_be_endless(step.loop) else None

    # ------------------------------------------------------------------ until a limit ends it

    def repeat(self) -> Done:
        """Run until a limit ends it."""
        return self.done(lax.while_loop(self.goes_on, self.trip, self.begin()))

    def begin(self) -> Carry:
        """What is carried to the first trip."""
        trip, states, faults = jnp.int64(0), self.initial(), self.initial_faults()
        goes_on, faults = self._goes_on(trip, states, faults) if self.carries else (None, faults)
        return Carry(trip, states, [self._buffer(each) for each in self.stacked], faults, goes_on)

    def goes_on(self, carry: Carry) -> Any:
        """Whether a trip is to be made."""
        wanted = self._wants(carry)
        return wanted if self.most is None else jnp.logical_and(carry.trip < self.most, wanted)

    def trip(self, carry: Carry) -> Carry:
        """Make a trip."""
        trip, states, buffers, faults, goes_on = carry
        inside = self.inside(trip, states, faults)
        states, rows, faults = self.run_trip(inside, faults, self.body, self.rows)
        buffers = [_write(buffer, row, trip) for buffer, row in zip(buffers, rows, strict=True)]
        if self.carries:
            goes_on, faults = self._goes_on(trip + 1, states, faults)
        return Carry(trip + 1, states, buffers, faults, goes_on)

    def done(self, carry: Carry) -> Done:
        """The loop after the last trip that it makes; a fault if it would go on."""
        faults = carry.faults
        if self.most is not None:
            fault = _endless(self.program, self.step.loop, self._wants(carry))
            faults = faults._replace(trips=first(faults.trips, fault))
        return Done(carry.trip, carry.states, carry.buffers, faults)

    def _wants(self, carry: Carry) -> Any:
        """Whether the limits of the loop ask for a trip."""
        return carry.goes_on if self.carries else self._goes_on(carry.trip, carry.states, carry.faults)[0]

    def _goes_on(self, trip: Any, states: list[Any], faults: Faults) -> tuple[Any, Faults]:
        """Whether there is a trip of this number, and the faults after asking; what is poisoned ends the loop."""
        count, goes_on = self.step.loop.limit(TripLimit.COUNT), self.step.loop.limit(TripLimit.WHILE)
        within = jnp.bool_(True)
        if count is not None:
            within = trip < jnp.asarray(self.program.read(count.tensor(0), self.frame), jnp.int64)
        if self.carries:
            within = jnp.logical_and(within, faults.trips == 0)
        if goes_on is None:
            return within, faults
        inside = self.inside(trip, states, faults)
        inside.is_trip = False
        self.program.run(self._while_steps(), inside)
        true = jnp.logical_and(within, self.program.read(goes_on.tensor(0), inside))
        fault = inside.fault([goes_on.tensor(0)])
        if fault is None:
            return true, faults
        fault = jnp.where(within, fault, 0)
        return jnp.logical_and(true, fault == 0), faults._replace(trips=first(faults.trips, fault))

    def _while_steps(self) -> list[Step]:
        goes_on = self.step.loop.limit(TripLimit.WHILE)
        return [] if goes_on is None else self.step.body.needed([goes_on.tensor(0)])

    # ------------------------------------------------------------------ one trip

    def inside(self, trip: Any, states: list[Any], faults: Faults) -> Frame:
        inside = self.frame.inside()
        inside.trips[self.step.loop] = trip
        for state, array in zip(self.states, states, strict=True):
            inside.values[state] = array.reshape(self.program.types[state].shape)
        if self.carries:
            inside.faults.update(zip(self.states, faults.states, strict=True))
            inside.status = faults.status
        return inside

    def run_trip(
        self, inside: Frame, faults: Faults, steps: Iterable[Step], rows: Iterable[ITensor]
    ) -> tuple[list[Any], list[Any], Faults]:
        """The next values of the recurrences, the values of ``rows``, and the faults after the trip."""
        rows = list(rows)
        self.program.run(steps, inside)
        if self.carries:
            poisoned = [first(old, inside.fault([each])) for old, each in zip(faults.rows, rows, strict=True)]
            states = [first(0, inside.fault([each])) for each in self.next]
            faults = Faults(faults.trips, states, poisoned, first(inside.status))
        arrays = [self.program.array(each, inside) for each in rows]
        return [self._carried(each, each.tensor(1), inside) for each in self.step.recurrences], arrays, faults

    def initial(self) -> list[Any]:
        return [self._carried(each, each.tensor(0), self.frame) for each in self.step.recurrences]

    def _carried(self, layer: IRecurrenceLayer, tensor: ITensor, frame: Frame) -> jax.Array:
        """A state as it is carried: without axes of length one, but for a matrix that is made element by element.

        Where a state that is written in place is also read without them, XLA would make both forms, and copy it in
        each trip; so it would where a matrix is made with them and carried without.
        """
        state = self.program.array(tensor, frame)
        lengths = [each for each in state.shape if each != 1]
        stays = len(lengths) > 1 and isinstance(layer.tensor(1).producer, POINTWISE)
        return state if stays else state.reshape(lengths)

    def initial_faults(self) -> Faults:
        """The faults before the first trip."""
        if not self.carries:
            return Faults(None, None, None, None)
        count = self.step.loop.limit(TripLimit.COUNT)
        trips = first(0, None if count is None else self.frame.fault(count.inputs))
        states = [first(0, self.frame.fault([each.tensor(0)])) for each in self.step.recurrences]
        return Faults(trips, states, [first(0)] * len(self.stacked), first(self.frame.status))

    def _buffer(self, layer: ILoopOutputLayer) -> jax.Array:
        row = self.program.types[layer.tensor(0)]
        return lax.full((self._length(layer), *row.shape), _zero(row.dtype))

    # ------------------------------------------------------------------ outputs

    def leave(self, done: Done) -> None:
        """Bring what the loop that has ended made into the frame around it."""
        if self.step.has_assertions:
            self.frame.status = first(done.faults.status, done.faults.trips)
        for layer in self.step.outputs:
            self.frame.values[layer.outputs[0]], fault = self.output(layer, done)
            self.frame.poison(layer.outputs, fault)

    def output(self, layer: ILoopOutputLayer, done: Done) -> tuple[Any, Any]:
        """The value of an output of the loop that has ended, and its fault."""
        if not layer.stacks:
            return self._last(layer.tensor(0), done)
        length, fault = self._length(layer), done.faults.trips
        if not self.program.has_room(self.step.loop, layer.tensor(1)):
            finding = layer.finding("NL601", *layer.too_short(length))
            fault = first(fault, self.program.failures.fault(done.trips > length, finding))
        position = self.stacked.index(layer)
        rows = _arrange(done.rows[position], done.trips, length, layer.kind)
        poisoned = done.faults.rows[position] if self.carries else None
        return jnp.moveaxis(rows, 0, normal_axis(layer.axis, rows.ndim)), first(fault, poisoned)

    def _last(self, tensor: ITensor, done: Done) -> tuple[Any, Any]:
        """Element n of a tensor, after n trips, and its fault."""
        inside = self.inside(jnp.int64(done.trips), done.states, done.faults)
        inside.ended.add(self.step.loop)
        inside.is_trip = False
        self.program.run(self.step.body.needed([tensor]), inside)
        return self.program.array(tensor, inside), first(done.faults.trips, inside.fault([tensor]))

    def _length(self, layer: ILoopOutputLayer) -> int:
        known = self.program.types[layer.tensor(1)].ints()
        assert known is not None
        return known[0]


def _write(buffer: jax.Array, row: jax.Array, trip: Any) -> jax.Array:
    return lax.dynamic_update_index_in_dim(buffer, row, trip, 0) if len(buffer) else buffer


def _zero(dtype: Any) -> Any:
    """Zero, or the least number of E8M0, which has none: JAX would make that NaN."""
    return np.zeros((), dtype)


def _arrange(rows: jax.Array, trips: Any, length: int, kind: LoopOutput) -> jax.Array:
    """The first ``trips`` rows, in the order of ``kind``, then zeros up to ``length``."""
    if len(rows) < length:
        rows = lax.pad(rows, _zero(rows.dtype), [(0, length - len(rows), 0), *[(0, 0, 0)] * (rows.ndim - 1)])
    rows = rows[:length]
    if kind is LoopOutput.REVERSE:
        rows = jnp.flip(rows, 0)
        rows = rows if isinstance(trips, int) and trips >= length else jnp.roll(rows, trips - length, 0)
    return rows
