"""RNN, GRU and LSTM, as loops over the time axis.

The products of all inputs with the input weights are one product before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netloop.compose import Composer
from netloop.diagnostics import require
from netloop.enums import TripLimit
from netloop.graph.tensor import ITensor
from netloop.onnx.call import Call
from netloop.onnx.operators.gates import Cell, Function, GruCell, LstmCell, RnnCell, activations_of
from netloop.onnx.operators.table import operator

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each direction of an attribute ``direction``, whether it goes backwards."""
MISSPELT = "foward"
"""What the standard gives GRU-1 as its direction, if it has none."""

ONE_STATE: dict[str, type[Cell]] = {"RNN": RnnCell, "GRU": GruCell}
"""The cells that carry their output alone."""

TIME_FIRST = (1, 0, 2)


@dataclass(frozen=True)
class _Given:
    """The inputs of a node, those that are left out None, with the time axis before the batch axis.

    Attributes:
        x: [time, batch, features].
        weights: of the input; [directions, gates * hidden, features].
        recurrent: weights of the state; [directions, gates * hidden, hidden].
        bias: [directions, 2 * gates * hidden].
        lengths: of each sequence; [batch].
        initial: the states before the first step; each [directions, batch, hidden].
        peepholes: [directions, 3 * hidden].
    """

    x: ITensor
    weights: ITensor
    recurrent: ITensor
    bias: ITensor | None
    lengths: ITensor | None
    initial: Sequence[ITensor | None]
    peepholes: ITensor | None

    def of_direction(self, make: Composer, number: int) -> _Given:
        """What one direction has of its own."""

        def own(x: ITensor | None) -> ITensor | None:
            return None if x is None else make.gather(x, make.constant(number))

        initial = [own(each) for each in self.initial]
        weights, recurrent = own(self.weights), own(self.recurrent)
        assert weights is not None
        assert recurrent is not None
        return _Given(self.x, weights, recurrent, own(self.bias), self.lengths, initial, own(self.peepholes))


@operator("RNN", "GRU")
@operator("GRU", since=3)
@operator("RNN", "GRU", since=7)
@operator("RNN", "GRU", since=14)
def one_state(
    call: Call,
    x: ITensor,
    weights: ITensor,
    recurrent: ITensor,
    bias: ITensor | None = None,
    lengths: ITensor | None = None,
    initial: ITensor | None = None,
) -> list[ITensor | None]:
    """Steps of cells with one state."""
    return _layers(call, ONE_STATE[call.node.op], _Given(x, weights, recurrent, bias, lengths, [initial], None))


@operator("LSTM")
@operator("LSTM", since=7)
@operator("LSTM", since=14)
def lstm(
    call: Call,
    x: ITensor,
    weights: ITensor,
    recurrent: ITensor,
    bias: ITensor | None = None,
    lengths: ITensor | None = None,
    initial: ITensor | None = None,
    initial_cell: ITensor | None = None,
    peepholes: ITensor | None = None,
) -> list[ITensor | None]:
    """Steps of long short-term memories."""
    given = _Given(x, weights, recurrent, bias, lengths, [initial, initial_cell], peepholes)
    return _layers(call, LstmCell, given)


def _layers(call: Call, kind: type[Cell], given: _Given) -> list[ITensor | None]:
    """The outputs of all directions."""
    make = call.make
    batch_first = bool(call.attribute("layout", 0))
    given = _with_time_first(make, given) if batch_first else given
    _check(call, kind, given)
    backwards = DIRECTIONS[_direction(call)]
    functions = activations_of(call, kind.STANDARD, len(backwards))
    runs = [
        _run(call, kind, given.of_direction(make, number), chosen, reverse)
        for number, (chosen, reverse) in enumerate(zip(functions, backwards, strict=True))
    ]
    rows = make.stack([each for each, _ in runs], 1) if call.wants(0) else None
    states = [make.stack([last[state] for _, last in runs], 0) for state in range(kind.STATES) if call.wants(1 + state)]
    if batch_first:
        rows = None if rows is None else make.transpose(rows, (2, 0, 1, 3))
        states = [make.transpose(each, TIME_FIRST) for each in states]
    wanted = iter(states)
    return [rows, *(next(wanted) if call.wants(1 + state) else None for state in range(kind.STATES))]


def _direction(call: Call) -> str:
    given = call.attribute("direction")
    return "forward" if given == MISSPELT else given


def _with_time_first(make: Composer, given: _Given) -> _Given:
    initial = [None if each is None else make.transpose(each, TIME_FIRST) for each in given.initial]
    x = make.transpose(given.x, TIME_FIRST)
    return _Given(x, given.weights, given.recurrent, given.bias, given.lengths, initial, given.peepholes)


