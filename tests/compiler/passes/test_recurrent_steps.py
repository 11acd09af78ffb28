"""Steps of recurrent layers as kernels: numbers, what is part of them, and where they are not used."""

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from jax import lax

import netloop as trt
import netloop.onnx
from netloop.compiler.machine_code.processor import processor
from netloop.compiler.passes import recurrent_cells, recurrent_steps
from netloop.compiler.passes.recurrent_kernels import RecurrentKernelLayer
from netloop.model.nest import live_layers
from tests.support import onnx_runtime
from tests.support.devices import only_on_cpus
from tests.support.examples import many, mostly_slow
from tests.support.networks import constant, counted, mark, stacked
from tests.support.pass_checks import improved
from tests.support.recurrent_layers import recurrent_step

pytestmark = [
    only_on_cpus("the pass is not used elsewhere"),
    pytest.mark.skipif(processor() is None, reason="the extra is not installed, or the processor has no kernels"),
]

RANDOM = np.random.default_rng(0)
W, R, Q = ((RANDOM.standard_normal((32, n)) / 6).astype(np.float32) for n in (128, 128, 32))
H, C, X = (RANDOM.standard_normal((3, 32)).astype(np.float32) for _ in range(3))


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr(recurrent_steps, "LEAST_WEIGHTS", 1)


def cells(network, passes=tuple(trt.PASSES)):
    """The cells of the kernels of a network after its passes."""
    network = improved(network, passes).network
    return [layer.cell for layer in live_layers(network) if isinstance(layer, RecurrentKernelLayer)]


def lstm(xp, x, h, c, w=W, r=R):
    """An LSTM cell, in numpy or JAX."""
    i, f, g, o = xp.split(x @ w + h @ r, 4, -1)
    i, f, o = (1 / (1 + xp.exp(-gate)) if xp is np else jax.nn.sigmoid(gate) for gate in (i, f, o))
    c = f * c + i * xp.tanh(g)
    return o * xp.tanh(c), c


def assert_right(function, *arrays, kernels=1):
    """Compare an engine of a function of an array module and arrays with float64, and count its kernels."""
    network = trt.from_jax(lambda *arrays: function(jnp, *arrays), *arrays)
    engine = trt.compile(network)
    outputs = engine({tensor.name: array for tensor, array in zip(network.inputs, arrays, strict=True)})
    wanted = function(np, *(np.asarray(array, np.float64) for array in arrays))
    for got, array in zip(outputs.values(), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), array, rtol=2e-5, atol=2e-6)
    assert sum(str(note).startswith("recurrent_steps") for note in engine.notes) == kernels
    return engine


def test_input_of_a_part_of_the_units_makes_no_step_of_its_own(monkeypatch):
    """Its inputs have 16 numbers and 32: all joined gates are parts of 16 too, but not the whole step."""
    monkeypatch.setattr(recurrent_steps, "LEAST_GATES", 1)
    assert [cell.units for cell in cells(recurrent_step(41).network)] == [32]


