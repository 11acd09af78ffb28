"""The recurrent layer of TensorRT 7 and 8, against its documented formulas in numpy."""

import numpy as np
import pytest

from netloop.tools.compat.versions import module_of
from tests.support.log import Log

trt = module_of(8)
EXPLICIT = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)
GATES = {
    "RELU": ["INPUT"],
    "TANH": ["INPUT"],
    "LSTM": ["INPUT", "FORGET", "CELL", "OUTPUT"],
    "GRU": ["UPDATE", "RESET", "HIDDEN"],
}
BATCH, STEPS, LENGTH, HIDDEN = 2, 3, 4, 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def stepped(op, weights, x, h, c):
    """The states after one step of one sequence."""
    w, r, wb, rb = ({gate: weights[gate, what] for gate in GATES[op]} for what in ("W", "R", "Wb", "Rb"))

    def gate(name, function):
        return function(w[name] @ x + r[name] @ h + wb[name] + rb[name])

    match op:
        case "RELU":
            return gate("INPUT", lambda x: np.maximum(x, 0)), c
        case "TANH":
            return gate("INPUT", np.tanh), c
        case "LSTM":
            c = gate("FORGET", sigmoid) * c + gate("INPUT", sigmoid) * gate("CELL", np.tanh)
            return gate("OUTPUT", sigmoid) * np.tanh(c), c
        case "GRU":
            z, reset = gate("UPDATE", sigmoid), gate("RESET", sigmoid)
            new = np.tanh(w["HIDDEN"] @ x + wb["HIDDEN"] + reset * (r["HIDDEN"] @ h + rb["HIDDEN"]))
            return (1 - z) * new + z * h, c


def expected(op, layers, x, h, c, lengths, directions):
    """The outputs of all steps and the last states, for weights of each layer and direction."""
    last = [np.zeros((BATCH, len(layers), HIDDEN)) for _ in range(2)]
    for layer in range(0, len(layers), directions):
        rows = np.zeros((BATCH, STEPS, directions * HIDDEN))
        for example, direction in np.ndindex(BATCH, directions):
            number = layer + direction
            state, cell = h[example, number], c[example, number]
            steps = range(lengths[example])
            for step in steps[::-1] if direction else steps:
                state, cell = stepped(op, layers[number], x[example, step], state, cell)
                rows[example, step, direction * HIDDEN : (direction + 1) * HIDDEN] = state
            last[0][example, number], last[1][example, number] = state, cell
        x = rows
    return [x, *last][: 3 if op == "LSTM" else 2]


def weights_of(rng, op, length):
    shapes = {"W": (HIDDEN, length), "R": (HIDDEN, HIDDEN), "Wb": (HIDDEN,), "Rb": (HIDDEN,)}
    return {
        (gate, what): (rng.standard_normal(shape) / 2).astype(np.float32)
        for gate in GATES[op]
        for what, shape in shapes.items()
    }


def set_weights(layer, number, weights):
    for (gate, what), array in weights.items():
        put = layer.set_bias_for_gate if what.endswith("b") else layer.set_weights_for_gate
        put(number, getattr(trt.RNNGateType, gate), what.startswith("W"), trt.Weights(array))


def network_of(log=None):
    builder = trt.Builder(log or Log())
    return builder, builder.create_network(EXPLICIT)


def built(builder, network, layer):
    for index in range(layer.num_outputs):
        layer.get_output(index).name = f"out{index}"
        network.mark_output(layer.get_output(index))
    return builder.build_engine(network, builder.create_builder_config())


@pytest.mark.parametrize(
    ("op", "count", "both", "skips", "limited", "started"),
    [
        ("RELU", 1, False, False, False, False),
        ("RELU", 2, True, True, False, True),
        ("TANH", 1, False, False, True, True),
        ("LSTM", 1, True, False, True, True),
        ("LSTM", 1, False, True, False, False),
        ("GRU", 2, False, False, False, True),
        ("GRU", 1, True, False, True, False),
    ],
)
def test_layer_computes_the_documented_formulas(op, count, both, skips, limited, started):
    rng, directions, length = np.random.default_rng(0), 1 + both, HIDDEN if skips else LENGTH
    lengths = [length] * directions + [directions * HIDDEN] * (count - 1) * directions
    layers = [weights_of(rng, op, length) for length in lengths]
    builder, network = network_of()
    arrays = {"x": rng.standard_normal((BATCH, STEPS, length)).astype(np.float32)}
    x = network.add_input("x", trt.float32, arrays["x"].shape)
    layer = network.add_rnn_v2(x, count, HIDDEN, STEPS, getattr(trt.RNNOperation, op))
    for number, weights in enumerate(layers):
        set_weights(layer, number, weights)
    layer.direction = trt.RNNDirection.BIDIRECTION if both else trt.RNNDirection.UNIDIRECTION
    if started:
        arrays |= with_states(rng, network, layer, len(layers))
    if limited:
        arrays["lengths"] = np.int32([2, 3])
        layer.seq_lengths = network.add_input("lengths", trt.int32, (BATCH,))
    if skips:
        skip_input(layer, layers[:directions])
    outputs = built(builder, network, layer)(arrays)

    zeros = np.zeros((BATCH, len(layers), HIDDEN))
    states = arrays.get("hidden_state", zeros), arrays.get("cell_state", zeros)
    wanted = expected(op, layers, arrays["x"], *states, arrays.get("lengths", [STEPS] * BATCH), directions)
    assert len(wanted) == layer.num_outputs
    for index, array in enumerate(wanted):
        np.testing.assert_allclose(outputs[f"out{index}"], array, atol=2e-6)


