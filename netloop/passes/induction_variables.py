"""What is read by the number of the trip is read by an iterator, and what is written by it is a stacked output."""

from __future__ import annotations

import numpy as np

from netloop.enums import ElementWiseOperation, GatherMode, ReduceOperation, ScatterMode, TripLimit
from netloop.graph.tensor import ITensor
from netloop.layers.gather import IGatherLayer, IScatterLayer
from netloop.layers.loop import ILoopOutputLayer, IRecurrenceLayer
from netloop.layers.pointwise import ICastLayer, IElementWiseLayer, IIdentityLayer
from netloop.layers.rearrange import IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.nest import LayerStep, LoopStep
from netloop.passes.rewriter import Rewriter, operand

SAME_NUMBER = ICastLayer, IIdentityLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
"""Layers that keep a number what it is, if it is one number and stays an integer."""


def use_loop_boundaries(rewriter: Rewriter) -> None:
    """Read by an iterator what a gather reads by a counter, where the COUNT is known to end before the axis does; and
    stack what a scatter writes by a counter into the rows of a state, where the COUNT is known to be that of the rows.

    Models of other formats have a counter where TensorRT has iterators and stacked outputs. An iterator can be read
    ahead of the trips, and what is stacked need not be carried.
    """
    for step in list(rewriter.loops()):
        count = step.loop.limit(TripLimit.COUNT)
        known = None if count is None else count.tensor(0).type.ints()
        if known is not None and step.loop.limit(TripLimit.WHILE) is None:
            for each in list(step.body.steps):
                if isinstance(each, LayerStep) and isinstance(each.layer, IGatherLayer):
                    _replace(rewriter, step, each.layer, max(0, known[0]) + _asks_once_more(rewriter, step))
            for each in step.recurrences:
                _stack(rewriter, step, each, known[0])


def _asks_once_more(rewriter: Rewriter, step: LoopStep) -> bool:
    """Whether an output takes an element after the last trip of anything but a state."""
    last = [each.tensor(0) for each in step.outputs if not each.stacks]
    return any(step.loop in rewriter.scopes.of(each) and each.producer not in step.recurrences for each in last)


def _replace(rewriter: Rewriter, step: LoopStep, layer: IGatherLayer, elements: int) -> None:
    data, indices, output = operand(layer, 0), operand(layer, 1), layer.outputs[0]
    first = _first(step, indices)
    is_plain = layer.mode is GatherMode.DEFAULT and layer.num_elementwise_dims == 0
    if first is None or not is_plain or step.loop in rewriter.scopes.of(data) or not rewriter.may_replace(output):
        return
    axis = layer.axis % data.type.rank
    if first < 0 or first + elements > data.type.shape[axis]:
        return
    read = rewriter.make.slice(data, [first], [elements], axes=[axis]) if first else data
    element = step.loop.add_iterator(read, axis).outputs[0]
    rewriter.replace(output, rewriter.make.reshape(element, output.type.shape))
    rewriter.note(f"{layer.name!r} is an iterator")


def _stack(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer, trips: int) -> None:
    """Stack the rows of a state of which nothing is read but what is left of it, if each trip writes one of them."""
    rows, scatter = state.outputs[0], state.tensor(1).producer
    if not isinstance(scatter, IScatterLayer) or not _writes_rows(step, scatter, rows):
        return
    outputs = [each for each, _ in rows.uses if each in step.outputs and isinstance(each, ILoopOutputLayer)]
    only = len(rows.uses) == len(outputs) + 1 and len(scatter.outputs[0].uses) == 1
    update = operand(scatter, 2)
    is_fit = trips == rows.type.shape[0] > 0 and step.loop in rewriter.scopes.of(update)
    if only and is_fit and not any(each.stacks or each.axis for each in outputs):
        row = rewriter.make.reshape(update, rows.type.shape[1:])
        for each in outputs:
            each.set_input(0, row)
            each.set_input(1, rewriter.make.constant(np.int32(trips)))
        rewriter.note(f"the rows of {state.name!r} are stacked")


def _writes_rows(step: LoopStep, layer: IScatterLayer, rows: ITensor) -> bool:
    """Whether a layer writes the row of the number of the trip."""
    is_plain = layer.mode is ScatterMode.ND and layer.reduction is ReduceOperation.NONE
    return is_plain and operand(layer, 0) is rows and _first(step, operand(layer, 1)) == 0


def _first(step: LoopStep, indices: ITensor) -> int | None:
    """The first of the numbers that some indices are, trip by trip, if they are that and one more each trip."""
    if not indices.type.is_index or indices.type.volume != 1:
        return None
    producer = indices.producer
    if isinstance(producer, IRecurrenceLayer):
        return _start(step, producer)
    if isinstance(producer, SAME_NUMBER):
        return _first(step, operand(producer, 0))
    if isinstance(producer, IElementWiseLayer) and producer.op is ElementWiseOperation.SUM:
        for position in (0, 1):
            added = operand(producer, position).type.ints()
            before = _first(step, operand(producer, 1 - position)) if added else None
            if added and before is not None:
                return before + added[0]
    return None


def _start(step: LoopStep, layer: IRecurrenceLayer) -> int | None:
    """What a counter begins with; None if the recurrence is none, or not of this loop."""
    start, following = layer.tensor(0).type.ints(), layer.tensor(1).producer
    if layer not in step.recurrences or start is None or not isinstance(following, IElementWiseLayer):
        return None
    adds = following.op is ElementWiseOperation.SUM
    one = any(
        operand(following, position) is layer.outputs[0] and operand(following, 1 - position).type.ints() == [1]
        for position in (0, 1)
    )
    return start[0] if adds and one else None
