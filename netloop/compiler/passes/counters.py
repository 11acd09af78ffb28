"""Counters of loops: integers that each iteration increases by one, and what keeps their values or adds to them."""

from netloop.compiler.passes.rewriter import operand
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import IRecurrenceLayer
from netloop.model.layers.pointwise import ICastLayer, IElementWiseLayer, IIdentityLayer
from netloop.model.layers.rearrange import Rearrangement
from netloop.model.nest import LoopStep
from netloop.values.enums import ElementWiseOperation

NUMBER_KEEPING = ICastLayer, IIdentityLayer, Rearrangement
"""Layers that keep the value of a single integer."""


def first_of_counter(step: LoopStep, indices: ITensor) -> int | None:
    """The value of a counter in the first iteration; None if ``indices`` is no counter of the loop."""
    if not indices.type.is_index or indices.type.volume != 1:
        return None
    producer = indices.producer
    if isinstance(producer, IRecurrenceLayer):
        return start_of_counter(step, producer)
    if isinstance(producer, NUMBER_KEEPING):
        return first_of_counter(step, operand(producer, 0))
    if isinstance(producer, IElementWiseLayer) and producer.op is ElementWiseOperation.SUM:
        for position in (0, 1):
            added = operand(producer, position).type.ints()
            before = first_of_counter(step, operand(producer, 1 - position)) if added else None
            if added and before is not None:
                return before + added[0]
    return None


def start_of_counter(step: LoopStep, layer: IRecurrenceLayer) -> int | None:
    """The initial value of a recurrence of the loop that counts by ones; None for any other."""
    type = layer.outputs[0].type
    if not (type.is_tensor and type.is_index and type.volume == 1):
        return None
    start, following = layer.tensor(0).type.ints(), layer.tensor(1).producer
    if layer not in step.recurrences or start is None or not isinstance(following, IElementWiseLayer):
        return None
    adds_one = following.op is ElementWiseOperation.SUM and any(
        operand(following, position) is layer.outputs[0] and operand(following, 1 - position).type.ints() == [1]
        for position in (0, 1)
    )
    return start[0] if adds_one else None