@pytest.mark.parametrize("seed", mostly_slow(8, many(100)))
def test_random_steps_are_kernels_and_agree_with_numpy(seed, monkeypatch):
    monkeypatch.setattr(recurrent_steps, "LEAST_GATES", 1)
    step = recurrent_step(seed)
    engine = trt.compile(step.network)

    outputs = engine(step.inputs)

    assert len(cells(step.network)) == 1
    assert {*outputs} == {*step.wanted}
    for name, array in step.wanted.items():
        np.testing.assert_allclose(np.asarray(outputs[name]), array, rtol=2e-5, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("seed", mostly_slow(3, many(20)))
def test_weights_of_steps_are_bfloat16_where_products_may_round(seed, monkeypatch):
    monkeypatch.setattr(recurrent_cells, "MOST_CACHED", 0)
    step = recurrent_step(seed, rows=(1, 2, 5, 7), weight_type=jnp.bfloat16)
    with jax.default_matmul_precision("BF16_BF16_F32"):
        engine = trt.compile(step.network)

    outputs = engine(step.inputs)

    assert any("with bfloat16 weights" in str(note) for note in engine.notes)
    for name, array in step.wanted.items():
        np.testing.assert_allclose(np.asarray(outputs[name]), array, rtol=2e-5, atol=2e-6, err_msg=name)


def test_layers_of_one_size_are_one_kernel_with_a_phase_for_each():
    def stack(xp, x, h, c, g, d):
        h, c = lstm(xp, x, h, c)
        g, d = lstm(xp, h, g, d)
        return h, c, g, d

    assert_right(stack, X, H, C, 2 * H, 2 * C)
    (cell,) = cells(trt.from_jax(lambda *arrays: stack(jnp, *arrays), X, H, C, H, C))
    assert cell.number_of_phases == 2
    assert len(cell.stacked) == 4
    assert not cell.states


def test_layers_of_several_sizes_are_several_kernels():
    random = np.random.default_rng(1)
    w, r = (random.standard_normal((n, 64)).astype(np.float32) / 6 for n in (32, 16))

    def stack(xp, x, h, c, g, d):
        h, c = lstm(xp, x, h, c)
        return h, c, *lstm(xp, h, g, d, w, r)

    assert_right(stack, X, H, C, H[:, :16], C[:, :16], kernels=2)


def test_a_layer_between_that_no_kernel_has_divides_steps():
    def stack(xp, x, h, c, g, d):
        h, c = lstm(xp, x, h, c)
        return h, c, *lstm(xp, xp.exp(h), g, d)

    assert_right(stack, X, H, C, H / 2, C / 2, kernels=2)


def test_an_attention_that_the_state_asks_is_before_the_kernel():
    memory = np.random.default_rng(2).standard_normal((3, 5, 32)).astype(np.float32)

    def decoder(xp, h, c, memory):
        scores = ((h @ Q)[:, None] * memory).sum(-1)
        weights = xp.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        return lstm(xp, (weights[..., None] * memory).sum(1), h, c)

    assert_right(decoder, H, C, memory)


def test_what_only_outputs_of_a_loop_need_is_left_to_fission():
    def rows(x):
        def step(h, row):
            h = jnp.tanh(row + h @ Q)
            return h, (jnp.tanh(h @ Q), jnp.cos(row))

        return lax.scan(step, jnp.zeros((1, 32)), x)[1]

    x = RANDOM.standard_normal((6, 1, 32)).astype(np.float32)
    network = trt.from_jax(rows, x)
    engine = trt.compile(network)
    outputs = engine({network.inputs[0].name: x}).values()

    (cell,) = cells(network)
    assert len(cell.sources) == 1
    assert [layer for layer in engine.batched_layers.values() if layer]
    for got, wanted in zip(outputs, rows(x), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-5, atol=2e-6)


def test_a_projection_behind_a_step_stays_with_xla():
    def projected(xp, x, h, c):
        h, c = lstm(xp, x, h, c)
        return h @ Q, h, c

    assert_right(projected, X, H, C)
    (cell,) = cells(trt.from_jax(lambda *arrays: projected(jnp, *arrays), X, H, C))
    assert len(cell.sources) == 2


def generator(trips=6):
    """A loop that feeds the largest of its results back as an index, and its reference in float64."""
    table = np.random.default_rng(3).standard_normal((32, 32)).astype(np.float32)
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    recurrences = [loop.add_recurrence(constant(network, array)) for array in (np.zeros(1, np.int32), H[:1], C[:1])]
    token, h, c = (recurrence.get_output(0) for recurrence in recurrences)
    x = network.add_gather(constant(network, table), token, 0).get_output(0)

    def gate(start, kind):
        parts = [
            network.add_matrix_multiply(
                tensor,
                trt.MatrixOperation.NONE,
                constant(network, array[:, start : start + 32]),
                trt.MatrixOperation.NONE,
            ).get_output(0)
            for tensor, array in ((x, W), (h, R))
        ]
        total = network.add_elementwise(*parts, trt.ElementWiseOperation.SUM).get_output(0)
        return network.add_activation(total, kind).get_output(0)

    def prod(a, b):
        return network.add_elementwise(a, b, trt.ElementWiseOperation.PROD).get_output(0)

    i, f, g, o = (gate(32 * at, trt.ActivationType.TANH if at == 2 else trt.ActivationType.SIGMOID) for at in range(4))
    after = network.add_elementwise(prod(f, c), prod(i, g), trt.ElementWiseOperation.SUM).get_output(0)
    out = prod(o, network.add_activation(after, trt.ActivationType.TANH).get_output(0))
    best = network.add_topk(out, trt.TopKOperation.MAX, 1, 2).get_output(1)
    shuffle = network.add_shuffle(best)
    shuffle.reshape_dims = (1,)
    following = shuffle.get_output(0)
    for recurrence, tensor in zip(recurrences, (following, out, after), strict=True):
        recurrence.set_input(1, tensor)
    mark(network, tokens=stacked(loop, following, constant(network, trips, np.int32)))
    at, h, c, tokens = 0, H[:1].astype(np.float64), C[:1].astype(np.float64), []
    for _ in range(trips):
        h, c = lstm(np, table[[at]], h, c)
        at = int(h.argmax())
        tokens.append([at])
    return network, tokens


def test_a_loop_that_does_more_calls_a_kernel_in_each_iteration():
    network, tokens = generator()
    engine = trt.compile(network)

    np.testing.assert_array_equal(engine({})["tokens"], tokens)
    (cell,) = cells(network)
    # the table is multiplied in advance, so that no product of the input is left
    assert len(cell.sources) == 1
    assert len(set(np.ravel(tokens))) > 1


def test_products_that_no_state_decides_stay_before_the_loop():
    network, x = trt.INetworkDefinition(), np.random.default_rng(4).standard_normal((4, 1, 32)).astype(np.float32)
    loop = counted(network, 4)
    state = loop.add_recurrence(constant(network, H[:1]))
    row = loop.add_iterator(network.add_input("x", trt.float32, x.shape)).get_output(0)
    none = trt.MatrixOperation.NONE
    products = [
        network.add_matrix_multiply(tensor, none, constant(network, Q), none).get_output(0)
        for tensor in (row, state.get_output(0))
    ]
    total = network.add_elementwise(*products, trt.ElementWiseOperation.SUM).get_output(0)
    tanh = network.add_activation(total, trt.ActivationType.TANH).get_output(0)
    # a loop with a condition is no kernel itself
    loop.add_trip_limit(constant(network, np.bool_(True)), trt.TripLimit.WHILE)
    state.set_input(1, tanh)
    mark(network, y=stacked(loop, tanh, constant(network, 4, np.int32)))
    h, wanted = H[:1].astype(np.float64), []
    for now in x:
        h = np.tanh(now @ Q + h @ Q)
        wanted.append(h)

    np.testing.assert_allclose(trt.compile(network)({"x": x})["y"], wanted, rtol=1e-5, atol=1e-6)
    (cell,) = cells(network)
    assert len(cell.sources) == 1


@pytest.mark.parametrize("donates", [False, True])
def test_steps_of_a_stepper_agree_with_the_layer_in_onnxruntime(donates):
    random = np.random.default_rng(5)
    w, r = ((random.standard_normal((1, 128, 32)) / 6).astype(np.float32) for _ in range(2))
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[T,1,32] x, float[1,1,32] h, float[1,1,32] c)
        => (float[T,1,1,32] y, float[1,1,32] hn, float[1,1,32] cn)
        { y, hn, cn = LSTM <hidden_size = 32> (x, w, r, , , h, c) }"""
    model = onnx.parser.parse_model(text)
    arrays = {"w": w, "r": r}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    x = random.standard_normal((5, 1, 32)).astype(np.float32)
    zero = np.zeros((1, 1, 32), np.float32)

    def joined(weights):
        # ONNX's gates are i, o, f, g
        i, o, f, g = weights[0].reshape(4, 32, 32)
        return np.concatenate([i, f, g, o]).T.copy()

    wanted = onnx_runtime.run(model, {"x": x, "h": zero, "c": zero})
    network = trt.from_jax(lambda x, h, c: lstm(jnp, x, h, c, joined(w), joined(r)), *([x[0]] * 3))
    (x_name, *names), outputs = ([tensor.name for tensor in tensors] for tensors in (network.inputs, network.outputs))

    engine = trt.compile(network, donate=names if donates else ())
    step = trt.Stepper(engine, dict(zip(names, outputs, strict=True)))

    assert len(cells(network)) == 1
    for row, right in zip(x, wanted["y"], strict=True):
        step({x_name: row})
        np.testing.assert_allclose(step.states[names[0]], right[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(step.states[names[1]], wanted["cn"][0], rtol=1e-5, atol=1e-6)


def test_refit_packs_new_weights():
    network = trt.from_jax(lambda h: (jnp.tanh(h @ Q),), H)
    (matrix,) = [layer for layer in network if layer.outputs[0].type.shape == (32, 32) and not any(layer.inputs)]
    matrix.name = "Q"
    engine = trt.compile(network)
    refitter = trt.Refitter(engine, trt.Logger())
    name = network.inputs[0].name
    engine({name: H})

    assert refitter.set_named_weights("Q", (Q / 2).reshape(-1))
    assert refitter.refit_cuda_engine()

    (after,) = engine({name: H}).values()
    np.testing.assert_allclose(after, np.tanh(H.astype(np.float64) @ (Q / 2)), rtol=1e-5, atol=1e-6)
    assert len(cells(network)) == 1


def test_what_no_kernel_computes_stays_with_xla(monkeypatch):
    def kernels(function, *arrays):
        return len(cells(trt.from_jax(function, *arrays)))

    half = Q.astype(np.float16)
    assert kernels(lambda h: jnp.tanh(h @ Q), H) == 1
    assert kernels(lambda h: jnp.tanh(h @ Q), np.ones((8, 32), np.float32)) == 0
    assert kernels(lambda x, h, c: lstm(jnp, x, h, c), *[np.ones((8, 32), np.float32)] * 3) == 1
    assert kernels(lambda h: h @ Q, H) == 0
    assert kernels(lambda h: (h @ Q) * 2, H) == 0
    assert kernels(lambda h, q: jnp.tanh(h @ q), H, Q) == 0
    assert kernels(lambda h: jnp.tanh(jnp.exp(h) @ Q), H) == 0
    assert kernels(lambda h: jnp.tanh(h @ half), H.astype(np.float16)) == 0
    monkeypatch.setattr(recurrent_steps, "LEAST_WEIGHTS", 32 * 32 + 1)
    assert kernels(lambda h: jnp.tanh(h @ Q), H) == 0


def test_pure_functions_and_meshes_have_no_kernels():
    network = trt.from_jax(lambda h: (jnp.tanh(h @ Q),), H)
    name = network.inputs[0].name
    function, weights = trt.to_jax(network)

    assert "netloop.recurrent" not in jax.jit(function).lower(weights, {name: H}).as_text()
    gradient = jax.grad(lambda h: sum(array.sum() for array in function(weights, {name: h}).values()))(H)
    np.testing.assert_allclose(gradient, (1 - np.tanh(H @ Q) ** 2) @ Q.T, rtol=1e-4, atol=1e-5)
    engine = trt.shard(network, jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",)))
    (sharded,) = engine({name: H}).values()
    np.testing.assert_allclose(sharded, np.tanh(H @ Q), rtol=1e-5, atol=1e-6)
    assert not [note for note in engine.notes if str(note).startswith("recurrent_steps")]


def test_notes_name_the_results():
    network = trt.from_jax(lambda x, h, c: dict(zip(("h1", "c1"), lstm(jnp, x, h, c), strict=True)), X, H, C)

    (note,) = [note for note in trt.compile(network).notes if note.by == "recurrent_steps"]

    names = {tensor.name for tensor in network.outputs}
    assert {*note.what.removeprefix("the step to ").split(" is one call")[0].split(", ")} == {*map(repr, names)}
