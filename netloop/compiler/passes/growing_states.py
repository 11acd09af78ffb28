"""Keep states that grow in buffers, so that their loops are compiled."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.buffer_layers import FilledPartLayer
from netloop.compiler.passes.growing_layers import Buffers
from netloop.compiler.passes.growing_lists import grow_tensors
from netloop.compiler.passes.growth import Growth, Impossible, Unbuffered
from netloop.compiler.passes.lists_as_tensors import tensors_of_lists
from netloop.compiler.passes.rewriter import Rewriter
from netloop.compiler.passes.trip_counts import (
    LEAST_ROWS,
    MOST_ROWS,
    buffer_rows,
    has_open_end,
    most_iterations,
    not_padded,
    number_of_iterations,
    without_bound,
)
from netloop.model.formulas.rearrange import Length
from netloop.model.graph import ITensor, layer
from netloop.model.layers.loop import ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.sequence import HostOperation
from netloop.model.nest import LoopStep
from netloop.values.diagnostics import NetworkError
from netloop.values.enums import LayerType, TripLimit
from netloop.values.types import Array, TensorType

FAR = 1 << 20
"""The most iterations of a loop whose trip count only a run knows."""


def garbage(dtype: np.dtype[Any]) -> Array:
    """The number in the part of a buffer that is not written yet; results do not depend on it."""
    # derivatives of garbage are multiplied with 0, and fewer functions have none at 1 than at 0
    return np.full((), dtype.kind not in "biu", dtype)


@layer(LayerType.INTERNAL, "Room")
class RoomLayer(HostOperation):
    """The number of iterations for which the buffers of a loop have room at first, int64[]."""

    REQUIRED_INPUTS = MAX_INPUTS = 0

    def infer(self) -> TensorType:
        return TensorType(np.dtype(np.int64))

    def evaluate(self) -> Array:
        return np.array(LEAST_ROWS, np.int64)


class GrowingStates(Pass):
    """Keep states that grow by as many elements in each iteration in buffers, of which the first elements count.

    The shape of such a state changes, so that its loop runs on the host, iteration by iteration, with pieces for each
    length. A buffer has one shape. Layers that read an axis whole get masks: softmax, reductions, and matrix products
    that sum over it.
    """

    name = "growing_states"
    level = 1
    # counters that are equal, and states that never change, are gone; sizes that never change are known
    after = ("redundant_carries", "fixed_sizes")
    on_host = True
    rule = (
        "States to which each iteration of a loop concatenates as many elements along an axis are kept in buffers, if "
        "all layers that read them can read buffers. A buffer has room for all iterations of the COUNT. In loops with "
        f"a WHILE whose COUNT is not known to be at most {MOST_ROWS:,} it becomes twice as large when it is full; "
        "sequences to which such a loop appends tensors of one shape, and which are read only after it, become such "
        "states."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        is_changed = (tensors_of_lists if rewriter.is_pure else grow_tensors)(rewriter)
        notes = rewriter.notes
        if is_changed:
            rewriter.read()
        # the inner ones first, as a state of an outer one may get its shape from them
        steps = {step.loop: step for step in rewriter.loops()}
        for loop in [*steps][::-1]:
            step = steps[loop]
            states = [state for state in step.recurrences if not _is_fixed(state)]
            if not states:
                continue
            try:
                _keep_in_buffers(rewriter, step, states)
            except Unbuffered as reason:
                if rewriter.is_pure:
                    raise NetworkError(not_padded(loop, reason)) from reason
                rewriter.refusals[loop] = str(reason)
                rewriter.rooms.pop(loop, None)
                continue
            is_changed = True
            notes += [f"{state.outputs[0].name!r} is kept in a buffer" for state in states]
            rewriter.read()
            steps = {step.loop: step for step in rewriter.loops()}
        rewriter.notes = notes
        return is_changed


def _is_fixed(state: IRecurrenceLayer) -> bool:
    kind = state.outputs[0].types.of(state.outputs[0])
    return not isinstance(kind, TensorType) or kind.is_fixed


def _keep_in_buffers(rewriter: Rewriter, step: LoopStep, states: list[IRecurrenceLayer]) -> None:
    """Edit a loop.

    Raises:
        Unbuffered: its states cannot be in buffers; nothing is edited then.
    """
    most = most_iterations(rewriter, step)
    _require_known_rows(step, most)
    growth, failure = _growth(rewriter, step, states, FAR if most is None else most)
    buffers = Buffers(rewriter, growth, _room(rewriter, step, growth, most), growth.last + growth.ahead(step.states))
    edits = [edit for layer in growth.layers for edit in buffers.edits(layer)]
    if any(buffers.axes(row) for row in step.rows):
        raise Unbuffered("rows of different shapes are stacked")
    if failure:
        # an iteration that was not possible fails, as it did
        is_possible = rewriter.make.less(buffers.trip, np.int64(growth.last + 1))
        rewriter.network.add_assertion(is_possible, f"iteration {growth.last + 1:,} of {step.loop.name!r}: {failure}")
    for state in states:
        _allocate(rewriter, buffers, state)
    for edit in edits:
        edit()
    for output in step.outputs:
        _cut(rewriter, buffers, step, output)


def _require_known_rows(step: LoopStep, most: int | None) -> None:
    """Refuse rows of lengths that only an iteration gives, if there may be none: these lengths are 0 then."""
    row = next((row for row in step.rows if not row.type.is_fixed), None)
    if row is not None and (not most or step.loop.limit(TripLimit.WHILE) is not None):
        raise Unbuffered(f"the shape of {row.name!r}, which is stacked, is not known without an iteration")


def _room(rewriter: Rewriter, step: LoopStep, growth: Growth, most: int | None) -> Length:
    """The number of iterations for which buffers have room, with those that their beginnings stand for."""
    ahead = growth.ahead(step.states)
    if most is not None:
        return min(most, growth.last + 1) + ahead
    return rewriter.make.add(_rows(rewriter, step), np.int64(ahead))


def _growth(rewriter: Rewriter, step: LoopStep, states: Sequence[IRecurrenceLayer], last: int) -> tuple[Growth, str]:
    """The lengths in a loop up to the last iteration that is possible, and the reason why the next one is not, or "".

    A table of positions is an example: it has a row for each of the iterations that are possible.
    """
    types, failure = rewriter.network.types, ""
    first, end = 2, last
    try:
        return Growth(step, types, states, last), ""
    except Impossible as reason:
        growth, failure = Growth(step, types, states, first), str(reason)
    while end - first > 1:
        middle = (first + end) // 2
        try:
            growth, first = Growth(step, types, states, middle), middle
        except Impossible as reason:
            end, failure = middle, str(reason)
    return growth, failure


def _rows(rewriter: Rewriter, step: LoopStep) -> ITensor:
    """The number of iterations for which buffers have room, which only a run knows."""
    if rewriter.is_pure:
        raise NetworkError(without_bound(step.loop))
    limit = step.loop.limit(TripLimit.COUNT)
    if limit is not None and not has_open_end(step):
        return buffer_rows(rewriter, limit.tensor(0))
    rows = rewriter.rooms[step.loop] = rewriter.network.add(RoomLayer(), []).outputs[0]
    return rows


def _allocate(rewriter: Rewriter, buffers: Buffers, state: IRecurrenceLayer) -> None:
    """Let a state begin with a buffer that has room for all iterations."""
    make, initial = rewriter.make, state.tensor(0)
    lines = buffers.lines(state.outputs[0])
    shape: list[Length] = [*initial.type.shape]
    for axis, line in enumerate(lines):
        if line.slope:
            room, length = buffers.room(line), shape[axis]
            assert isinstance(length, int)
            rest = [*shape]
            rest[axis] = room - length if isinstance(room, int) else make.sub(room, np.int64(length))
            empty = make.full(rest, garbage(initial.type.dtype), initial.type.dtype)
            initial = make.concat([initial, empty], axis) if length else empty
            shape[axis] = room
    state.set_input(0, initial)
    state.keeps_shape = True


def _cut(rewriter: Rewriter, buffers: Buffers, step: LoopStep, output: ILoopOutputLayer) -> None:
    """Let the readers of a last value read as much of it as there is after the last iteration."""
    axes, lines, result = buffers.axes(output.tensor(0)), buffers.lines(output.tensor(0)), output.outputs[0]
    if not axes:
        return
    trips = number_of_iterations(rewriter, step)
    for axis in sorted(axes):
        if (numbers := trips.type.ints()) is not None:
            result = rewriter.make.slice(result, [0], [lines[axis].at(max(0, numbers[0]))], axes=[axis])
        else:
            cut = FilledPartLayer(axis=axis, slope=lines[axis].slope, start=lines[axis].start)
            result = rewriter.network.add(cut, [result, trips]).outputs[0]
    rewriter.take_over(output.outputs[0], result)
