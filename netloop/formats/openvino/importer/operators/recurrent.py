"""Recurrent networks."""

from collections.abc import Callable, Sequence

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.recurrent import DIRECTIONS, scan_cell
from netloop.formats.shared.recurrent_cells import Cell, Function, GruCell, LstmCell, RnnCell, activation_function
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require

GATES = "iofc"
"""The order of the gates in ``LstmCell``."""
LSTM_GATES = {name: name for name in ("fico", "icof", "ifco", "ifoc", "iofc")}
"""The values of ``weights_format``."""


@operator("RNNCell", "opset1")
@operator("GRUCell", "opset3")
def one_state_cell(
    call: LayerCall, x: ITensor, h: ITensor, weights: ITensor, recurrent: ITensor, bias: Maybe = None
) -> list[ITensor]:
    """One step of an RNN, H = f(X W' + H R' + B), or of a GRU, its gates in the order z, r, h."""
    return _step(_cell(call, weights, recurrent, bias), x, [h])


@operator("LSTMCell", "opset4")
def lstm_cell(
    call: LayerCall, x: ITensor, h: ITensor, c: ITensor, weights: ITensor, recurrent: Maybe = None, bias: Maybe = None
) -> list[ITensor]:
    """One step of an LSTM, its gates in the order f, i, c, o.

    In the draft dialect the weights of input and state are one matrix, side by side.
    """
    if recurrent is None or recurrent.type.rank == 1:
        weights, recurrent, bias = *_parted(call, weights, h), recurrent
    return _step(_lstm(call, weights, recurrent, bias), x, [h, c])


@operator("LSTMCell", "opset1")
def lstm_cell_with_peepholes(
    call: LayerCall,
    x: ITensor,
    h: ITensor,
    c: ITensor,
    weights: ITensor,
    recurrent: Maybe = None,
    bias: Maybe = None,
    peepholes: Maybe = None,
) -> list[ITensor]:
    """One step of an LSTM without peepholes, its gates in the order of ``weights_format``."""
    if recurrent is None or recurrent.type.rank == 1:
        return lstm_cell(call, x, h, c, weights, recurrent)
    value = None if peepholes is None else call.make.known(peepholes)
    require(
        peepholes is None or (value is not None and not value.any()),
        "the cell has peepholes",
        "OpenVINO ignores them when it runs one",
    )
    cell = _lstm(call, weights, recurrent, bias, call.choice("weights_format", LSTM_GATES, "fico"))
    return _step(cell, x, [h, c])


@operator("RNNSequence", "opset5")
@operator("GRUSequence", "opset5")
def one_state_sequence(
    call: LayerCall, x: ITensor, h: ITensor, lengths: ITensor, weights: ITensor, recurrent: ITensor, bias: ITensor
) -> list[ITensor]:
    """RNN or GRU over a sequence."""
    return _sequence(call, x, [h], lengths, (weights, recurrent, bias))


@operator("LSTMSequence", "opset5")
def lstm_sequence(
    call: LayerCall,
    x: ITensor,
    h: ITensor,
    c: ITensor,
    lengths: ITensor,
    weights: ITensor,
    recurrent: ITensor,
    bias: ITensor,
) -> list[ITensor]:
    """LSTM over a sequence."""
    return _sequence(call, x, [h, c], lengths, (weights, recurrent, bias))


def _sequence(
    call: LayerCall, x: ITensor, initial: Sequence[ITensor], lengths: ITensor, weights: tuple[ITensor, ITensor, ITensor]
) -> list[ITensor]:
    """The outputs of all steps, [batch, directions, time, hidden], and the last states, [batch, directions, hidden]."""
    make, backwards = call.make, call.choice("direction", DIRECTIONS)
    for name, weight in zip(("X", "W", "R"), (x, *weights), strict=False):
        require(weight.type.rank == 3, f"{name} is {weight.type}, but must have 3 axes")
    count = weights[1].type.shape[0]
    require(count == len(backwards), f"R is {weights[1].type}, and there are {len(backwards)} directions")
    numbers, time = make.ints(lengths), make.length(x, 1)
    ends = None if numbers is not None and isinstance(time, int) and min(numbers, default=time) >= time else lengths
    by_time = make.transpose(x, (1, 0, 2))
    rows: list[ITensor] = []
    states: list[list[ITensor]] = []
    for number, reverse in enumerate(backwards):
        w, r, b = (make.gather(weight, make.constant(number)) for weight in weights)
        cell = _cell(call, w, r, b)
        own_states = [make.gather(state, make.constant(number), 1) for state in initial]
        outputs, last = scan_cell(call.layer.name, cell, by_time, own_states, ends, reverse)
        rows.append(make.transpose(outputs, (1, 0, 2)))
        states.append(last)
    return [make.stack(rows, 1), *(make.stack(entry, 1) for entry in zip(*states, strict=True))]


