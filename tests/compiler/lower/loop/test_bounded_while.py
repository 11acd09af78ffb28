"""Loops with a bound run as scans, with the numbers of the while loop, and have derivatives in reverse mode."""

import jax
import numpy as np
import pytest

import netloop as trt
from tests.support.devices import assert_allclose
from tests.support.networks import constant

Op = trt.ElementWiseOperation


def newton(kind):
    """The square root of ``x`` by Newton's method, until the square is close or for a number of steps."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, ())
    loop = network.add_loop()
    loop.name = "newton"
    root = loop.add_recurrence(x)
    half = constant(network, 0.5, np.float32)

    def op(a, b, of):
        return network.add_elementwise(a, b, of).get_output(0)

    now = root.get_output(0)
    root.set_input(1, op(half, op(now, op(x, now, Op.DIV), Op.SUM), Op.PROD))
    if kind is trt.TripLimit.WHILE:
        above = op(op(op(now, now, Op.PROD), x, Op.SUB), constant(network, 1e-5, np.float32), Op.GREATER)
        loop.add_trip_limit(above, kind)
    else:
        loop.add_trip_limit(network.add_input("n", trt.int32, ()), kind)
    steps = loop.add_loop_output(now, trt.LoopOutput.CONCATENATE)
    steps.set_input(1, constant(network, 20, np.int32))
    for name, layer in {"root": loop.add_loop_output(now, trt.LoopOutput.LAST_VALUE), "steps": steps}.items():
        layer.get_output(0).name = name
        network.mark_output(layer.get_output(0))
    return network


def pure(kind, **bound):
    function, weights = trt.to_jax(newton(kind), bound=bound or None)
    more = {} if kind is trt.TripLimit.WHILE else {"n": np.int32(12)}
    return lambda x: function(weights, {"x": x, **more})


each_kind = pytest.mark.parametrize("kind", trt.TripLimit)


@each_kind
@pytest.mark.parametrize("x", [0.25, 2, 9, 1000])
def test_bounded_loop_has_the_numbers_of_the_loop(kind, x):
    wanted, made = pure(kind)(np.float32(x)), pure(kind, newton=20)(np.float32(x))

    for name in ("root", "steps"):
        np.testing.assert_array_equal(made[name], wanted[name])


@each_kind
def test_bounded_loop_has_derivatives_in_reverse_mode(kind):
    root = pure(kind, newton=20)

    # 1 / (2 * sqrt(9))
    assert_allclose(jax.grad(lambda x: root(x)["root"])(np.float32(9)), 1 / 6, rtol=1e-4)


def test_derivatives_of_both_modes_agree():
    forward = jax.jacfwd(lambda x: pure(trt.TripLimit.WHILE)(x)["steps"])(np.float32(7))
    reverse = jax.jacrev(lambda x: pure(trt.TripLimit.WHILE, newton=20)(x)["steps"])(np.float32(7))

    assert_allclose(reverse, forward, rtol=1e-5)


def test_bounded_loop_is_mapped_over_a_batch_and_compiled():
    gradient = jax.jit(jax.vmap(jax.grad(lambda x: pure(trt.TripLimit.WHILE, newton=20)(x)["root"])))

    assert_allclose(gradient(np.float32([4, 100])), [0.25, 0.05], rtol=1e-3)


def test_loop_that_exceeds_its_bound_gives_nan():
    made = pure(trt.TripLimit.WHILE, newton=3)(np.float32(1000))

    assert np.isnan(made["root"])
    assert np.isnan(made["steps"]).any()


def test_loop_of_exactly_the_bound_is_complete():
    wanted = pure(trt.TripLimit.COUNT)(np.float32(2))["root"]

    assert pure(trt.TripLimit.COUNT, newton=12)(np.float32(2))["root"] == wanted
    assert np.isnan(pure(trt.TripLimit.COUNT, newton=11)(np.float32(2))["root"])


def test_bound_of_no_iterations():
    assert np.isnan(pure(trt.TripLimit.WHILE, newton=0)(np.float32(2))["root"])
    # the root of 1 needs no iteration
    assert pure(trt.TripLimit.WHILE, newton=0)(np.float32(1))["root"] == 1
