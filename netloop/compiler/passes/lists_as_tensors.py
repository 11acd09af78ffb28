"""Make tensors with a row for each element of lists, for pure functions: JAX has no lists that grow in a loop."""

from collections.abc import Callable
from typing import Any

import numpy as np

from netloop.compiler.passes.buffer_layers import FilledPartLayer, RowListLayer
from netloop.compiler.passes.growing_lists import stack
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.passes.trip_counts import bound_of
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.conditional import IIfConditionalInputLayer, IIfConditionalOutputLayer
from netloop.model.layers.loop import ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.sequence import (
    ISequenceAtLayer,
    ISequenceConcatenationLayer,
    ISequenceInsertLayer,
    ISequenceLayer,
    ISequenceLengthLayer,
    ISequenceSplitLayer,
)
from netloop.model.nest import LoopStep
from netloop.values.diagnostics import NetworkError, reason
from netloop.values.types import UNKNOWN, SequenceType, Shape, normal_axis


def tensors_of_lists(rewriter: Rewriter) -> bool:
    """Replace the lists of a network by tensors with a row for each element.

    Raises:
        NetworkError: nothing says how long a list may become (NL674), its elements have several shapes, or a layer does
            something else with it than to append, read, count or join (NL675).
    """
    if not any(_is_list(tensor) for layer in rewriter.scopes.live for tensor in layer.outputs):
        return False
    for step in list(rewriter.loops()):
        for state in step.recurrences:
            _stack(rewriter, step, state)
    rewriter.read()
    Lists(rewriter).replace()
    rewriter.note("lists are tensors with a row for each element")
    return True


def _is_list(tensor: ITensor | None) -> bool:
    # a tensor of a branch that is not possible has no type
    return tensor is not None and isinstance(tensor.types.of(tensor), SequenceType)


def _stack(rewriter: Rewriter, step: LoopStep, state: IRecurrenceLayer) -> None:
    """Stack a list that is read only after its loop, which then carries no buffer through the iterations."""
    if _is_list(state.outputs[0]):
        stack(rewriter, step, state, lambda: rewriter.make.constant(np.int64(bound_of(rewriter, step))))


class Lists:
    """The rows of the lists of a network, which are made when they are asked for."""

    def __init__(self, rewriter: Rewriter) -> None:
        self.make = rewriter.make
        self._rewriter, self._rows = rewriter, dict[ITensor, ITensor]()

    def replace(self) -> None:
        """Let all that reads lists read rows.

        Raises:
            NetworkError: a list cannot be a tensor.
        """
        live = self._rewriter.scopes.live
        # the lengths of states are known when they have their next values
        for state in live:
            if isinstance(state, IRecurrenceLayer) and _is_list(state.outputs[0]):
                new = self.rows(state.outputs[0]).producer
                assert new is not None
                new.set_input(1, self.rows(state.tensor(1)))
        for reader in live:
            if any(map(_is_list, reader.inputs)) and not any(map(_is_list, reader.outputs)):
                self._read(reader)
        for output in list(self._rewriter.network.outputs):
            if _is_list(output):
                self._rewriter.replace_output(output, self.rows(output))

    def _read(self, reader: ILayer) -> None:
        read = READERS.get(type(reader))
        if read is None:
            raise _refused(reader)
        self._rewriter.take_over(reader.outputs[0], read(self, reader))

    def rows(self, tensor: ITensor) -> ITensor:
        """The tensor with a row for each element of a list."""
        waiting = [] if tensor in self._rows else [tensor]
        while waiting:
            layer = waiting[-1].producer
            assert layer is not None, "a pure function takes no lists"
            make = MAKERS.get(type(layer))
            if make is None:
                raise _refused(layer)
            # the next value of a state may depend on the state
            lists = [x for x in layer.inputs[:1] if x and _is_list(x) and not _is_empty(x) and x not in self._rows]
            if not lists:
                self._rows[waiting[-1]] = make(self, layer)
                waiting.pop()
            waiting += lists
        return self._rows[tensor]

    def begin(self, state: IRecurrenceLayer) -> ITensor:
        """The rows of a list that a loop carries."""
        kind, first = state.outputs[0].type, state.tensor(0)
        empty = np.zeros((0, *element_of(state)), kind.dtype)
        new = state.loop.add_recurrence(self.make.constant(empty) if _is_empty(first) else self._rows[first])
        new.keeps_shape = False
        return new.outputs[0]


def _is_empty(tensor: ITensor) -> bool:
    return isinstance(tensor.type, SequenceType) and tensor.type.is_empty


