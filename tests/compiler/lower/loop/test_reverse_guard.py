"""Reverse mode through a loop without a bound raises an error that names the loop."""

import jax
import numpy as np
import pytest

import netloop as trt
from tests.support.networks import combine, constant, counted, mark


def doubling():
    """``x`` doubled in each of two outer iterations until it is 100."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, ())
    outer, inner = counted(network, 2), network.add_loop()
    inner.name = "inner"
    state = outer.add_recurrence(x)
    value = inner.add_recurrence(state.get_output(0))
    value.set_input(1, combine(network, value.get_output(0), value.get_output(0)))
    limit = constant(network, 100, np.float32)
    inner.add_trip_limit(
        combine(network, value.get_output(0), limit, trt.ElementWiseOperation.LESS), trt.TripLimit.WHILE
    )
    state.set_input(1, inner.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    mark(network, y=outer.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    return network


def pure(network, **bound):
    function, weights = trt.to_jax(network, bound=bound)
    return lambda x: function(weights, {"x": x})["y"]


REVERSE = {
    "grad": jax.grad,
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](x),
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "grad of jit": lambda f: jax.grad(jax.jit(f)),
    "grad of checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(f))(x.reshape(1)),
}


@pytest.mark.parametrize("transformed", REVERSE.values(), ids=REVERSE)
def test_reverse_mode_names_the_loop_and_the_bound(transformed):
    network = doubling()

    with pytest.raises(trt.NetworkError) as caught:
        transformed(pure(network))(np.float32(3))

    (found,) = caught.value.findings
    assert (found.code, found.at.name) == ("NL504", "inner")
    assert found.where.startswith(f"{__file__}:")
    assert found.fix.startswith("netloop.to_jax(network, bound={'inner': n})")


def test_fix_of_the_error_works():
    assert jax.grad(pure(doubling(), inner=8))(np.float32(3)) == 64


@pytest.mark.parametrize("transform", [jax.jacfwd, lambda f: jax.vmap(jax.jacfwd(f)), jax.jit])
def test_other_transformations_are_not_refused(transform):
    x = np.float32([3]) if transform not in (jax.jacfwd, jax.jit) else np.float32(3)

    assert np.all(transform(pure(doubling()))(x) == (192 if transform is jax.jit else 64))


def test_value_that_is_not_differentiated_may_come_from_a_loop():
    function = pure(doubling())

    assert jax.grad(lambda x: x * jax.lax.stop_gradient(function(x)))(np.float32(3)) == 192


@pytest.mark.parametrize(
    ("bound", "error", "message"),
    [
        ({"iner": 3}, ValueError, "the network has no loop 'iner' to bound; .*; did you mean 'inner'?"),
        ({"inner": -1}, ValueError, "the bound of 'inner' must be at least 0, not -1"),
        ({"inner": 2.5}, TypeError, "the bound of 'inner' must be an int, not 2.5"),
        (100, TypeError, "bound is a dict from names of loops to numbers, not 100"),
    ],
)
def test_bound_is_a_number_for_a_loop(bound, error, message):
    with pytest.raises(error, match=message):
        trt.to_jax(doubling(), bound=bound)
