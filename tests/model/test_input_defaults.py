"""Initializers that are inputs too: a call may give other values, as in onnxruntime."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

import netloop
from netloop import InputError
from netloop.compiler import xla_compilation
from netloop.model.input_defaults import input_defaults
from tests.support.onnx_models import model, session_gives
from tests.support.pass_checks import assert_close

DECAY = """
    decay (int64 n, bool true, float[K] x, float rate, float[K] shift) => (float[K] y)
    <float rate = {0.5}, float[3] shift = {1, 2, 3}>
    {
        y = Loop (n, true, x) <body = step (int64 i, bool on, float[K] now) => (bool still, float[K] after)
            { still = Identity(on)  less = Mul(now, rate)  after = Add(less, shift) }>
    }
"""
"""A loop whose body reads two defaults."""

GIVEN = {"n": np.int64(3), "true": np.bool_(True), "x": np.float32([1, -1, 2])}
RATE, SHIFT = {"rate": np.float32(2)}, {"shift": np.float32([0, 5, 7])}


@cache
def network():
    return netloop.onnx.load(model(DECAY))


@cache
def engine():
    return netloop.compile(network())


@pytest.mark.parametrize("replaced", [{}, RATE, SHIFT, RATE | SHIFT], ids=lambda inputs: "-".join(inputs) or "none")
def test_call_may_replace_defaults(replaced):
    given = GIVEN | replaced
    expected = session_gives(model(DECAY), given)
    function, weights = netloop.to_jax(network())

    for result in engine()(given), netloop.evaluate(network(), given), function(weights, given):
        assert_close(result, expected)


def test_next_call_has_the_defaults_again():
    assert_close(engine()(GIVEN | RATE), session_gives(model(DECAY), GIVEN | RATE))
    assert_close(engine()(GIVEN), session_gives(model(DECAY), GIVEN))


def test_defaults_are_saved_and_pickled(tmp_path):
    path = tmp_path / "decay.onnx"
    netloop.onnx.save(network(), path)
    given = GIVEN | RATE

    assert {"rate", "shift"} <= {proto.name for proto in onnx.load(path).graph.initializer}
    assert_close(session_gives(onnx.load(path), given), session_gives(model(DECAY), given))
    assert_close(netloop.evaluate(netloop.onnx.load(path), given), session_gives(model(DECAY), given))
    loaded = netloop.plan.loads(netloop.plan.dumps(network()))
    assert_close(netloop.evaluate(loaded, given), session_gives(model(DECAY), given))


def test_refitted_weights_are_in_calls_that_replace_another_default():
    refitted = netloop.compile(network())
    refitted(GIVEN | RATE)
    refitter = netloop.Refitter(refitted, netloop.Logger())
    assert refitter.set_named_weights("shift", SHIFT["shift"])
    assert refitter.refit_cuda_engine()

    assert_close(refitted(GIVEN | RATE), session_gives(model(DECAY), GIVEN | RATE | SHIFT))


def test_derivative_of_a_replaced_default():
    function, weights = netloop.to_jax(network(), bound={network().loops[0].name: 3})
    slope = jax.grad(lambda rate: function(weights, GIVEN | {"rate": rate})["y"].sum())(jnp.float32(2))

    # y = x r^3 + s (r^2 + r + 1), of which the sums of x and s are 2 and 6
    assert slope == 2 * 3 * 2**2 + 6 * (2 * 2 + 1)


def test_open_lengths_of_a_default():
    text = "g (float[N] x, float[M] w) => (float[K] y) <float[2] w = {1, 2}> { y = Concat<axis = 0> (x, w) }"
    compiled = netloop.compile(netloop.onnx.load(model(text)))
    x, w = np.float32([7]), np.float32([4, 5, 6])

    assert compiled({"x": x})["y"].tolist() == [7, 1, 2]
    assert compiled({"x": x, "w": w})["y"].tolist() == [7, 4, 5, 6]


def test_value_that_layers_were_chosen_for_is_a_constant():
    text = (
        "g (float[4] x, int64[1] k) => (float[k] y, float[4] z) <int64[1] k = {1}> { y, i = TopK(x, k) z = Mul(x, x) }"
    )
    loaded = netloop.onnx.load(model(text))

    assert not input_defaults(loaded)
    with pytest.raises(InputError, match="NL602"):
        netloop.evaluate(loaded, {"x": np.zeros(4, np.float32), "k": np.array([2])})
    chosen = netloop.onnx.load(model(text), as_inputs=["k"])
    assert netloop.evaluate(chosen, {"x": np.float32([1, 4, 2, 3]), "k": np.array([2])})["y"].tolist() == [4, 3]


def test_initializers_of_old_models_are_constants():
    old = model(DECAY, ir_version=3)

    assert not input_defaults(netloop.onnx.load(old))
    with pytest.raises(InputError, match=r"'rate' is a constant of the network, whose inputs are 'n', 'true', 'x'"):
        netloop.evaluate(netloop.onnx.load(old), GIVEN | RATE)


def test_misfits_are_reported():
    with pytest.raises(InputError, match="NL603: input 'rate' is float32"):
        engine()(GIVEN | {"rate": np.float64(2)})
    with pytest.raises(InputError, match="'shift' is a constant of the network"):
        netloop.SlotEngine(network(), slots=2).submit(GIVEN | SHIFT)


FOLDED = """
    g (float[4] x, int64[1] n) => (float[1] y, int64[1] z) <int64[1] n = {3}> { y = Gather (x, n)  z = Neg (n) }
