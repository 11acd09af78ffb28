"""Stack the tensors that a loop appends to a list."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeGuard

import numpy as np

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.buffer_layers import FilledPartLayer, JoinedRowsLayer, RowListLayer, joined_shape
from netloop.compiler.passes.list_beginnings import appends, begin_with, beginning_of, is_counted
from netloop.compiler.passes.padded_results import pad_results
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.passes.trip_counts import (
    MOST_ROWS,
    bound_of,
    buffer_rows,
    counted_loop,
    has_open_end,
    number_of_iterations,
)
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.conditional import IIfConditionalInputLayer, IIfConditionalOutputLayer
from netloop.model.layers.loop import ILoop, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.sequence import ISequenceConcatenationLayer, ISequenceInsertLayer
from netloop.model.nest import LoopStep
from netloop.values.enums import TripLimit
from netloop.values.types import SequenceType, normal_axis


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
        "In loops with a COUNT: a sequence to which each iteration appends a tensor of one shape, or those iterations "
        "that take one branch of a conditional, becomes a stacked output if it is read only after the loop. It may "
        "begin with tensors of this shape, or be the list of an earlier loop. With a WHILE too, if the COUNT is a "
        f"compile-time constant of at most {MOST_ROWS:,}. The tensors of a list are joined without the list. Stacked "
        "outputs as long as the trip count of another loop are cut from a buffer. In pure functions all of these are "
        "padded arrays, and so are the rows of a loop with both limits up to its trip count."
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
    numbers = count.tensor(0).type.ints()
    if numbers:
        return stack(rewriter, step, state, lambda: rewriter.make.constant(np.int64(max(numbers))))
    return stack(rewriter, step, state, lambda: buffer_rows(rewriter, count.tensor(0)))


def stack(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer, length: Callable[[], ITensor]) -> bool:
    """Stack what a state grows by in a buffer of a length, if it is nothing but a list that grows."""
    appended = _appended(state)
    if appended is None or not _fits(rewriter, step, state, appended):
        return False
    most, number = length(), number_of_iterations(rewriter, step)
    rows, *flags = (rewriter.make.stacked(step.loop, row, most) for row in appended.rows(rewriter))
    _read_rows(rewriter, step, state, begin_with(rewriter, appended.beginning, [rows, number, *flags]))
    rewriter.note(f"the list {state.outputs[0].name!r} is a stacked output")
    return True


def _read_rows(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer, rows: Sequence[ITensor]) -> None:
    """Have the readers of a list read rows, their number, and perhaps flags."""
    for end in [reader for reader, _ in state.outputs[0].uses if reader in step.outputs]:
        for reader in [reader for reader, _ in end.outputs[0].uses]:
            if isinstance(reader, ISequenceConcatenationLayer) and not rewriter.is_pure:
                rewriter.take_over(reader.outputs[0], _joined(rewriter, reader, rows))
        rewriter.take_over(end.outputs[0], rewriter.network.add(RowListLayer(), rows).outputs[0])


def _joined(rewriter: Rewriter, layer: ISequenceConcatenationLayer, inputs: Sequence[ITensor]) -> ITensor:
    """The first rows of a tensor, as a layer joins a sequence of them."""
    rows, number, *flags = inputs
    row, make, numbers = rows.type.shape[1:], rewriter.make, number.type.ints()
    axis = normal_axis(layer.axis, len(row) + layer.new_axis)
    if flags or not numbers or numbers[0] < 1:
        joined = JoinedRowsLayer(axis=axis, new_axis=layer.new_axis)
        return rewriter.network.add(joined, inputs).outputs[0]
    # the first axis goes in front of the axis that it becomes a part of
    moved = make.transpose(rows, [*range(1, axis + 1), 0, *range(axis + 1, len(row) + 1)])
    return make.reshape(moved, joined_shape(layer, row, numbers[0]))


def grow_tensors(rewriter: Rewriter) -> bool:
    """Let a tensor grow by a row where a sequence gets a tensor, in loops whose end only a run knows."""
    steps, is_changed = {step.loop: step for step in rewriter.loops()}, False
    for step in steps.values():
        for state in step.recurrences if has_open_end(step) else ():
            _stack_beginnings(rewriter, steps, state)
            is_changed |= _grow(rewriter, step, state)
    return is_changed


def _grow(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer) -> bool:
    appended, name = _appended(state), state.outputs[0].name
    if appended is None or not _fits(rewriter, step, state, appended):
        return False
    make, wholes = rewriter.make, list[ITensor]()
    for row in appended.rows(rewriter):
        kind = row.type
        rows = step.loop.add_recurrence(make.constant(np.zeros((0, *kind.shape), kind.dtype)))
        rows.keeps_shape = False
        rows.set_input(1, make.concat([rows.outputs[0], make.expand_dims(row, [0])], 0))
        wholes.append(make.last(step.loop, rows))
    grown = [wholes[0], number_of_iterations(rewriter, step), *wholes[1:]]
    _read_rows(rewriter, step, state, begin_with(rewriter, appended.beginning, grown))
    rewriter.note(f"the list {name!r} is a tensor that grows")
    return True


def _stack_beginnings(rewriter: Rewriter, steps: Mapping[ILoop, LoopStep], state: IRecurrenceLayer) -> None:
    """Stack the lists of earlier loops with which a list begins, the first one first."""
    earlier = [state]
    while isinstance(earlier[-1].outputs[0].type, SequenceType):
        end = earlier[-1].tensor(0).producer
        before = end.tensor(0).producer if isinstance(end, ILoopOutputLayer) and not end.stacks else None
        if not isinstance(before, IRecurrenceLayer):
            break
        earlier.append(before)
    for before in earlier[:0:-1]:
        _stack(rewriter, steps[before.loop], before)


class _Appended(NamedTuple):
    """A tensor that iterations append to a list: each of them, or those in which a branch is taken.

    Attributes:
        insertions: the layer that appends it, or those of both branches.
        beginning: the elements before the first iteration, and sequences of rows.
        choice: the output of a conditional, of which one branch appends a tensor, and the other one another or nothing.
        branch: the branch that appends it, the first one of two.
    """

    insertions: Sequence[ISequenceInsertLayer]
    beginning: list[ITensor]
    choice: IIfConditionalOutputLayer | None = None
    branch: int = 0

    @property
    def tensors(self) -> list[ITensor]:
        """The tensor, or those of both branches."""
        return [operand(insertion, 1) for insertion in self.insertions]

    @property
    def has_flags(self) -> bool:
        """Whether some iterations append nothing."""
        return self.choice is not None and len(self.insertions) == 1

    @property
    def layers(self) -> set[ILayer]:
        """The layers that make the list after an iteration of the list before it."""
        return {*self.insertions} if self.choice is None else {*self.insertions, self.choice}

    def rows(self, rewriter: Rewriter) -> list[ITensor]:
        """A row for each iteration, and if not all of them count, a flag of those that do."""
        if self.choice is None:
            return self.tensors
        conditional, make, kind = self.choice.conditional, rewriter.make, self.tensors[0].type
        condition = conditional.condition
        assert condition is not None
        if not self.has_flags:
            return [conditional.add_output(*self.tensors).outputs[0]]
        pair = self.tensors[0], make.constant(np.zeros(kind.shape, kind.dtype))
        row = conditional.add_output(*(pair if self.branch == 0 else pair[::-1])).outputs[0]
        return [row, condition if self.branch == 0 else make.logical_not(condition)]


def _fits(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer, appended: _Appended) -> bool:
    """Whether what is appended to a state can be stacked, and the state is nothing but a list that grows."""
    choice, (tensor, *_) = appended.choice, appended.tensors
    kind = tensor.type
    # rows of one shape can be stacked, and a compiled loop has no strings
    is_row = kind.is_fixed and kind.is_tensor and not kind.is_string
    # pure functions have no host, which chooses rows by flags, and cuts as many as only a run knows
    is_open = bool(appended.beginning) and not (_has_known_trips(step) and all(map(is_counted, appended.beginning)))
    is_row = is_row and not (rewriter.is_pure and (appended.has_flags or is_open))
    is_row = is_row and all((x.type.dtype, x.type.shape) == (kind.dtype, kind.shape) for x in appended.tensors)
    varies = tensor if choice is None else choice.conditional.condition
    is_other = varies is not None and rewriter.scopes.varies_in(varies, step.loop)
    return is_row and is_other and _is_only_read_after(rewriter, step, state, appended)


def _has_known_trips(step: LoopStep) -> bool:
    count = step.loop.limit(TripLimit.COUNT)
    return count is not None and count.tensor(0).type.ints() is not None and step.loop.limit(TripLimit.WHILE) is None


def _appended(state: IRecurrenceLayer) -> _Appended | None:
    """The tensor that iterations append to a state; None if they do something else."""
    now, grown = state.outputs[0], state.tensor(1).producer
    choice = grown if isinstance(grown, IIfConditionalOutputLayer) else None
    lists = [state.tensor(1)] if choice is None else [_outside(operand(choice, branch)) for branch in (0, 1)]
    longer = [branch for branch, tensor in enumerate(lists) if tensor is not now]
    insertions = [layer for layer in (lists[branch].producer for branch in longer) if _is_insertion(layer, now)]
    if not insertions or len(insertions) < len(longer):
        return None
    beginning = beginning_of(state.tensor(0), operand(insertions[0], 1).type)
    return None if beginning is None else _Appended(insertions, beginning, choice, longer[0])


def _is_insertion(layer: ILayer | None, sequence: ITensor) -> TypeGuard[ISequenceInsertLayer]:
    """Whether a layer appends a tensor to a sequence at its end."""
    return isinstance(layer, ISequenceInsertLayer) and appends(layer) and _outside(operand(layer, 0)) is sequence


def _outside(tensor: ITensor) -> ITensor:
    """The tensor that is passed into a conditional, or the tensor itself."""
    layer = tensor.producer
    return layer.tensor(0) if isinstance(layer, IIfConditionalInputLayer) else tensor


def _is_only_read_after(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer, appended: _Appended) -> bool:
    """Whether only layers that append to a state read it, and outputs with its last value."""
    inside, readers = appended.layers, list[ILayer]()
    stack = [state.outputs[0]]
    while stack:
        tensor = stack.pop()
        # a list between these layers is read by no other
        if tensor is not state.outputs[0] and not rewriter.may_replace(tensor):
            return False
        for reader, _ in tensor.uses:
            if reader in inside or isinstance(reader, IIfConditionalInputLayer):
                stack += reader.outputs if reader.outputs[0] is not tensor else ()
            elif reader is not state:
                readers.append(reader)
    # a body that reads its list needs it as it is after each iteration
    ends = {reader for reader, _ in state.outputs[0].uses}
    return all(
        isinstance(reader, ILoopOutputLayer) and reader in step.outputs and not reader.stacks and reader in ends
        for reader in readers
    )
