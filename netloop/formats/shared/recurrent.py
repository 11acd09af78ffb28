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
        return _scanned(name, cell, products, initial, lengths, reverse)
    rows, last = _scanned(name, cell, _reversed(cell, products, lengths), initial, lengths, reverse=False)
    return _reversed(cell, rows, lengths), last


def _reversed(cell: Cell, x: ITensor, lengths: ITensor) -> ITensor:
    """Reverse the steps of each sequence; those past its end stay. The time axis is the first."""
    layer = cell.make.network.add_reverse_sequence(x, lengths)
    layer.sequence_axis, layer.batch_axis = 0, 1
    return layer.outputs[0]


def _scanned(
    name: str, cell: Cell, products: ITensor, initial: Sequence[ITensor | None], lengths: ITensor | None, reverse: bool
) -> tuple[ITensor, list[ITensor]]:
    """The loop over the steps in one direction: the outputs of all steps, and the last states."""
    make = cell.make
    loop = make.network.add_loop()
    loop.name = name
    time = make.cast(make.tensor(make.length(products, 0)), np.int64)
    loop.add_trip_limit(time, TripLimit.COUNT)
    x = loop.add_iterator(products, 0, reverse).outputs[0]
    zeros = make.full([make.length(products, 1), cell.hidden], 0, products.type.dtype)
    recurrences = [loop.add_recurrence(zeros if state is None else state) for state in initial]
    old = [recurrence.outputs[0] for recurrence in recurrences]
    new = cell.step(x, old)
    output = new[0]
    if lengths is not None:  # sequences that have ended give zero, and keep their states
        number = make.counter(loop).outputs[0]
        going = make.expand_dims(make.less(number, make.cast(lengths, np.int64)), [1])
        output = make.where(going, output, np.zeros((), output.type.dtype))
        new = [make.where(going, now, before) for now, before in zip(new, old, strict=True)]
    for recurrence, tensor in zip(recurrences, new, strict=True):
        recurrence.set_input(1, tensor)
    rows = make.stacked(loop, output, time, reverse=reverse)
    return rows, [make.last(loop, recurrence) for recurrence in recurrences]
