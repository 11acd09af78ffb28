"""Stack the tensors that a loop appends to a list."""

from collections.abc import Callable

import numpy as np

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.padded_results import pad_results
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.passes.trip_counts import (
    MOST_ROWS,
    FilledPartLayer,
    bound_of,
    buffer_rows,
    counted_loop,
    has_open_end,
    number_of_iterations,
)
from netloop.model.graph import ITensor, layer
from netloop.model.layers.loop import ILoop, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.sequence import HostOperation, ISequenceInsertLayer, ISequenceLayer
from netloop.model.nest import LoopStep
from netloop.values.enums import LayerType, TripLimit
from netloop.values.types import Array, SequenceType, Tensors, TensorType


@layer(LayerType.INTERNAL, "List Of Rows")
class RowListLayer(HostOperation):
    """The first rows of a tensor (input 0) as a sequence, as many as a number (input 1) says; all without a number."""

    MAX_INPUTS = 2

    def infer(self, rows: TensorType, number: TensorType | None = None) -> SequenceType:
        return SequenceType(rows.dtype, element=rows.shape[1:])

    def evaluate(self, rows: Array, number: Array | None = None) -> Tensors:
        return Tensors(rows if number is None else rows[: max(0, int(number.reshape(())))])


class GrowingLists(Pass):
    """Stack the tensors that iterations append to a sequence.

    A sequence has no fixed shape, so that its loop runs on the host, iteration by iteration. The stacked output
    has one, and the loop is compiled.
    """

    name = "growing_lists"
    level = 1
    # counters that are equal, and states that never change, are gone; a buffer may be part of one program
    after = ("redundant_carries", "growing_states")
    on_host = True
    rule = (
        "In loops with a COUNT: a sequence that is empty at first, to which each iteration appends a tensor of one "
        "shape, becomes a stacked output if it is read only after the loop. With a WHILE too, if the COUNT is a "
        f"compile-time constant of at most {MOST_ROWS:,}. Stacked outputs as long as the trip count of another loop "
        "are cut from a buffer. In pure functions all of these are padded arrays."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        steps = list(rewriter.loops())
        flags = [_stack(rewriter, step, state) for step in steps for state in step.recurrences]
        flags += [_round_up(rewriter, step, output) for step in steps for output in step.stacked]
        return any(flags) | (rewriter.is_pure and pad_results(rewriter))


def _round_up(rewriter: Rewriter, step: LoopStep, output: ILoopOutputLayer) -> bool:
    """Stack as many rows as another loop has made iterations in a buffer, of which these are cut."""
    count, length, rows = step.loop.limit(TripLimit.COUNT), output.tensor(1), output.outputs[0]
    counted = None if length.type.ints() is not None else counted_loop(length)
    if count is None or count.tensor(0) is not length or counted is None or rows.type.is_string:
        return False
    output.set_input(1, _rows(rewriter, counted, length))
    cut = FilledPartLayer(axis=output.axis % rows.type.rank, slope=1, start=0)
    number = rewriter.trip_counts.setdefault(counted, length)
    rewriter.take_over(rows, rewriter.network.add(cut, [rows, number]).outputs[0])
    rewriter.note(f"the rows {output.name!r} are cut from a buffer")
    return True


def _rows(rewriter: Rewriter, counted: ILoop, length: ITensor) -> ITensor:
    """The number of rows of a buffer for as many as a loop has made iterations."""
    if not rewriter.is_pure:
        return buffer_rows(rewriter, length)
    step = next(step for step in rewriter.loops() if step.loop is counted)
    return rewriter.make.constant(np.int64(bound_of(rewriter, step)))


def _stack(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer) -> bool:
    """Stack what a state grows by, if it is nothing but a list that grows."""
    count = step.loop.limit(TripLimit.COUNT)
    if count is None or has_open_end(step):
        return False
    return stack(rewriter, step, state, lambda: buffer_rows(rewriter, count.tensor(0)))


def stack(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer, length: Callable[[], ITensor]) -> bool:
    """Stack what a state grows by in a buffer of a length, if it is nothing but a list that grows."""
    appended = _appended(state)
    if appended is None or not _fits(rewriter, step, state, appended):
        return False
    rows = rewriter.make.stacked(step.loop, appended, length())
    number = number_of_iterations(rewriter, step)
    for end in [reader for reader, _ in state.outputs[0].uses if reader in step.outputs]:
        rewriter.take_over(end.outputs[0], rewriter.network.add(RowListLayer(), [rows, number]).outputs[0])
    rewriter.note(f"the list {state.outputs[0].name!r} is a stacked output")
    return True


def grow_tensors(rewriter: Rewriter) -> bool:
    """Let a tensor grow by a row where a sequence gets a tensor, in loops whose end only a run knows."""
    flags = [_grow(rewriter, step, state) for step in list(rewriter.loops()) for state in step.recurrences]
    return any(flags)


def _grow(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer) -> bool:
    appended, name = _appended(state), state.outputs[0].name
    if appended is None or not has_open_end(step) or not _fits(rewriter, step, state, appended):
        return False
    make, kind = rewriter.make, appended.type
    rows = step.loop.add_recurrence(make.constant(np.zeros((0, *kind.shape), kind.dtype)))
    rows.keeps_shape = False
    rows.set_input(1, make.concat([rows.outputs[0], make.expand_dims(appended, [0])], 0))
    whole = make.last(step.loop, rows)
    for end in [reader for reader, _ in state.outputs[0].uses if reader in step.outputs]:
        rewriter.take_over(end.outputs[0], rewriter.network.add(RowListLayer(), [whole]).outputs[0])
    rewriter.note(f"the list {name!r} is a tensor that grows")
    return True


def _fits(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer, appended: ITensor) -> bool:
    """Whether what is appended to a state can be stacked, and the state is nothing but a list that grows."""
    kind = appended.type
    # rows of one shape can be stacked, and a compiled loop has no strings
    is_row = kind.is_fixed and kind.is_tensor and not kind.is_string
    return is_row and rewriter.scopes.varies_in(appended, step.loop) and _is_only_read_after(rewriter, step, state)


def _appended(state: IRecurrenceLayer) -> ITensor | None:
    """The tensor that each iteration appends to a state; None if it does something else."""
    first, grown = state.tensor(0).producer, state.tensor(1).producer
    if not isinstance(grown, ISequenceInsertLayer):
        return None
    is_appended = operand(grown, 0) is state.outputs[0] and [*grown.inputs, None][2] is None
    is_empty = isinstance(first, ISequenceLayer) and not first.inputs
    return operand(grown, 1) if is_appended and is_empty else None


def _is_only_read_after(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer) -> bool:
    """Whether only the layer that appends to a state reads it, and outputs with its last value."""
    now, grown = state.outputs[0], state.tensor(1)
    readers = [reader for reader, _ in now.uses if reader is not grown.producer]
    # a body that reads its list needs it as it is after each iteration
    are_ends = all(
        isinstance(reader, ILoopOutputLayer) and reader in step.outputs and not reader.stacks for reader in readers
    )
    return are_ends and len(now.uses) == len(readers) + 1 and len(grown.uses) == 1 and rewriter.may_replace(grown)
