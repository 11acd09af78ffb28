"""Derivatives and batches of pure functions where JAX's x64 setting is off, although indices and counters are int64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop
import netloop.onnx
from netloop.model.layers.index_types import narrow_indices
from tests.support.devices import assert_allclose
from tests.support.examples import mostly_slow
from tests.support.onnx_models import model

CASES = {
    "reflected edges": """g (float[6] x) => (float[12] y) {
      p = Constant <value_ints = [3, 3]> ()
      y = Pad <mode = "reflect"> (x, p)
    }""",
    "reversed sequences": """g (float[6] x) => (float[3, 2] y) {
      shape = Constant <value_ints = [3, 2]> ()
      rows = Reshape (x, shape)
      lengths = Constant <value_ints = [2, 3]> ()
      y = ReverseSequence <time_axis = 0, batch_axis = 1> (rows, lengths)
    }""",
    "gathered elements": """g (float[6] x) => (float[3] y) {
      i = Constant <value_ints = [4, 0, 4]> ()
      y = Gather (x, i)
    }""",
    "elements chosen by the data": """g (float[6] x) => (float[1] y) {
      i = ArgMax <axis = 0> (x)
      y = Gather (x, i)
    }""",
    "scattered elements": """g (float[6] x) => (float[6] y) {
      i = Constant <value = int64[2, 1] {1, 4}> ()
      two = Constant <value_ints = [0, 5]> ()
      updates = Gather (x, two)
      y = ScatterND (x, i, updates)
    }""",
    "frames of a padded signal": """g (float[6] x) => (float[5, 4] y) {
      p = Constant <value_ints = [3, 3]> ()
      long = Pad <mode = "reflect"> (x, p)
      frames = Constant <value = int64[5, 4] {0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9, 8, 9, 10, 11}> ()
      y = Gather (long, frames)
    }""",
    "loop that reads and stacks": """g (float[6] x) => (float[6] last, float[4] rows) {
      n = Constant <value_int = 4> ()
      go = Constant <value = bool {1}> ()
      last, rows = Loop (n, go, x) <body = b (int64 i, bool on, float[6] s) => (bool still, float[6] t, float r) {
        still = Identity (on)
        r = Gather (x, i)
        t = Mul (s, r)
      }>
    }""",
    "scan backwards": """g (float[6] x) => (float last, float[6] rows) {
      zero = Constant <value_float = 1.0> ()
      last, rows = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = b (float s, float v)
        => (float t, float r) { t = Mul (s, v) r = Add (t, v) }> (zero, x)
    }""",
}
X = np.float32([0.7, -1.1, 0.4, 1.3, -0.2, 0.9])
WAY = np.float32([0.3, 0.5, -0.8, 0.2, 0.6, -0.4])


def loss_of(text):
    function, weights = netloop.to_jax(netloop.onnx.load(model(text)))

    def loss(x, **inputs):
        outputs = function(weights, {"x": x, **inputs})
        return sum((array * jnp.cos(jnp.arange(array.size).reshape(array.shape))).sum() for array in outputs.values())

    return loss


@pytest.mark.parametrize("case", mostly_slow(3, CASES))
def test_gradient_with_narrow_types_is_the_finite_difference(case):
    loss, step = loss_of(CASES[case]), 1e-2
    with jax.enable_x64(False):
        difference = (float(loss(X + step * WAY)) - float(loss(X - step * WAY))) / (2 * step)
        made = {
            "grad": jax.grad(loss)(X),
            "jit of grad": jax.jit(jax.grad(loss))(X),
            "grad of jit": jax.grad(jax.jit(loss))(X),
            "vmap of grad": jax.jit(jax.vmap(jax.grad(loss)))(np.stack([WAY, X]))[1],
        }

    for name, gradient in made.items():
        assert gradient.dtype == np.float32
        assert_allclose(float(gradient @ WAY), difference, rtol=2e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_batch_with_narrow_types_is_the_single_calls(case):
    loss = loss_of(CASES[case])
    with jax.enable_x64(False):
        batch = jax.jit(jax.vmap(loss))(np.stack([X, WAY]))
        single = [float(loss(X)), float(loss(WAY))]

    assert_allclose(batch, single, rtol=1e-5)


def test_batch_of_loops_that_end_at_different_iterations_with_narrow_types():
    network = netloop.Builder(netloop.Logger()).create_network()
    x = network.add_input("x", netloop.float32, (6,))
    n = network.add_input("limit", netloop.float32, ())
    loop = network.add_loop()
    count = loop.add_recurrence(network.add_constant((), np.int64(0)).get_output(0))
    ops = netloop.ElementWiseOperation
    one = network.add_constant((), np.int64(1)).get_output(0)
    more = network.add_elementwise(count.get_output(0), one, ops.SUM).get_output(0)
    count.set_input(1, more)
    number = network.add_cast(count.get_output(0), netloop.float32).get_output(0)
    goes_on = network.add_elementwise(number, n, ops.LESS).get_output(0)
    loop.add_trip_limit(goes_on, netloop.TripLimit.WHILE)
    rows = loop.add_loop_output(loop.add_iterator(x).get_output(0), netloop.LoopOutput.CONCATENATE)
    rows.set_input(1, network.add_constant((), np.int64(6)).get_output(0))
    rows.get_output(0).name = "rows"
    network.mark_output(rows.get_output(0))
    function, weights = netloop.to_jax(network)

    def run(limit):
        return function(weights, {"x": X, "limit": limit})["rows"]

    with jax.enable_x64(False):
        found = jax.jit(jax.vmap(run))(np.float32([2, 5]))

    np.testing.assert_array_equal(found, [np.where(np.arange(6) < n, X, 0) for n in (2, 5)])


def test_indices_beyond_32_bits_are_clamped_before_they_are_narrowed():
    with jax.enable_x64(True):
        found = narrow_indices(jnp.int64([-(1 << 40), 2, 1 << 40]), 5)

    assert (found.dtype, found.tolist()) == (np.int32, [0, 2, 5])
    assert narrow_indices(np.int64([1 << 40]), 1 << 41).tolist() == [1 << 40]
