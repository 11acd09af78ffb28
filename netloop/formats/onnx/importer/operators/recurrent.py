"""Recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.shared.importer import choose
from netloop.formats.shared.recurrent import DIRECTIONS, scan_cell
from netloop.formats.shared.recurrent_cells import Cell, Function, GruCell, LstmCell, RnnCell, activation_function
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require

MISSPELT = "foward"
"""The default direction of GRU-1, as the standard spells it."""

CELLS: dict[str, type[Cell]] = {"RNN": RnnCell, "GRU": GruCell, "LSTM": LstmCell}

TIME_FIRST = (1, 0, 2)


@dataclass(frozen=True)
class RecurrentInputs:
    """The inputs of a node, None where omitted, with the time axis before the batch axis.

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
    bias: Maybe
    lengths: Maybe
    initial: Sequence[Maybe]
    peepholes: Maybe

    def of_direction(self, make: FormulaBuilder, number: int) -> RecurrentInputs:
        """The weights and initial states of one direction."""
        tensors = [*self.initial, self.weights, self.recurrent, self.bias, self.peepholes]
        own: list[Any] = [None if tensor is None else make.gather(tensor, make.constant(number)) for tensor in tensors]
        *initial, weights, recurrent, bias, peepholes = own
        return RecurrentInputs(self.x, weights, recurrent, bias, self.lengths, initial, peepholes)


@operator("RNN", "GRU", "LSTM", since=(1, 7, 14))
@operator("GRU", since=3)
def recurrent_network(
    call: NodeCall,
    x: ITensor,
    weights: ITensor,
    recurrent: ITensor,
    bias: Maybe = None,
    lengths: Maybe = None,
    initial: Maybe = None,
    initial_cell: Maybe = None,
    peepholes: Maybe = None,
) -> list[ITensor]:
    """RNN, GRU or LSTM over a sequence."""
    kind = CELLS[call.node.op]
    states = [initial, initial_cell][: kind.STATES]
    return outputs_of_recurrent(call, kind, RecurrentInputs(x, weights, recurrent, bias, lengths, states, peepholes))


def outputs_of_recurrent(call: NodeCall, kind: type[Cell], inputs: RecurrentInputs) -> list[ITensor]:
    """The outputs of all directions."""
    make = call.make
    batch_first = call.flag("layout")
    inputs = _with_time_first(make, inputs) if batch_first else inputs
    direction = call.attribute("direction")
    direction = "forward" if direction == MISSPELT else direction
    backwards = choose("direction", direction, DIRECTIONS)
    _check(call, kind, inputs, direction)
    functions = _activations(call, kind.STANDARD, len(backwards))
    runs = [
        _run(call, kind, inputs.of_direction(make, number), chosen, reverse)
        for number, (chosen, reverse) in enumerate(zip(functions, backwards, strict=True))
    ]
    rows = make.stack([tensor for tensor, _ in runs], 1)
    states = [make.stack([last[state] for _, last in runs], 0) for state in range(kind.STATES)]
    if batch_first:
        rows, states = make.transpose(rows, (2, 0, 1, 3)), [make.transpose(state, TIME_FIRST) for state in states]
    return [rows, *states]


def _with_time_first(make: FormulaBuilder, inputs: RecurrentInputs) -> RecurrentInputs:
    initial = [None if state is None else make.transpose(state, TIME_FIRST) for state in inputs.initial]
    return replace(inputs, x=make.transpose(inputs.x, TIME_FIRST), initial=initial)


def _check(call: NodeCall, kind: type[Cell], inputs: RecurrentInputs, direction: str) -> None:
    """Report inputs whose ranks, or sizes of weights, do not fit."""
    for name, tensor in (("X", inputs.x), ("W", inputs.weights), ("R", inputs.recurrent)):
        require(tensor.type.rank == 3, f"{name} is {tensor.type}, but must have 3 axes")
    count, rows, hidden = inputs.recurrent.type.shape
    require(
        min(count, rows, hidden) >= 0,
        f"R is {inputs.recurrent.type}",
        "the number and size of the gates follow from its dims, which must be known",
    )
    require(
        count == len(DIRECTIONS[direction]) and rows == kind.GATES * hidden,
        f"R is {inputs.recurrent.type}",
        f"for the direction {direction!r} it must be [{len(DIRECTIONS[direction])}, {kind.GATES} * hidden, hidden]",
    )
    declared = call.attribute("hidden_size", hidden)
    require(declared == hidden, f"hidden_size is {declared}, and the weights are of size {hidden}")


def _activations(call: NodeCall, standard: Sequence[str], directions: int) -> list[list[Function]]:
    """The activation functions of each direction; those with an alpha or beta take the given ones in turn."""
    names = call.attribute("activations") if "activations" in call.node.attributes else [*standard] * directions
    wanted = len(standard) * directions
    require(len(names) == wanted, f"there are {len(names)} activations, but must be {wanted} of them")
    alphas, betas = (iter(call.attribute(name) or ()) for name in ("activation_alpha", "activation_beta"))
    functions = [activation_function(call.make, name, alphas, betas, call.attribute("clip")) for name in names]
    return [functions[start : start + len(standard)] for start in range(0, wanted, len(standard))]


def _run(
    call: NodeCall, kind: type[Cell], inputs: RecurrentInputs, functions: Sequence[Function], reverse: bool
) -> tuple[ITensor, list[ITensor]]:
    """The outputs of all steps, [time, batch, hidden], and the last states, of one direction."""
    make, size = call.make, kind.GATES * inputs.recurrent.type.shape[1]
    flag = bool(call.attribute("linear_before_reset" if kind is GruCell else "input_forget", 0))
    first, second = (None if inputs.bias is None else make.slice(inputs.bias, [start], [size]) for start in (0, size))
    cell = kind(make, functions, inputs.weights, inputs.recurrent, first, second, inputs.peepholes, flag)
    return scan_cell(call.node.name, cell, inputs.x, inputs.initial, inputs.lengths, reverse)
