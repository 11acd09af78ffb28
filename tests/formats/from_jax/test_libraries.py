"""Models, solvers and optimizers of libraries for JAX: nox -s from_jax installs them."""

import os
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from tests.support.jax_functions import check_same, leaves
from tests.support.onnx_runtime import export, run

os.environ["EQX_ON_ERROR"] = "nan"  # which Equinox reads when it is imported: no calls of Python that raise errors

LOOSE = {"rtol": 1e-3, "atol": 1e-4}
DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


def check(function, *examples, **given):
    """Check that the network of a function agrees with it: the reference, an engine, and onnxruntime."""
    network = check_same(function, *examples, **LOOSE, **given)
    arrays = dict(zip((tensor.name for tensor in network.inputs), leaves(examples), strict=True))
    found = run(export(network), arrays)
    for tensor, right in zip(network.outputs, leaves(jax.jit(function)(*examples)), strict=True):
        np.testing.assert_allclose(found[tensor.name], right, **LOOSE)
    return network


def loops(network):
    return [layer for layer in network.layers if layer.type is trt.LayerType.TRIP_LIMIT]


# ---------------------------------------------------------------------- Equinox


def test_lstm_of_equinox():
    eqx = pytest.importorskip("equinox")
    cell = eqx.nn.LSTMCell(3, 4, key=jax.random.key(0))

    def function(xs):
        def step(state, x):
            state = cell(x, state)
            return state, state[0]

        return jax.lax.scan(step, (jnp.zeros(4), jnp.zeros(4)), xs)[1]

    assert len(loops(check(function, normal(6, 3)))) == 1


def test_layers_of_equinox():
    eqx = pytest.importorskip("equinox")
    keys = jax.random.split(jax.random.key(0), 3)
    attention = eqx.nn.MultiheadAttention(2, 8, key=keys[0])
    norm, mlp = eqx.nn.LayerNorm(8), eqx.nn.MLP(8, 8, 16, 1, activation=jax.nn.gelu, key=keys[1])

    def function(x):
        x = jax.vmap(norm)(x + attention(x, x, x))
        return x + jax.vmap(mlp)(x)

    network = check(function, normal(5, 8))
    kinds = [layer.type for layer in network.layers]

    assert kinds.count(trt.LayerType.NORMALIZATION) == 1


def test_batch_normalization_of_equinox_has_its_state_in_and_out():
    eqx = pytest.importorskip("equinox")
    layer, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", mode="ema", momentum=0.9)

    def function(x, state):
        return jax.vmap(layer, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)

    check(function, normal(6, 3), state)


# ---------------------------------------------------------------------- Flax


def test_lstm_of_flax_linen():
    nn = pytest.importorskip("flax.linen")
    model = nn.RNN(nn.OptimizedLSTMCell(4))
    x = normal(2, 6, 3)
    params = model.init(jax.random.key(0), x)

    network = check(model.apply, params, x, names=["params", "x"])
    assert len(loops(network)) == 1


def test_lstm_of_flax_nnx():
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(0))
    graph, state = nnx.split(model)

    def function(state, x):
        return nnx.merge(graph, state)(x)

    check(function, state, normal(2, 6, 3))


def decoder():
    nn = pytest.importorskip("flax.linen")

    class Decoder(nn.Module):
        """A block of a transformer, with the cache of keys and values that Flax keeps."""

        @nn.compact
        def __call__(self, words):
            x = nn.Embed(11, 8)(words)
            attention = nn.MultiHeadDotProductAttention(num_heads=2, decode=True)
            x = x + attention(nn.LayerNorm()(x))
            x = x + nn.Dense(8)(nn.gelu(nn.Dense(16)(nn.LayerNorm()(x))))
            return nn.LayerNorm()(x) @ self.variables["params"]["Embed_0"]["embedding"].T

    return Decoder()


def test_generation_with_the_cache_of_flax():
    model = decoder()
    variables = model.init(jax.random.key(0), jnp.zeros((1, 7), np.int32))
    params, cache = variables["params"], jax.tree.map(jnp.zeros_like, variables["cache"])

    def generate(params, first):
        def body(state):
            cache, words, number = state
            given = jax.lax.dynamic_slice(words, (0, number), (1, 1))
            made, changed = model.apply({"params": params, "cache": cache}, given, mutable=["cache"])
            word = jnp.argmax(made[:, 0], -1).astype(np.int32)
            words = jax.lax.dynamic_update_slice(words, word[:, None], (0, number + 1))
            return changed["cache"], words, number + 1

        start = cache, jnp.zeros((1, 7), np.int32).at[0, 0].set(first), 0
        return jax.lax.while_loop(lambda state: state[2] < 6, body, start)[1]

    network = check(generate, params, np.int32(3))

    assert len(loops(network)) == 1
    assert {"params.Embed_0.embedding", "params.Dense_0.kernel"} <= {tensor.name for tensor in network.inputs}


def test_layer_normalization_of_flax_is_one_layer():
    nn = pytest.importorskip("flax.linen")
    model = nn.LayerNorm()
    x = normal(4, 8)
    params = model.init(jax.random.key(0), x)

    network = check(partial(model.apply, params), x, names=["x"])

    assert [layer.type.name for layer in network.layers if layer.type.name not in ("CONSTANT", "UNSQUEEZE")] == [
        "NORMALIZATION"
    ]


# ---------------------------------------------------------------------- diffrax


@pytest.mark.parametrize("is_adaptive", [False, True])
def test_ode_solved_by_diffrax(is_adaptive):
    diffrax = pytest.importorskip("diffrax")
    term = diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -y[0] - args * y[1]]))
    steps = diffrax.PIDController(rtol=1e-4, atol=1e-5) if is_adaptive else diffrax.ConstantStepSize()
    saved = diffrax.SaveAt(ts=jnp.array([0.5, 1.0, 2.0]))

    def function(y, friction):
        return diffrax.diffeqsolve(
            term, diffrax.Tsit5(), 0.0, 2.0, 0.1, y, friction, saveat=saved, stepsize_controller=steps, max_steps=64,
            throw=False,
        ).ys  # fmt: skip

    check(function, np.float32([1, 0]), np.float32(0.3))


# ---------------------------------------------------------------------- optax


def test_training_step_of_optax():
    optax = pytest.importorskip("optax")
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-2))
    params = {"w": normal(3, 4), "b": normal(4), "v": normal(4, 2)}

    def step(params, state, x, y):
        def loss(params):
            return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) @ params["v"] - y) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state, params)
        return {"params": optax.apply_updates(params, updates), "state": state, "loss": value}

    network = check(step, params, optimizer.init(params), normal(8, 3), normal(8, 2))

    assert {"params.w", "params.b", "params.v"} <= {tensor.name for tensor in network.inputs}


def test_trained_weights_go_round_and_round():
    optax = pytest.importorskip("optax")
    optimizer = optax.adam(5e-2)
    params = {"w": normal(3, 1)}
    x = normal(16, 3)
    y = x @ np.float32([[1], [2], [-1]])

    def step(params, state):
        value, gradients = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] - y) ** 2))(params)
        updates, state = optimizer.update(gradients, state)
        return value, optax.apply_updates(params, updates), state

    state = optimizer.init(params)
    network = trt.from_jax(step, params, state)
    engine = trt.compile(network)
    now = leaves((params, state))
    losses = []
    for _ in range(200):
        loss, *now = engine(dict(zip((tensor.name for tensor in network.inputs), now, strict=True))).values()
        losses.append(float(loss))

    assert losses[-1] < 0.01 * losses[0]
