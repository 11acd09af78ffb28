"""Turn gathers and scatters that an induction variable indexes into iterators and stacked outputs."""

import numpy as np

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.counters import first_of_counter
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.gather import IGatherLayer, IScatterLayer
from netloop.model.layers.loop import ILoopOutputLayer, IRecurrenceLayer
from netloop.model.nest import LayerStep, LoopStep
from netloop.values.enums import GatherMode, ReduceOperation, ScatterMode, TripLimit


class InductionVariables(Pass):
    """Read by iterators what gathers read at a counter, and stack the rows that scatters write at a counter.

    Models of other formats have counters where TensorRT has iterators and stacked outputs. An iterator can be read for
    many iterations at once, and stacked rows are no state: XLA copied a state with a scatter in each iteration, and a
    running sum took 1.3 to 3 times as long as with a stacked output.
    """

    name = "induction_variables"
    level = 2
    # once a recurrence that never changes is gone, what a gather reads of it is loop-invariant
    after = ("redundant_carries",)
    rule = (
        "In loops without a WHILE whose COUNT is a compile-time constant: a gather indexed by an induction variable "
        "becomes an iterator, if no index passes the end of the axis. A state of which each iteration writes the row "
        "of its own number, and which is read only after the loop, becomes a stacked output, if the COUNT is its "
        "number of rows."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        is_changed = False
        for step in list(rewriter.loops()):
            count = step.loop.limit(TripLimit.COUNT)
            trips = None if count is None else count.tensor(0).type.ints()
            # with a WHILE, only a run knows how many rows there are
            if trips is None or step.loop.limit(TripLimit.WHILE) is not None:
                continue
            elements = max(0, trips[0]) + _reads_once_more(rewriter, step)
            layers = [inner.layer for inner in step.body.steps if isinstance(inner, LayerStep)]
            gathers = [layer for layer in layers if isinstance(layer, IGatherLayer)]
            flags = [_add_iterator(rewriter, step, gather, elements) for gather in gathers]
            flags += [_stack(rewriter, step, recurrence, trips[0]) for recurrence in step.recurrences]
            is_changed |= any(flags)
        return is_changed


def _reads_once_more(rewriter: Rewriter, step: LoopStep) -> bool:
    """Whether an output evaluates the body once more after the last iteration.

    LAST_VALUE of a recurrence does not; of any other tensor that varies it does.
    """
    last = [output.tensor(0) for output in step.outputs if not output.stacks]
    return any(
        rewriter.scopes.varies_in(tensor, step.loop) and tensor.producer not in step.recurrences for tensor in last
    )


def _add_iterator(rewriter: Rewriter, step: LoopStep, layer: IGatherLayer, elements: int) -> bool:
    """Replace a gather that reads consecutive elements, one an iteration."""
    data, indices, output = operand(layer, 0), operand(layer, 1), layer.outputs[0]
    first = first_of_counter(step, indices)
    is_plain = layer.mode is GatherMode.DEFAULT and layer.num_elementwise_dims == 0
    if first is None or not is_plain or rewriter.scopes.varies_in(data, step.loop) or not rewriter.may_replace(output):
        return False
    axis = layer.axis % data.type.rank
    # a gather counts negative indices from the end, an iterator does not
    if first < 0 or first + elements > data.type.shape[axis]:
        return False
    # an iterator begins at the first element, wherever the counter does
    read = rewriter.make.slice(data, [first], [elements], axes=[axis]) if first else data
    element = step.loop.add_iterator(read, axis).outputs[0]
    rewriter.replace(output, rewriter.make.reshape(element, output.type.shape))
    rewriter.note(f"{layer.name!r} is an iterator")
    return True


def _stack(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer, trips: int) -> bool:
    """Stack the rows of a state that is only written in the loop, if each iteration writes one of them."""
    rows, scatter = state.outputs[0], state.tensor(1).producer
    if not isinstance(scatter, IScatterLayer) or not _writes_own_row(step, scatter, rows):
        return False
    outputs = [layer for layer, _ in rows.uses if layer in step.outputs and isinstance(layer, ILoopOutputLayer)]
    is_only_written = len(rows.uses) == len(outputs) + 1 and len(scatter.outputs[0].uses) == 1
    update = operand(scatter, 2)
    fits = trips == rows.type.shape[0] > 0 and rewriter.scopes.varies_in(update, step.loop)
    if not (is_only_written and fits) or any(output.stacks or output.axis for output in outputs):
        return False
    # the initial rows never show, as each iteration replaces one of them
    row = rewriter.make.reshape(update, rows.type.shape[1:])
    for output in outputs:
        output.set_input(0, row)
        output.set_input(1, rewriter.make.constant(np.int32(trips)))
    rewriter.note(f"the rows of {state.name!r} are stacked")
    return True


def _writes_own_row(step: LoopStep, layer: IScatterLayer, rows: ITensor) -> bool:
    """Whether a layer writes the row that has the number of the iteration."""
    is_plain = layer.mode is ScatterMode.ND and layer.reduction is ReduceOperation.NONE
    return is_plain and operand(layer, 0) is rows and first_of_counter(step, operand(layer, 1)) == 0
