"""RNN, GRU and LSTM against PyTorch, onnxruntime, and a numpy loop that follows the operators' pages."""

import jax
import numpy as np
import pytest
from onnx import TensorProto, helper

import netloop
from tests.support.onnx_models import session_gives
from tests.support.peers import needs_torch, torch

T, B, X, H = 5, 3, 4, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def weights_of(op, directions=1, seed=0):
    draw, rows = np.random.default_rng(seed), GATES[op] * H
    made = {
        "W": draw.normal(size=(directions, rows, X)),
        "R": draw.normal(size=(directions, rows, H)),
        "B": draw.normal(size=(directions, 2 * rows)),
        "lengths": np.array([5, 2, 4]),
        "h": draw.normal(size=(directions, B, H)),
        "c": draw.normal(size=(directions, B, H)),
        "P": draw.normal(size=(directions, 3 * H)),
    }
    return {name: array.astype(np.int32 if name == "lengths" else np.float32) for name, array in made.items()}


def model_of(op, arrays, used=("W", "R", "B"), version=22, dims=("T", "B", X), **attributes):
    order = ["x", "W", "R", "B", "lengths", "h", *(["c", "P"] if op == "LSTM" else [])]
    names = [layer if layer == "x" or layer in used else "" for layer in order]
    outputs = ["Y", "Yh", *(["Yc"] if op == "LSTM" else [])]
    node = helper.make_node(op, names, outputs, hidden_size=H, **attributes)
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
    results = [helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None) for tensor in outputs]
    constants = [helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(arrays[name].dtype), arrays[name].shape,
                                    arrays[name].reshape(-1)) for name in used]  # fmt: skip
    graph = helper.make_graph([node], "recurrent", given, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)


def run(model, x):
    engine = netloop.compile(netloop.onnx.load(model))
    return [np.asarray(value) for value in engine({"x": x}).values()]


def peer(model, x):
    return list(session_gives(model, {"x": x}).values())


@pytest.fixture
def x():
    return np.random.default_rng(9).normal(size=(T, B, X)).astype(np.float32)


@pytest.mark.parametrize(("op", "version"), [("RNN", 1), ("GRU", 1), ("GRU", 3), ("LSTM", 6)])
def test_first_versions_mean_what_later_ones_do(op, version, x):
    arrays = weights_of(op)
    old = model_of(op, arrays, version=version, output_sequence=1)

    for found, expected in zip(run(old, x), run(model_of(op, arrays), x), strict=True):
        assert np.array_equal(found, expected)


# ---------------------------------------------------------------------------- PyTorch


def reordered(array, op, axis=0):
    """PyTorch's gates (i f g o; r z n) in the order of ONNX (i o f c; z r h)."""
    order = {"RNN": [0], "GRU": [1, 0, 2], "LSTM": [0, 3, 1, 2]}[op]
    return np.concatenate([np.split(array, GATES[op], axis)[layer] for layer in order], axis)


def of_torch(layer, op, directions):
    parts = {name: value.detach().numpy() for name, value in layer.named_parameters()}
    ends = ["_l0", "_l0_reverse"][:directions]
    bias = [[reordered(parts[f"bias_{way}{end}"], op) for way in ("ih", "hh")] for end in ends]
    return {
        "W": np.stack([reordered(parts[f"weight_ih{end}"], op) for end in ends]),
        "R": np.stack([reordered(parts[f"weight_hh{end}"], op) for end in ends]),
        "B": np.stack([np.concatenate(bia) for bia in bias]),
    }


@needs_torch
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("op", GATES)
def test_layer_gives_what_pytorch_gives(op, directions, x):
    torch.manual_seed(1)
    layer = getattr(torch.nn, op)(X, H, bidirectional=directions == 2)
    with torch.no_grad():
        wanted, state = layer(torch.from_numpy(x))
    attributes = {"linear_before_reset": 1} if op == "GRU" else {}
    way = "bidirectional" if directions == 2 else "forward"

    model = model_of(op, of_torch(layer, op, directions), direction=way, **attributes)
    rows, *last = run(model, x)

    np.testing.assert_allclose(rows.transpose(0, 2, 1, 3).reshape(T, B, -1), wanted.numpy(), rtol=1e-5, atol=1e-6)
    states = state if op == "LSTM" else [state]
    for mine, theirs in zip(last, states, strict=True):
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------------------- onnxruntime