def element_of(layer: ILayer, position: int | None = None) -> Shape:
    """The shape of the elements of the list that a layer makes, or reads as one of its inputs.

    Raises:
        NetworkError: they have several.
    """
    kind = (layer.outputs[0] if position is None else operand(layer, position)).type
    element = kind.element if isinstance(kind, SequenceType) else None
    if element is None or UNKNOWN in element:
        raise _refused(layer, f"the list of {layer.name!r} is a {kind}, whose elements have no common shape")
    return element


def _refused(layer: ILayer, what: str = "") -> NetworkError:
    what = what or f"{layer.name!r} is {type(layer).__name__}, which takes or makes a list"
    fix = "append tensors of one shape to the list, and read, count or join them"
    if isinstance(layer, IIfConditionalInputLayer | IIfConditionalOutputLayer):
        what = f"{layer.name!r} makes a list in a branch of a conditional"
        fix = "append to the list outside of the conditional, in each iteration, and choose the tensor by the condition"
    return NetworkError(layer.finding("NL675", what, reason("NL675"), f"{fix}; netloop.compile runs it as it is"))


# ---------------------------------------------------------------------------- layers that make lists


def _listed(lists: Lists, layer: ILayer) -> ITensor:
    element_of(layer)
    return lists.make.stack([tensor for tensor in layer.inputs if tensor is not None], 0)


def _inserted(lists: Lists, layer: ILayer) -> ITensor:
    element_of(layer)
    x, tensor, position = [*layer.inputs, None][:3]
    assert x is not None
    assert tensor is not None
    row = lists.make.expand_dims(tensor, [0])
    if _is_empty(x):
        return row
    places = None if position is None else lists.make.ints(position)
    if position is not None and places != [0]:
        raise _refused(layer, f"{layer.name!r} inserts a tensor between others of a list")
    return lists.make.concat([lists.rows(x), row] if position is None else [row, lists.rows(x)], 0)


def _split(lists: Lists, layer: ILayer) -> ITensor:
    assert isinstance(layer, ISequenceSplitLayer)
    element_of(layer)
    if layer.inputs[1:] not in ([], [None]):
        raise _refused(layer, f"{layer.name!r} splits a tensor into parts of given lengths")
    x = operand(layer, 0)
    axis = normal_axis(layer.axis, x.type.rank)
    rows = lists.make.transpose(x, [axis, *(other for other in range(x.type.rank) if other != axis)])
    return lists.make.expand_dims(rows, [axis + 1]) if layer.keep_axis else rows


def _carried(lists: Lists, layer: ILayer) -> ITensor:
    assert isinstance(layer, IRecurrenceLayer)
    return lists.begin(layer)


def _left(lists: Lists, layer: ILayer) -> ITensor:
    assert isinstance(layer, ILoopOutputLayer)
    return layer.loop.add_loop_output(lists.rows(layer.tensor(0)), layer.kind).outputs[0]


def _stacked(lists: Lists, layer: ILayer) -> ITensor:
    rows, number = operand(layer, 0), operand(layer, 1)
    if number.type.ints() is not None:
        return rows
    cut = FilledPartLayer(axis=0, slope=1, start=0)
    return lists.make.network.add(cut, [rows, number]).outputs[0]


MAKERS: dict[type[ILayer], Callable[[Lists, Any], ITensor]] = {
    ISequenceLayer: _listed,
    ISequenceInsertLayer: _inserted,
    ISequenceSplitLayer: _split,
    IRecurrenceLayer: _carried,
    ILoopOutputLayer: _left,
    RowListLayer: _stacked,
}
"""The rows of a list, by the layer that makes it."""

# ---------------------------------------------------------------------------- layers that read lists


def _element(lists: Lists, layer: ILayer) -> ITensor:
    return lists.make.gather(lists.rows(operand(layer, 0)), lists.make.scalar(operand(layer, 1)), 0)


def _number(lists: Lists, layer: ILayer) -> ITensor:
    x = operand(layer, 0)
    return lists.make.tensor(np.int64(0) if _is_empty(x) else lists.make.length(lists.rows(x), 0))


def _joined(lists: Lists, layer: ILayer) -> ITensor:
    assert isinstance(layer, ISequenceConcatenationLayer)
    make, rank = lists.make, len(element_of(layer, 0))
    axis = normal_axis(layer.axis, rank + layer.new_axis)
    rows = make.transpose(lists.rows(operand(layer, 0)), [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)])
    if layer.new_axis:
        return rows
    lengths = [make.length(rows, place) for place in range(rank + 1)]
    return make.reshape(rows, [*lengths[:axis], make.product(lengths[axis : axis + 2]), *lengths[axis + 2 :]])


READERS: dict[type[ILayer], Callable[[Lists, Any], ITensor]] = {
    ISequenceAtLayer: _element,
    ISequenceLengthLayer: _number,
    ISequenceConcatenationLayer: _joined,
}
"""A tensor that follows from a list, by the layer that makes it."""
