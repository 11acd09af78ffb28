"""A loop on the host, iteration by iteration."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from netloop.compiler.host.frame import HostFrame, Poisoned
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoopOutputLayer
from netloop.model.nest import LoopStep, Step
from netloop.values.diagnostics import ExecutionError, LayerError
from netloop.values.enums import TripLimit
from netloop.values.tensor_values import integer
from netloop.values.types import TensorType

Run = Callable[[Sequence[Step], HostFrame], None]
"""Runs steps in order, and adds their results to the frame."""


class HostLoop:
    """A loop that runs in Python; ``run`` runs the steps of its body."""

    def __init__(self, step: LoopStep, run: Run, max_trips: int | None) -> None:
        self._step = step
        self._run = run
        self._max_trips = max_trips
        self._count, self._condition = step.loop.limit(TripLimit.COUNT), step.loop.limit(TripLimit.WHILE)
        self._needed: dict[ITensor, Sequence[Step]] = {}

    def __call__(self, frame: HostFrame, most: int | None = None) -> bool:
        """Run the loop, and add its outputs to the frame; whether it needs no more than ``most`` iterations.

        If it does, it stops and has no outputs.

        Raises:
            ExecutionError: an assertion does not hold, or the limit of a loop with assertions is poisoned.
        """
        step = self._step
        rows: dict[ILoopOutputLayer, list[Any]] = {output: [] for output in step.stacked}
        inside = self._iteration(frame, 0, [frame.values[recurrence.tensor(0)] for recurrence in step.recurrences])
        going = self._goes_on(inside)
        while going is True:
            if inside.trips[step.loop] == most:
                return False
            self._run(step.iteration, inside)
            for output in step.stacked:
                rows[output].append(inside.values[output.tensor(0)])
            trip, states = inside.trips[step.loop] + 1, [inside.values[state] for state in step.next_states]
            inside = self._iteration(frame, trip, states)
            going = self._goes_on(inside)
        # nobody knows which iterations would have asserted something
        if isinstance(going, Poisoned) and step.has_assertions:
            raise ExecutionError(going.finding)
        for output in step.outputs:
            result = _stack(output, rows[output], frame) if output.stacks else self._ask(output.tensor(0), inside)
            frame.values[output.outputs[0]] = going if isinstance(going, Poisoned) else result
        return True

    def _iteration(self, frame: HostFrame, trip: int, states: Sequence[Any]) -> HostFrame:
        inside = frame.inside(dict(zip(self._step.states, states, strict=True)))
        inside.trips[self._step.loop] = trip
        inside.see(self._step.states)
        return inside

    def _goes_on(self, inside: HostFrame) -> bool | Poisoned:
        """Whether there is another iteration, or why that is not known."""
        loop, limit, count, condition = self._step.loop, self._max_trips, self._count, self._condition
        trip = inside.trips[loop]
        result: Any = True
        if count is not None:
            most = inside.values[count.tensor(0)]
            result = most if isinstance(most, Poisoned) else trip < integer(most)
        # the condition is not needed, and an error in it does not count, where the COUNT has ended the loop
        if condition is not None and result is True:
            asked = self._ask(condition.tensor(0), inside)
            result = asked if isinstance(asked, Poisoned) else bool(integer(asked))
        if isinstance(result, Poisoned) or not result:
            return result if isinstance(result, Poisoned) else False
        return True if limit is None or trip < limit else Poisoned(loop.endless(limit))

    def _ask(self, tensor: ITensor, inside: HostFrame) -> Any:
        """The value of a tensor in an iteration that is not made."""
        # in a frame of its own, as the iteration itself computes these tensors again
        asking = inside.inside({})
        asking.is_iteration = False
        if tensor not in self._needed:
            self._needed[tensor] = self._step.body.needed([tensor])
        self._run(self._needed[tensor], asking)
        return asking.values[tensor]


def _stack(layer: ILoopOutputLayer, rows: Sequence[Any], frame: HostFrame) -> Any:
    length = frame.values[layer.tensor(1)]
    poisoned = next((row for row in (length, *rows) if isinstance(row, Poisoned)), None)
    if poisoned is not None:
        return poisoned
    arrays = [np.asarray(row) for row in rows]
    # all types are inferred only where no iteration has made a row
    row = TensorType.of(arrays[0]) if arrays else frame.type_table()[layer.tensor(0)]
    try:
        layer.check_length(int(length), len(arrays), row)
        return layer.stack(arrays, int(length), row)
    except LayerError as error:
        return Poisoned(layer.finding_of(error, code="NL601"))