def with_states(rng, network, layer, count):
    """Give a layer its first states as inputs of the network; return their values."""
    names = ["hidden_state", "cell_state"][: layer.num_outputs - 1]
    arrays = {name: rng.standard_normal((BATCH, count, HIDDEN)).astype(np.float32) for name in names}
    for name, array in arrays.items():
        setattr(layer, name, network.add_input(name, trt.float32, array.shape))
    return arrays


def skip_input(layer, first):
    """Let a layer have no weights of its input, which are the identity in the formulas then."""
    layer.input_mode = trt.RNNInputMode.SKIP
    for weights in first:
        weights.update({(gate, "W"): np.eye(HIDDEN) for gate, what in weights if what == "W"})


def simple(network, shape=(BATCH, STEPS, LENGTH)):
    return network.add_rnn_v2(network.add_input("x", trt.float32, shape), 1, HIDDEN, STEPS, trt.RNNOperation.RELU)


def ones():
    lengths = {"W": LENGTH, "R": HIDDEN}
    matrices = {("INPUT", what): np.ones((HIDDEN, length), np.float32) for what, length in lengths.items()}
    return matrices | {("INPUT", what): np.zeros(HIDDEN, np.float32) for what in ("Wb", "Rb")}


def test_weights_may_be_set_after_an_output_was_asked_for():
    builder, network = network_of()
    layer = simple(network)
    set_weights(layer, 0, ones())
    network.mark_output(layer.get_output(1))
    for is_w, length in ((True, LENGTH), (False, HIDDEN)):
        layer.set_weights_for_gate(0, trt.RNNGateType.INPUT, is_w, np.full((HIDDEN, length), 2, np.float32))
    engine = builder.build_engine(network, builder.create_builder_config())

    x = np.ones((BATCH, STEPS, LENGTH), np.float32)
    np.testing.assert_array_equal(
        next(iter(engine({"x": x}).values())), np.full((BATCH, 1, HIDDEN), 8 + 6 * (8 + 6 * 8))
    )


def test_direction_may_be_set_after_an_output_was_asked_for():
    layer = simple(network_of()[1])
    for number in range(2):
        set_weights(layer, number, ones())
    output = layer.get_output(0)
    layer.direction = trt.RNNDirection.BIDIRECTION

    assert layer.get_output(0) is output
    assert output.shape == (BATCH, STEPS, 2 * HIDDEN)


def test_axes_before_the_steps_may_be_any_number():
    builder, network = network_of()
    layer = simple(network, (2, 1, 2, STEPS, LENGTH))
    set_weights(layer, 0, ones())
    engine = built(builder, network, layer)

    assert [engine.get_binding_shape(index) for index in (1, 2)] == [(2, 1, 2, STEPS, HIDDEN), (2, 1, 2, 1, HIDDEN)]


def test_layer_reports_its_settings():
    layer = simple(network_of()[1])
    set_weights(layer, 0, ones())

    assert [layer.num_layers, layer.hidden_size, layer.max_seq_length, layer.data_length] == [1, HIDDEN, STEPS, LENGTH]
    assert [layer.num_outputs, layer.get_output(2), layer.type] == [2, None, trt.LayerType.RNN_V2]
    assert layer.get_weights_for_gate(0, trt.RNNGateType.INPUT, True).size == HIDDEN * LENGTH
    assert layer.get_bias_for_gate(0, trt.RNNGateType.INPUT, False).size == HIDDEN
    with pytest.raises(AttributeError, match="'hidden_size' of IRNNv2Layer cannot be set"):
        layer.hidden_size = 4


@pytest.mark.parametrize("shape", [(), (4,), (BATCH, STEPS + 1, LENGTH), (BATCH, STEPS, -1)])
def test_input_without_its_steps_is_refused(shape):
    with pytest.raises(
        trt.NetworkError, match=r"NL401: the input of a recurrent layer is .*, but must be \[.., 3, length\]"
    ):
        simple(network_of()[1], shape)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (None, "the matrix of gate INPUT for the state in layer 0 of 'lstm' is missing"),
        (np.ones(5, np.float32), "the matrix of gate INPUT for the state in layer 0 of 'lstm' has 5 numbers, but must"),
    ],
)
def test_missing_and_wrong_weights_are_named(change, what):
    builder, network = network_of(log := Log())
    layer = simple(network)
    layer.name = "lstm"
    weights = ones()
    weights[("INPUT", "R")] = change
    set_weights(layer, 0, {key: array for key, array in weights.items() if array is not None})

    with pytest.raises(trt.NetworkError, match=f"NL677: {what}"):
        layer.get_output(0)
    assert builder.build_engine(network, builder.create_builder_config()) is None
    assert what in log.errors()[0]