"""
"""A default that one layer reads in each run, and from which another one became a constant."""


def test_default_that_is_part_of_another_constant_stays_a_constant():
    loaded = netloop.onnx.load(model(FOLDED))
    given = {"x": np.float32([5, 6, 7, 8]), "n": np.array([1])}

    assert not input_defaults(loaded)
    with pytest.raises(InputError, match="'n' is a constant of the network"):
        netloop.evaluate(loaded, given)
    chosen = netloop.onnx.load(model(FOLDED), as_inputs=["n"])
    assert_close(netloop.evaluate(chosen, given), session_gives(model(FOLDED), given))


def test_default_that_decides_a_shape_of_the_network_stays_a_constant():
    text = "g (float[4] x, int64[1] n) => (float[A] y, float[B] z) <int64[1] n = {3}> "
    text += "{ y = ConstantOfShape (n)  z = Gather (x, n) }"

    assert not input_defaults(netloop.onnx.load(model(text)))


def test_reports_are_those_of_the_latest_call_with_replaced_defaults_or_not():
    text = "g (float[N] x, float[M] w) => (float[K] y) <float[2] w = {1, 2}> { y = Concat<axis = 0> (x, w) }"
    compiled = netloop.compile(netloop.onnx.load(model(text)))
    own, replaced = {"x": np.float32([7])}, {"x": np.float32([7]), "w": np.float32([4, 5, 6])}
    inputs = []
    for given in (own, replaced, own, own, replaced, replaced, own):
        compiled(given)
        inputs.append([tensor.name for tensor in compiled.rewritten_network.inputs])

    assert inputs == [["x"], ["x", "w"], ["x"], ["x"], ["x", "w"], ["x", "w"], ["x"]]
    assert compiled.program_count == 2


def test_refit_compiles_nothing_again_for_calls_that_replace_a_default(monkeypatch):
    refitted = netloop.compile(network())
    for given in (GIVEN, GIVEN | RATE):
        refitted(given)
    refitter = netloop.Refitter(refitted, netloop.Logger())
    assert refitter.set_named_weights("shift", SHIFT["shift"])
    assert refitter.refit_cuda_engine()
    monkeypatch.setattr(xla_compilation, "compile_lowered", None)

    assert_close(refitted(GIVEN | RATE), session_gives(model(DECAY), GIVEN | RATE | SHIFT))
    assert_close(refitted(GIVEN), session_gives(model(DECAY), GIVEN | SHIFT))


def test_calls_that_replace_a_default_may_be_profiled_and_compiled_ahead():
    profiled = netloop.compile(network())
    profiled.executable.prepare(GIVEN | RATE)
    compiled = profiled.latest
    seconds = profiled.profile(GIVEN | RATE)

    assert profiled.latest is compiled
    assert {name: value for name, value in seconds.items() if name != "call"} == compiled.seconds