def _check(call: Call, kind: type[Cell], given: _Given) -> None:
    """Complain of inputs whose ranks, or sizes of weights, do not fit."""
    direction = _direction(call)
    require(direction in DIRECTIONS, f"direction is {direction!r}, and none of {', '.join(map(repr, DIRECTIONS))}")
    for name, each in (("X", given.x), ("W", given.weights), ("R", given.recurrent)):
        require(each.type.rank == 3, f"{name} is {each.type}, and has 3 axes")
    count, rows, hidden = given.recurrent.type.shape
    require(
        min(count, rows, hidden) >= 0,
        f"R is {given.recurrent.type}",
        "the sizes of its axes tell how many gates there are, and of what size",
    )
    require(
        count == len(DIRECTIONS[direction]) and rows == kind.GATES * hidden,
        f"R is {given.recurrent.type}",
        f"for the direction {direction!r} it is [{len(DIRECTIONS[direction])}, {kind.GATES} * hidden, hidden]",
    )
    declared = call.attribute("hidden_size", hidden)
    require(declared == hidden, f"hidden_size is {declared}, and the weights are of size {hidden}")


# ---------------------------------------------------------------------------- one direction


def _run(
    call: Call, kind: type[Cell], given: _Given, functions: Sequence[Function], reverse: bool
) -> tuple[ITensor, list[ITensor]]:
    """The outputs of all steps, [time, batch, hidden], and the last states, of one direction."""
    make, lengths = call.make, given.lengths
    hidden = given.recurrent.type.shape[1]
    flag = bool(call.attribute("linear_before_reset" if kind is GruCell else "input_forget", 0))
    own_bias = None if given.bias is None else make.slice(given.bias, [kind.GATES * hidden], [kind.GATES * hidden])
    cell = kind(make, functions, given.recurrent, own_bias, given.peepholes, hidden, flag)
    products = _products(make, cell, given)
    turned = reverse and lengths is not None
    if turned:
        products = _turned(make, products, lengths)
    rows, last = _Steps(call, cell, given, reverse and not turned).run(products)
    return (_turned(make, rows, lengths) if turned else rows), last


def _products(make: Composer, cell: Cell, given: _Given) -> ITensor:
    """The products of the inputs of all steps, with what bias can be added at once."""
    products = make.matmul(given.x, make.transpose(given.weights, (1, 0)))
    if given.bias is None:
        return products
    size = cell.GATES * cell.hidden
    products = make.add(products, make.slice(given.bias, [0], [size]))
    if cell.keeps_bias or cell.bias is None:
        return products
    return make.add(products, cell.bias)


def _turned(make: Composer, x: ITensor, lengths: ITensor | None) -> ITensor:
    """The steps of each sequence from its end to its start, those past its end where they are; time first."""
    assert lengths is not None
    layer = make.network.add_reverse_sequence(x, lengths)
    layer.sequence_axis, layer.batch_axis = 0, 1
    return layer.outputs[0]


class _Steps:
    """The loop over the steps of one direction."""

    def __init__(self, call: Call, cell: Cell, given: _Given, reverse: bool) -> None:
        self._make = call.make
        self._cell = cell
        self._given = given
        self._reverse = reverse
        self._loop = call.make.network.add_loop()
        self._loop.name = call.node.label

    def run(self, products: ITensor) -> tuple[ITensor, list[ITensor]]:
        """The outputs of all steps, and the last states."""
        make, loop = self._make, self._loop
        time = make.cast(make.tensor(make.length(products, 0)), np.int64)
        loop.add_trip_limit(time, TripLimit.COUNT)
        x = loop.add_iterator(products, 0, self._reverse).outputs[0]
        states = [loop.add_recurrence(each) for each in self._initial(products)]
        old = [each.outputs[0] for each in states]
        new = self._cell.step(x, old)
        output = new[0]
        if self._given.lengths is not None:
            output, new = self._within(old, new)
        for recurrence, each in zip(states, new, strict=True):
            recurrence.set_input(1, each)
        rows = make.stacked(loop, output, time, reverse=self._reverse)
        return rows, [make.last(loop, each) for each in states]

    def _initial(self, products: ITensor) -> list[ITensor]:
        make, dtype = self._make, products.type.dtype
        batch, size = make.length(products, 1), self._cell.hidden
        zeros = make.broadcast_to(make.constant(np.zeros((1, 1), dtype)), make.list_tensor([batch, size]))
        return [zeros if each is None else each for each in self._given.initial]

    def _within(self, old: Sequence[ITensor], new: Sequence[ITensor]) -> tuple[ITensor, list[ITensor]]:
        """The output and the states, zero and as they were for the sequences that have ended."""
        make, lengths = self._make, self._given.lengths
        assert lengths is not None
        trip = make.counter(self._loop).outputs[0]
        going = make.expand_dims(make.less(trip, make.cast(lengths, np.int64)), [1])
        output = make.where(going, new[0], np.zeros((), new[0].type.dtype))
        return output, [make.where(going, now, before) for now, before in zip(new, old, strict=True)]
