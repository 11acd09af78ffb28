"""Stack what a loop appends to a list in each iteration."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph import ITensor, layer
from netloop.model.layers.loop import ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.rearrange import IConcatenationLayer
from netloop.model.layers.sequence import HostOperation, ISequenceInsertLayer, ISequenceLayer
from netloop.model.nest import LoopStep
from netloop.values.enums import LayerType, LoopOutput, TripLimit
from netloop.values.types import UNKNOWN, Array, SequenceType, Tensors, TensorType

LEAST_ROWS = 8
"""The least number of rows of a buffer."""
MOST_ROWS = 1 << 12
"""The most iterations for which a loop with a WHILE, which may end much earlier, gets a buffer."""


@layer(LayerType.INTERNAL, "Rows Of A Buffer")
class BufferRowsLayer(HostOperation):
    """The number of rows of a buffer, int64[]: at least input 0, and a power of two of at least the COUNT, input 1.

    A program is then compiled for each power of two, and not for each COUNT.
    """

    MAX_INPUTS = 2

    def infer(self, least: TensorType, count: TensorType | None = None) -> TensorType:
        return least.with_shape(())

    def type_inputs(self) -> Sequence[ITensor | None]:
        # the COUNT decides no shape, so that no program is compiled for its value
        return self.inputs[:1]

    def evaluate(self, least: Array, count: Array) -> Array:
        return np.array(max(int(least), 1 << max(0, int(count.reshape(())) - 1).bit_length()), least.dtype)


@layer(LayerType.INTERNAL, "List Of Rows")
class RowListLayer(HostOperation):
    """The first rows of a buffer (input 0) as a sequence, as many as a number (input 1) says."""

    REQUIRED_INPUTS = MAX_INPUTS = 2

    def infer(self, rows: TensorType, number: TensorType) -> SequenceType:
        return SequenceType(rows.dtype, element=rows.shape[1:])

    def evaluate(self, rows: Array, number: Array) -> Tensors:
        return Tensors(rows[: max(0, int(number.reshape(())))])


@layer(LayerType.INTERNAL, "Concatenated Rows")
class RowConcatenationLayer(HostOperation):
    """A tensor (input 0) followed by the first rows of a buffer (input 1), as many as a number (input 2) says.

    Attributes:
        axis: the axis of the tensor, and of each row, along which they are concatenated.
    """

    REQUIRED_INPUTS = MAX_INPUTS = 3

    axis: int = 0

    def infer(self, first: TensorType, rows: TensorType, number: TensorType) -> TensorType:
        shape = list(first.shape)
        shape[self.axis] = UNKNOWN
        return first.with_shape(tuple(shape))

    def evaluate(self, first: Array, rows: Array, number: Array) -> Array:
        return np.concatenate([first, *rows[: max(0, int(number.reshape(())))]], self.axis)


class GrowingLists(Pass):
    """Stack the tensors that iterations append to a sequence, or concatenate to a tensor that grows.

    A state that grows has no fixed shape, so that its loop runs on the host, iteration by iteration. The stacked output
    has one, and the loop is compiled.
    """

    name = "growing_lists"
    level = 1
    # counters that are equal, and states that never change, are gone
    after = ("redundant_carries",)
    on_host = True
    rule = (
        "In loops with a COUNT: a sequence that is empty at first, to which each iteration appends a tensor of one "
        "shape, or a tensor to which each iteration concatenates one, becomes a stacked output if it is read only "
        f"after the loop. With a WHILE too, if the COUNT is a compile-time constant of at most {MOST_ROWS:,}."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        flags = [_stack(rewriter, step, state) for step in list(rewriter.loops()) for state in step.recurrences]
        return any(flags)


def _stack(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer) -> bool:
    """Stack what a state grows by, if it is nothing but a list that grows."""
    appended, count = _appended(state), step.loop.limit(TripLimit.COUNT)
    if appended is None or count is None or not _is_only_read_after(rewriter, step, state):
        return False
    kind = appended.type
    # rows of one shape can be stacked, and a compiled loop has no strings
    if not (kind.is_fixed and kind.is_tensor) or kind.is_string or not rewriter.scopes.varies_in(appended, step.loop):
        return False
    number = _number_of_iterations(rewriter, step, count.tensor(0))
    if number is None:
        return False
    network = rewriter.network
    buffer = step.loop.add_loop_output(appended, LoopOutput.CONCATENATE)
    least = rewriter.make.constant(np.array(LEAST_ROWS, np.int64))
    buffer.set_input(1, network.add(BufferRowsLayer(), [least, count.tensor(0)]).outputs[0])
    rows, ends = buffer.outputs[0], [reader for reader, _ in state.outputs[0].uses if reader in step.outputs]
    for end in ends:
        rewriter.take_over(end.outputs[0], _whole(network, state, rows, number))
    rewriter.note(f"the list {state.outputs[0].name!r} is a stacked output")
    return True


def _whole(network: Any, state: IRecurrenceLayer, rows: ITensor, number: ITensor) -> ITensor:
    """The final value of the state, after the loop."""
    grown = state.tensor(1).producer
    if isinstance(grown, IConcatenationLayer):
        axis = grown.axis % state.outputs[0].type.rank
        return network.add(RowConcatenationLayer(axis=axis), [state.tensor(0), rows, number]).outputs[0]
    return network.add(RowListLayer(), [rows, number]).outputs[0]


def _appended(state: IRecurrenceLayer) -> ITensor | None:
    """The tensor that each iteration appends to a state; None if it does something else."""
    first, grown = state.tensor(0).producer, state.tensor(1).producer
    if isinstance(grown, ISequenceInsertLayer):
        is_appended = operand(grown, 0) is state.outputs[0] and [*grown.inputs, None][2] is None
        is_empty = isinstance(first, ISequenceLayer) and not first.inputs
        return operand(grown, 1) if is_appended and is_empty else None
    if isinstance(grown, IConcatenationLayer) and len(grown.inputs) == 2 and grown.inputs[0] is state.outputs[0]:
        return grown.inputs[1] if not state.outputs[0].type.is_fixed else None
    return None


def _is_only_read_after(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer) -> bool:
    """Whether only the layer that appends to a state reads it, and outputs with its last value."""
    now, grown = state.outputs[0], state.tensor(1)
    readers = [reader for reader, _ in now.uses if reader is not grown.producer]
    # a body that reads its list needs it as it is after each iteration
    are_ends = all(
        isinstance(reader, ILoopOutputLayer) and reader in step.outputs and not reader.stacks for reader in readers
    )
    return are_ends and len(now.uses) == len(readers) + 1 and len(grown.uses) == 1 and rewriter.may_replace(grown)


def _number_of_iterations(rewriter: Rewriter, step: LoopStep, count: ITensor) -> ITensor | None:
    """The trip count, or for a loop without a WHILE its COUNT, which may be negative; None if it may be far below."""
    if step.loop.limit(TripLimit.WHILE) is None:
        return count
    trips = count.type.ints()
    # the buffer has a row for each iteration of the COUNT, however few a WHILE lets be made
    if trips is None or trips[0] > MOST_ROWS:
        return None
    zero, one = (rewriter.make.constant(np.array(number, np.int64)) for number in (0, 1))
    counter = step.loop.add_recurrence(zero)
    counter.set_input(1, rewriter.make.add(counter.outputs[0], one))
    return step.loop.add_loop_output(counter.outputs[0], LoopOutput.LAST_VALUE).outputs[0]
