"""Recurrent layers: the loop of a cell over the time axis.

The inputs of all steps are multiplied by the input weights in one product before the loop.
"""

from collections.abc import Sequence

import numpy as np

from netloop.formats.shared.recurrent_cells import Cell
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import TripLimit

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""The values of an attribute ``direction``: whether each direction is reversed."""


def scan_cell(
    name: str,
    cell: Cell,
    x: ITensor,
    initial: Sequence[ITensor | None],
    lengths: ITensor | None = None,
    reverse: bool = False,
) -> tuple[ITensor, list[ITensor]]:
    """Apply a cell to each step of sequences.

    Past the end of a sequence the output is zero, and the states stay as they are.

    Args:
        name: the name of the loop.
        cell: the cell.
        x: the sequences, [time, batch, features].
        initial: the states before the first step, each [batch, hidden]; None for zeros.
        lengths: the lengths of the sequences, [batch]; None if all have full length.
        reverse: whether each sequence is read from its end to its start.

    Returns:
        The outputs of all steps, [time, batch, hidden], and the last states.
    """
    products = cell.products(x)
    if not reverse or lengths is None:
        return _TimeLoop(name, cell, lengths, reverse).run(products, initial)
    rows, last = _TimeLoop(name, cell, lengths, False).run(_reversed(cell, products, lengths), initial)
    return _reversed(cell, rows, lengths), last


def _reversed(cell: Cell, x: ITensor, lengths: ITensor) -> ITensor:
    """Reverse the steps of each sequence; those past its end stay. The time axis is the first."""
    layer = cell.make.network.add_reverse_sequence(x, lengths)
    layer.sequence_axis, layer.batch_axis = 0, 1
    return layer.outputs[0]


class _TimeLoop:
    """The loop over the steps in one direction."""

    def __init__(self, name: str, cell: Cell, lengths: ITensor | None, reverse: bool) -> None:
        self._make = cell.make
        self._cell = cell
        self._lengths = lengths
        self._reverse = reverse
        self._loop = cell.make.network.add_loop()
        self._loop.name = name

    def run(self, products: ITensor, initial: Sequence[ITensor | None]) -> tuple[ITensor, list[ITensor]]:
        """Add the loop; return the outputs of all steps and the last states."""
        make, loop = self._make, self._loop
        time = make.cast(make.tensor(make.length(products, 0)), np.int64)
        loop.add_trip_limit(time, TripLimit.COUNT)
        x = loop.add_iterator(products, 0, self._reverse).outputs[0]
        states = [loop.add_recurrence(self._zeros(products) if state is None else state) for state in initial]
        old = [state.outputs[0] for state in states]
        new = self._cell.step(x, old)
        output = new[0]
        if self._lengths is not None:
            output, new = self._masked(self._lengths, old, new)
        for recurrence, tensor in zip(states, new, strict=True):
            recurrence.set_input(1, tensor)
        rows = make.stacked(loop, output, time, reverse=self._reverse)
        return rows, [make.last(loop, state) for state in states]

    def _zeros(self, products: ITensor) -> ITensor:
        make, dtype = self._make, products.type.dtype
        shape = make.list_tensor([make.length(products, 1), self._cell.hidden])
        return make.broadcast_to(make.constant(np.zeros((1, 1), dtype)), shape)

    def _masked(
        self, lengths: ITensor, old: Sequence[ITensor], new: Sequence[ITensor]
    ) -> tuple[ITensor, list[ITensor]]:
        """The output and the states, where sequences that have ended give zero and keep their states."""
        make = self._make
        number = make.counter(self._loop).outputs[0]
        going = make.expand_dims(make.less(number, make.cast(lengths, np.int64)), [1])
        output = make.where(going, new[0], np.zeros((), new[0].type.dtype))
        return output, [make.where(going, now, before) for now, before in zip(new, old, strict=True)]