@pytest.mark.parametrize(
    ("op", "used", "attributes"),
    [
        ("RNN", ("W", "R", "B", "lengths", "h"), {"direction": "bidirectional"}),
        ("GRU", ("W", "R", "B", "lengths", "h"), {"direction": "bidirectional"}),
        ("GRU", ("W", "R", "B", "h"), {"direction": "reverse", "clip": 0.3}),
        ("GRU", ("W", "R"), {"linear_before_reset": 1, "activations": ["HardSigmoid", "Softsign"]}),
        ("LSTM", ("W", "R", "B", "lengths", "h", "c", "P"), {"direction": "bidirectional"}),
        ("LSTM", ("W", "R", "B", "P"), {"direction": "reverse"}),
        ("LSTM", ("W", "R"), {"activations": ["sigmoid", "Relu", "LeakyRelu"], "activation_alpha": [0.2]}),
        ("RNN", ("W", "R"), {"activations": ["ScaledTanh"], "activation_alpha": [0.7], "activation_beta": [1.5]}),
        ("RNN", ("W", "R"), {"activations": ["Affine"], "activation_alpha": [0.7], "activation_beta": [0.1]}),
        ("RNN", ("W", "R"), {"activations": ["ThresholdedRelu"], "activation_alpha": [0.1]}),
        ("RNN", ("W", "R"), {"activations": ["Elu"], "activation_alpha": [0.4]}),
        ("RNN", ("W", "R"), {"activations": ["Softplus"]}),
    ],
)
def test_layer_gives_what_onnxruntime_gives(op, used, attributes, x):
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    model = model_of(op, weights_of(op, directions), used, **attributes)

    for mine, theirs in zip(run(model, x), peer(model, x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------------------- cases that no oracle computes


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, given, flag=False, clip=np.inf):
    """The first direction of an LSTM, from the equations on the operator's page."""
    h, c, (size,) = given["h"][0], given["c"][0], given["R"].shape[2:]
    rows, bias = [], given["B"][0]
    peep = np.split(given["P"][0], 3)
    for row in x:
        gates = row @ given["W"][0].T + h @ given["R"][0].T + bias[: 4 * size] + bias[4 * size :]
        i, o, f, g = np.split(gates, 4, 1)
        i = sigmoid(np.clip(i + peep[0] * c, -clip, clip))
        f = 1 - i if flag else sigmoid(np.clip(f + peep[2] * c, -clip, clip))
        c = f * c + i * np.tanh(np.clip(g, -clip, clip))
        o = sigmoid(np.clip(o + peep[1] * c, -clip, clip))
        h = o * np.tanh(np.clip(c, -clip, clip))
        rows.append(h)
    return np.stack(rows), h, c


ALL = ("W", "R", "B", "h", "c", "P")


@pytest.mark.parametrize(("flag", "clip"), [(1, None), (0, 0.2), (1, 0.5)])
def test_lstm_with_coupled_gates_or_clipping(flag, clip, x):
    given = weights_of("LSTM")
    attributes = {"input_forget": flag} | ({} if clip is None else {"clip": clip})

    rows, h, c = run(model_of("LSTM", given, ALL, **attributes), x)

    wanted = lstm(x, given, bool(flag), np.inf if clip is None else clip)
    np.testing.assert_allclose(rows[:, 0], wanted[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(h[0], wanted[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(c[0], wanted[2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", GATES)
def test_layout_with_the_batch_first_only_turns_axes(op, x):
    given = weights_of(op, 2)
    turned = {**given, "h": given["h"].transpose(1, 0, 2), "c": given["c"].transpose(1, 0, 2)}
    used = ALL if op == "LSTM" else ("W", "R", "B", "h")

    plain = run(model_of(op, given, used, direction="bidirectional"), x)
    rows, *last = run(model_of(op, turned, used, direction="bidirectional", layout=1), x.transpose(1, 0, 2))

    np.testing.assert_array_equal(rows, plain[0].transpose(2, 0, 1, 3))
    for mine, theirs in zip(last, plain[1:], strict=True):
        np.testing.assert_array_equal(mine, theirs.transpose(1, 0, 2))


def test_each_direction_has_activations_of_its_own(x):
    given = weights_of("RNN", 2)
    both = model_of("RNN", given, direction="bidirectional", activations=["Relu", "LeakyRelu"], activation_alpha=[0.3])
    second = {name: array[1:] for name, array in given.items()}
    alone = model_of("RNN", second, direction="reverse", activations=["LeakyRelu"], activation_alpha=[0.3])

    np.testing.assert_allclose(run(both, x)[0][:, 1], run(alone, x)[0][:, 0], rtol=1e-6, atol=1e-7)


def test_sequence_of_no_steps_leaves_the_states_alone(x):
    given = weights_of("LSTM") | {"lengths": np.array([0, 5, 0], np.int32)}
    rows, h, c = run(model_of("LSTM", given, (*ALL, "lengths")), x)

    assert not rows[:, 0, [0, 2]].any()
    np.testing.assert_array_equal(h[0, [0, 2]], given["h"][0, [0, 2]])
    np.testing.assert_array_equal(c[0, [0, 2]], given["c"][0, [0, 2]])


def test_outputs_that_are_not_wanted_are_left_out(x):
    model = model_of("LSTM", weights_of("LSTM"))
    whole = run(model, x)
    model.graph.node[0].output[0] = ""
    del model.graph.output[0]

    for mine, theirs in zip(run(model, x), whole[1:], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_known_number_of_steps_is_a_scan():
    engine = netloop.compile(netloop.onnx.load(model_of("LSTM", weights_of("LSTM"), dims=(T, B, X))))

    engine({"x": np.zeros((T, B, X), np.float32)})

    assert [strategy.name for strategy in engine.loop_strategies.values()] == ["scan"]


@needs_torch
def test_gradient_is_that_of_pytorch(x):
    torch.manual_seed(2)
    layer = torch.nn.LSTM(X, H)
    point = torch.from_numpy(x).requires_grad_()
    layer(point)[0].sum().backward()
    network = netloop.onnx.load(model_of("LSTM", of_torch(layer, "LSTM", 1), dims=(T, B, X)))
    function, weights = netloop.to_jax(network)

    slope = jax.grad(lambda given: function(weights, {"x": given})["Y"].sum())(x)

    np.testing.assert_allclose(slope, point.grad.numpy(), rtol=1e-4, atol=1e-6)


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("attributes", "what"),
    [
        ({"direction": "sideways"}, "direction is 'sideways'"),
        ({"activations": ["Tanh", "Tanh", "Tanh"]}, "there are 3 activations, but must be 1"),
        ({"activations": ["Sigmoit"]}, "no activation is called 'Sigmoit'; did you mean 'sigmoid'?"),
        ({"direction": "bidirectional"}, "R is float32[1,2,2]"),
    ],
)
def test_attribute_that_does_not_fit_is_reported(attributes, what):
    with pytest.raises(netloop.ModelError) as caught:
        netloop.onnx.load(model_of("RNN", weights_of("RNN"), **attributes))

    assert caught.value.findings[0].what.startswith(what)
