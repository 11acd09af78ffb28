from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.export import symbolic_shape

import netloop as trt
from tests.support.examples import mostly_slow
from tests.support.jax_examples import FUNCTIONS, LSTM, lstm
from tests.support.jax_functions import check_same, leaves
from tests.support.onnx_runtime import export, run

X = np.arange(12, dtype=np.float32).reshape(3, 4)
each_function = pytest.mark.parametrize(
    ("function", "examples"), mostly_slow(9, FUNCTIONS), ids=[function.__name__ for function, _ in FUNCTIONS]
)


def close(got, want):
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def inputs_of(network, examples):
    return {tensor.name: array for tensor, array in zip(network.inputs, leaves(examples), strict=True)}


@each_function
def test_network_computes_what_the_function_does(function, examples):
    check_same(function, *examples, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@each_function
def test_function_of_the_network_is_the_function(function, examples):
    network = trt.from_jax(function, *examples)
    again, weights = trt.to_jax(network)

    close(again(weights, inputs_of(network, examples)).values(), leaves(jax.jit(function)(*examples)))


@each_function
def test_onnxruntime_computes_what_the_function_does(function, examples):
    network = trt.from_jax(function, *examples)

    close(run(export(network), inputs_of(network, examples)).values(), leaves(jax.jit(function)(*examples)))


# ---------------------------------------------------------------------- inputs and outputs


class State(NamedTuple):
    h: np.ndarray
    c: np.ndarray


def test_names_are_the_paths_of_leaves():
    def function(params, state, *rest):
        return {"state": State(state.h + rest[0], state.c), "all": [params["a"][0], rest[1]]}

    network = trt.from_jax(function, {"a": [X]}, State(X, X), X, X)

    assert [tensor.name for tensor in network.inputs] == ["params.a.0", "state.h", "state.c", "rest0", "rest1"]
    assert [tensor.name for tensor in network.outputs] == ["all.0", "all.1", "output.state.h", "output.state.c"]


def test_result_of_one_array_is_the_output():
    assert [tensor.name for tensor in trt.from_jax(jnp.sin, X).outputs] == ["output"]
    assert [tensor.name for tensor in trt.from_jax(lambda x: (x, x), X).outputs] == ["output.0", "output.1"]
    assert [tensor.name for tensor in trt.from_jax(lambda x: {"x": x, "y": x}, X).outputs] == ["output.x", "y"]


def test_names_may_be_given():
    network = trt.from_jax(partial(jnp.add), X, X, names=["left", "right"])

    assert [tensor.name for tensor in network.inputs] == ["left", "right"]


@pytest.mark.parametrize("names", [["x"], ["x", "x"], "xy", ["x", 3]])
def test_other_numbers_of_names_are_refused(names):
    with pytest.raises(TypeError, match="names are 2 different strings"):
        trt.from_jax(jnp.add, X, X, names=names)


def test_layers_have_the_names_of_scopes():
    network = trt.from_jax(lstm, *LSTM)

    assert "cell/logistic" in [layer.name for layer in network.layers]
    assert [layer.name for layer in network.layers if layer.name.startswith("scan")][:2] == ["scan", "scan_1"]


def test_layers_have_the_line_of_their_equation():
    network = trt.from_jax(lambda x: jnp.tanh(x), X)

    assert network.layers[0].source_location.file == __file__


def test_only_shapes_of_examples_count():
    network = trt.from_jax(jnp.sin, jax.ShapeDtypeStruct((3, 4), np.float32))

    np.testing.assert_allclose(trt.compile(network)({network.inputs[0].name: X})["output"], np.sin(X), rtol=1e-5)


def test_array_that_the_function_closes_over_is_a_constant():
    network = check_same(lambda x: x @ jnp.asarray(X.T), X)

    assert [type(layer).__name__ for layer in network.layers] == ["IConstantLayer", "IMatrixMultiplyLayer"]


def test_keys_are_passed_as_their_words():
    network = trt.from_jax(jax.random.bits, jax.random.key(0))

    assert (network.inputs[0].dtype, tuple(network.inputs[0].shape)) == (trt.uint32, (2,))


def test_output_that_is_an_input_or_constant():
    check_same(lambda x: (x, x, 3.0, jnp.zeros((2, 3)), np.float32([1, 2])), X)


def test_argument_that_the_function_does_not_read_stays_an_input():
    network = check_same(lambda x, y: x, X, X)

    assert [tensor.name for tensor in network.inputs] == ["x", "y"]


def test_function_is_required():
    with pytest.raises(TypeError, match="takes a function, not int"):
        trt.from_jax(3, X)


# ---------------------------------------------------------------------- weights


def test_weights_are_constants_with_names():
    network = trt.from_jax(lstm, *LSTM, weights="params")

    assert [tensor.name for tensor in network.inputs] == ["h", "c", "xs"]
    assert {"params.w", "params.u", "params.b"} <= {layer.name for layer in network.layers}


def test_weights_can_be_refitted():
    network = trt.from_jax(lambda w, x: x @ w, X.T, X, weights=["w"])
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(_plan(network))
    refitter = trt.Refitter(engine, trt.Logger())
    refitter.set_named_weights("w", np.ascontiguousarray(2 * X.T))

    assert refitter.refit_cuda_engine()
    np.testing.assert_allclose(engine({"x": X})["output"], X @ (2 * X.T))


def _plan(network):
    builder = trt.Builder(trt.Logger())
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    return builder.build_serialized_network(network, config)


def test_gradients_by_weights_are_those_of_the_function():
    network = trt.from_jax(lstm, *LSTM, weights="params")
    function, weights = trt.to_jax(network)
    given = dict(zip(("h", "c", "xs"), LSTM[1:], strict=True))

    found = jax.grad(lambda weights: function(weights, given)["ys"].sum())(weights)
    want = jax.grad(lambda params: lstm(params, *LSTM[1:])["ys"].sum())(LSTM[0])
    for name, gradient in want.items():
        np.testing.assert_allclose(found[f"params.{name}"], gradient, rtol=1e-4, atol=1e-5)


def test_weights_have_the_types_of_the_trace():
    network = trt.from_jax(lambda w, x: x @ w, X.T.astype(np.float64), X, weights="w")

    np.testing.assert_allclose(trt.compile(network)({"x": X})["output"], X @ X.T)


def test_weights_need_numbers():
    with pytest.raises(TypeError, match="the weight 'w' is a ShapeDtypeStruct"):
        trt.from_jax(lambda w: w, jax.ShapeDtypeStruct((2,), np.float32), weights="w")


def test_weights_are_arguments():
    with pytest.raises(TypeError, match="weights names 'w', and the arguments are 'x'"):
        trt.from_jax(lambda x: x, X, weights="w")


# ---------------------------------------------------------------------- symbolic lengths

B, T = symbolic_shape("b, t")


def check_symbolic(function, shapes, *arrays):
    examples = [jax.ShapeDtypeStruct(shape, array.dtype) for shape, array in zip(shapes, arrays, strict=True)]
    network = trt.from_jax(function, *examples)
    given = inputs_of(network, arrays)
    for results in (trt.compile(network)(given), trt.evaluate(network, given)):
        close(results.values(), leaves(jax.jit(function)(*arrays)))
    return network


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.nn.softmax(x @ X.T + 1) * jnp.ones(x.shape[0])[:, None],
        lambda x: (jnp.mean(x, 0), x.reshape(-1), x.reshape(x.shape[0] * 2, 2), jnp.concatenate([x, x]), x[:, ::2]),
        lambda x: (
            x[1:],
            x[0],
            x[-1],
            x[::-1],
            jnp.zeros((x.shape[0] + 1, 3)),
            jnp.arange(x.shape[0]),
            jnp.argmax(x, 0),
        ),
        lambda x: (jnp.cumsum(x, 0), jnp.sort(x, 0), jnp.pad(x, ((1, 2), (0, 0))), jnp.broadcast_to(x[:1], x.shape)),
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, s: s + x[i], jnp.zeros(4)),
        lambda x: (
            x.at[1].set(0.0),
            x[jnp.arange(x.shape[0])[::-1]],
            lax.dynamic_update_slice(x, x[:1], (x.shape[0], 0)),
        ),
    ],
)
def test_symbolic_length(function):
    network = check_symbolic(function, [(B, 4)], X)

    assert tuple(network.inputs[0].shape) == (-1, 4)


def test_scan_over_a_symbolic_length():
    check_symbolic(
        lambda xs, h: lax.scan(lambda h, x: (jnp.tanh(h + x), h), h, xs), [(T, B, 4), (B, 4)], np.stack([X, X + 1]), X
    )


def test_length_that_no_input_has():
    with pytest.raises(trt.ModelError, match="no input has an axis of the symbolic length b"):
        trt.from_jax(lambda x: x.reshape(2, -1), jax.ShapeDtypeStruct((B * 2,), np.float32))


# ---------------------------------------------------------------------- other element types


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint8, np.int16])
def test_wide_and_narrow_types(dtype):
    with jax.enable_x64(True):
        check_same(lambda x: (x * 2 + 1, x.sum(), x[1:] > 3), X.astype(dtype))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16, jnp.float8_e4m3fn])
def test_small_floats(dtype):
    check_same(lambda x: (x.astype(np.float32) * 2, x.T, x[1:]), X.astype(dtype))
