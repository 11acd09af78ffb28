"""The loop-carried state: how it is packed for XLA, and unpacked for the layers of an iteration.

The form of the state changes here only: scan, while loop and outputs name fields of ``Carry``. Both kinds of loops
carry the same ``Carry``; what a scan keeps elsewhere is empty in its carry and costs nothing.
"""

from typing import Any, NamedTuple

import jax

from netloop.compiler.lower.frame import Frame, first_error
from netloop.compiler.lower.lowering import Lowering
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import IRecurrenceLayer
from netloop.model.layers.pointwise import POINTWISE
from netloop.model.nest import LoopStep
from netloop.values.enums import TripLimit


class ErrorFlags(NamedTuple):
    """The error flags that a loop carries; all None, which costs nothing, in a loop that cannot fail.

    Attributes:
        limits: the flag of the trip limits.
        states: the flag of each recurrence's value.
        rows: the flag of each stacked output's rows.
        status: the flag of the assertions.
    """

    limits: Any = None
    states: Any = None
    rows: Any = None
    status: Any = None


class Carry(NamedTuple):
    """The values that a loop passes from one iteration to the next.

    ``trip`` is the number of the coming iteration, and after the last one the number of iterations; a scan does not
    carry it.

    Attributes:
        states: the packed values of the recurrences.
        buffers: the rows of each stacked output so far, along axis 0, in the form of ``rows``; a scan returns them
            only after the last iteration.
        errors: the error flags so far.
        goes_on: whether there is a coming iteration, in a while loop that tracks errors.
    """

    trip: Any
    states: list[Any]
    buffers: list[Any]
    errors: ErrorFlags
    goes_on: Any = None


class LoopState:
    """A loop that is about to run, with the frame around it.

    Attributes:
        tracks_errors: whether the loop carries error flags, as a step in it can fail or a value that it reads may be
            poisoned.
    """

    def __init__(self, lowering: Lowering, step: LoopStep, frame: Frame) -> None:
        self.lowering = lowering
        self.step = step
        self.frame = frame
        self.tracks_errors = lowering.facts.can_fail(step.body.steps) or frame.error_flag(step.reads) is not None

    def initial(self, trip: Any = None) -> Carry:
        """The carry before the first iteration, without buffers."""
        states = [self._packed(recurrence, recurrence.tensor(0), self.frame) for recurrence in self.step.recurrences]
        return Carry(trip, states, [], self._initial_errors() if self.tracks_errors else ErrorFlags())

    def unpack(self, carry: Carry, trip: Any) -> Frame:
        """The frame of an iteration, with the values of the recurrences."""
        inside = self.iteration(trip)
        for state, array in zip(self.step.states, carry.states, strict=True):
            inside.values[state] = array.reshape(self.lowering.types[state].shape)
        if self.tracks_errors:
            inside.error_flags.update(zip(self.step.states, carry.errors.states, strict=True))
            inside.status = carry.errors.status
        return inside

    def pack(self, carry: Carry, inside: Frame) -> Carry:
        """The carry after an iteration, from the one before it and the frame in which its steps have run."""
        errors = self._next_errors(carry.errors, inside) if self.tracks_errors else carry.errors
        states = [self._packed(recurrence, recurrence.tensor(1), inside) for recurrence in self.step.recurrences]
        return carry._replace(states=states, errors=errors)

    def iteration(self, trip: Any) -> Frame:
        """The frame of an iteration, without the values of the recurrences."""
        inside = self.frame.inside()
        inside.trips[self.step.loop] = trip
        return inside

    def _packed(self, layer: IRecurrenceLayer, tensor: ITensor, frame: Frame) -> jax.Array:
        """A state as it is carried: without axes of length one, unless it is a matrix computed element by element."""
        # A state such as a key-value cache is updated in place. Where it is also read without its axes of length one,
        # XLA would make both forms and copy the state in each iteration. For a matrix that is computed element by
        # element it is the other way: XLA computes it with these axes, and would copy it to carry it without.
        state = self.lowering.array(tensor, frame)
        dims = [length for length in state.shape if length != 1]
        is_kept = len(dims) > 1 and isinstance(layer.tensor(1).producer, POINTWISE)
        return state if is_kept else state.reshape(dims)

    def _initial_errors(self) -> ErrorFlags:
        # first_error(0, ...) gives each flag a value of one type, which XLA asks of what a loop carries
        count = self.step.loop.limit(TripLimit.COUNT)
        limits = first_error(0, None if count is None else self.frame.error_flag(count.inputs))
        states = [first_error(0, self.frame.error_flag([recurrence.tensor(0)])) for recurrence in self.step.recurrences]
        return ErrorFlags(limits, states, [first_error(0)] * len(self.step.stacked), first_error(self.frame.status))

    def _next_errors(self, errors: ErrorFlags, inside: Frame) -> ErrorFlags:
        rows = [
            first_error(old, inside.error_flag([row])) for old, row in zip(errors.rows, self.step.rows, strict=True)
        ]
        states = [first_error(0, inside.error_flag([state])) for state in self.step.next_states]
        return ErrorFlags(errors.limits, states, rows, first_error(inside.status))
