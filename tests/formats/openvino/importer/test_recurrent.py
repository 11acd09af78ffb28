"""Recurrent cells and sequences against OpenVINO."""

import numpy as np
import pytest

import netloop
from tests.support.openvino_models import document, load
from tests.support.openvino_peer import assert_agrees, case, fixed, openvino_outputs

B, S, X, H = 2, 4, 3, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STANDARD = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}
NAMES = {"RNN": ["relu"], "GRU": ["tanh", "relu"], "LSTM": ["tanh", "relu", "sigmoid"]}


def numbers(*shape, seed=0):
    return np.random.default_rng(sum(shape) + seed).normal(size=shape).astype(np.float32)


def states(op, *shape):
    return [numbers(*shape, H, seed=index) for index in range(2 if op == "LSTM" else 1)]


def weights(op, *directions, bias=None):
    rows = GATES[op] * H
    shapes = (*directions, rows, X), (*directions, rows, H), (*directions, bias or rows)
    return [fixed(numbers(*shape, seed=number)) for number, shape in enumerate(shapes)]


def cell(op, bias=None, **attributes):
    return case(f"{op}Cell", numbers(B, X), *states(op, B), *weights(op, bias=bias), hidden_size=H, **attributes)


def sequence(op, direction="forward", lengths=(S, S), bias=None, given_lengths=False, **attributes):
    count = 2 if direction == "bidirectional" else 1
    ends = np.int32(lengths)
    given = numbers(B, S, X), *states(op, B, count), ends if given_lengths else fixed(ends)
    attributes = {"hidden_size": H, "direction": direction, "activations": STANDARD[op], **attributes}
    return case(f"{op}Sequence", *given, *weights(op, count, bias=bias), **attributes)


CELLS = [
    *(cell(op) for op in GATES),
    *(cell(op, clip=0.3) for op in GATES),
    *(cell(op, activations=names) for op, names in NAMES.items()),
    cell("GRU", linear_before_reset=True, bias=4 * H),
    case(
        "LSTMCell", numbers(B, X), *states("LSTM", B), *weights("LSTM"), opset=1, hidden_size=H, weights_format="fico"
    ),
]
SEQUENCES = [
    *(sequence(op, direction) for op in GATES for direction in ("forward", "reverse", "bidirectional")),
    *(sequence(op, direction, (2, 4)) for op in GATES for direction in ("forward", "bidirectional")),
    *(sequence(op, "bidirectional", clip=0.3, activations=names) for op, names in NAMES.items()),
    *(sequence(op, "bidirectional", activations=STANDARD[op] * 2) for op in GATES),
    sequence("GRU", "bidirectional", (3, 1), linear_before_reset=True, bias=4 * H),
]


@pytest.mark.parametrize("case", CELLS + SEQUENCES, ids=str)
def test_layer_gives_what_openvino_gives(case):
    assert_agrees(case)


@pytest.mark.parametrize("op", GATES)
def test_call_may_tell_the_lengths(op):
    """OpenVINO 2026.4 ignores them also if shapes are open."""
    assert_agrees(sequence(op, "bidirectional", (2, 4), given_lengths=True, activations=NAMES[op]), open=True)


@pytest.mark.parametrize("op", GATES)
def test_engine_gives_what_openvino_gives(op):
    case = sequence(op, "bidirectional", (2, 4), given_lengths=True, activations=NAMES[op])
    found = netloop.compile(load(case.model()))(case.given)

    for made, wanted in zip(found.values(), openvino_outputs(case.model(), case.given), strict=True):
        np.testing.assert_allclose(made, wanted, 2e-5, 2e-5)


def test_unknown_activation_is_refused_with_the_nearest_name():
    xml, weights = document(cell("RNN", activations=["tanh"]).model())

    with pytest.raises(netloop.ModelError, match="no activation is called 'tahn'; did you mean 'tanh'"):
        netloop.openvino.load(xml.replace(b'activations="tanh"', b'activations="tahn"'), weights)


def test_weights_that_do_not_fit_the_state_are_refused():
    xml, weights = document(cell("GRU").model())
    xml = xml.replace(b'type="GRUCell" version="opset3"', b'type="RNNCell" version="opset1"')

    with pytest.raises(netloop.ModelError, match="R is float32"):
        netloop.openvino.load(xml, weights)


def test_directions_with_activations_of_their_own_are_refused():
    xml, weights = document(sequence("RNN", "bidirectional", activations=["tanh", "relu"]).model())

    with pytest.raises(netloop.ModelError, match="the activations of the directions differ: tanh, relu"):
        netloop.openvino.load(xml, weights)