# ---------------------------------------------------------------------------- cells


def _step(cell: Cell, x: ITensor, states: Sequence[ITensor]) -> list[ITensor]:
    return cell.step(cell.products(x), states)


def _rnn(call: LayerCall, weights: ITensor, recurrent: ITensor, bias: Maybe) -> Cell:
    _check(RnnCell, recurrent)
    return RnnCell(call.make, _functions(call, RnnCell), weights, recurrent, bias)


def _gru(call: LayerCall, weights: ITensor, recurrent: ITensor, bias: Maybe) -> Cell:
    """A GRU cell; if the reset follows the product, the bias of the state's part of h comes last."""
    _check(GruCell, recurrent)
    make, flag = call.make, call.flag("linear_before_reset", False)
    own_bias = None
    if bias is not None and flag:
        size = recurrent.type.shape[1]
        zeros = make.constant(np.zeros(2 * size, bias.type.dtype))
        own_bias = make.concat([zeros, make.slice(bias, [3 * size], [size])], 0)
        bias = make.slice(bias, [0], [3 * size])
    return GruCell(make, _functions(call, GruCell), weights, recurrent, bias, own_bias, flag=flag)


def _lstm(call: LayerCall, weights: ITensor, recurrent: ITensor, bias: Maybe, order: str = "fico") -> Cell:
    _check(LstmCell, recurrent)
    make, size = call.make, recurrent.type.shape[1]

    def ordered(x: ITensor) -> ITensor:
        parts = [make.slice(x, [order.index(gate) * size], [size], axes=[0]) for gate in GATES]
        return x if order == GATES else make.concat(parts, 0)

    functions, flag = _functions(call, LstmCell), call.flag("input_forget", False)
    own_bias = None if bias is None else ordered(bias)
    return LstmCell(make, functions, ordered(weights), ordered(recurrent), own_bias, flag=flag)


CELLS: dict[str, Callable[[LayerCall, ITensor, ITensor, Maybe], Cell]] = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}


def _cell(call: LayerCall, weights: ITensor, recurrent: ITensor, bias: Maybe) -> Cell:
    """The cell that the type of the layer names, such as ``GRUCell`` and ``GRUSequence``."""
    kind = call.layer.type.lower().removesuffix("cell").removesuffix("sequence")
    return CELLS[kind](call, weights, recurrent, bias)


def _check(kind: type[Cell], recurrent: ITensor) -> None:
    rows, hidden = recurrent.type.shape if recurrent.type.rank == 2 else (-1, -1)
    require(
        hidden >= 0 and rows == kind.GATES * hidden,
        f"R is {recurrent.type}",
        f"the weights of the state must be [{kind.GATES} * hidden, hidden], of known dims",
    )


def _functions(call: LayerCall, kind: type[Cell]) -> list[Function]:
    """The activation functions, each with the alpha and beta of its position; the last of an LSTM is not clipped.

    OpenVINO's converter names those of both directions, and its plugin takes the first for both.
    """
    names = call.texts("activations", [name.lower() for name in kind.STANDARD]) or kind.STANDARD
    wanted, directions = len(kind.STANDARD), len(call.choice("direction", DIRECTIONS, "forward"))
    if len(names) == wanted * directions:
        same = list(names) == list(names[:wanted]) * directions
        require(same, f"the activations of the directions differ: {', '.join(names)}", "OpenVINO has one list for both")
        names = names[:wanted]
    require(len(names) == wanted, f"there are {len(names)} activations, but must be {wanted}")
    alphas, betas = (call.numbers(name, []) for name in ("activations_alpha", "activations_beta"))
    clip = call.number("clip", 0.0)
    clips = [clip or None] * 2 + [None]
    numbered = enumerate(zip(names, clips, strict=False))
    return [activation_function(call.make, name, iter(alphas[n:]), iter(betas[n:]), cut) for n, (name, cut) in numbered]


def _parted(call: LayerCall, joined: ITensor, h: ITensor) -> tuple[ITensor, ITensor]:
    """The weights of the input and of the state, from one matrix."""
    make, size = call.make, h.type.shape[-1]
    width = joined.type.shape[-1]
    require(0 <= size < width, f"the joined weights are {joined.type}, and the state {h.type}")
    return make.slice(joined, [0], [width - size], axes=[1]), make.slice(joined, [width - size], [size], axes=[1])
