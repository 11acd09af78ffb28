"""Engines ignore the settings of JAX that a user changes, and transformations of JAX around them are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from tests.support.builds import doubling
from tests.support.networks import (
    COUNT,
    X,
    combine,
    constant,
    counter,
    last,
    mark,
    running_sum,
)


@pytest.mark.parametrize("setting", [False, True])
def test_wide_types_are_real_whatever_the_users_setting(network, setting):
    i, f = network.add_input("i", trt.int64, ()), network.add_input("f", trt.float64, ())
    mark(network, i2=combine(network, i, 1), f2=combine(network, f, 1e-15))
    with jax.enable_x64(setting):
        got = trt.compile(network)({"i": np.int64(2**40), "f": np.float64(1)})
        assert jnp.asarray(np.float64(1)).dtype == (np.float64 if setting else np.float32)

    assert got["i2"].dtype == np.int64
    assert int(got["i2"]) == 2**40 + 1
    assert float(got["f2"]) == 1 + 1e-15


@pytest.mark.parametrize("setting", [False, True])
def test_narrow_types_stay_narrow_whatever_the_users_setting(setting):
    with jax.enable_x64(setting):
        got = trt.compile(running_sum())({"x": X})["y"]

    assert got.dtype == np.float32


@pytest.mark.parametrize(
    "setting",
    [jax.disable_jit(), jax.debug_nans(True), jax.numpy_dtype_promotion("strict")],
    ids=["jit", "nans", "types"],
)
def test_settings_of_jax_do_not_reach_engines(network, setting):
    n = network.add_input("n", trt.int32, ())
    loop = network.add_loop()
    loop.add_trip_limit(n, COUNT)
    nothing = network.add_unary(constant(network, -1, np.float32), trt.UnaryOperation.LOG).get_output(0)
    mark(network, trips=last(loop, counter(network, loop)), nothing=nothing)
    with setting:
        made = trt.compile(network)({"n": np.int32(3)})

    assert made["trips"] == 3
    assert np.isnan(made["nothing"])


@pytest.mark.parametrize("run", [trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)])
def test_engine_in_a_transformation_points_to_the_pure_function(network, run):
    doubling(network)

    with pytest.raises(trt.InputError, match=r"netloop\.to_jax"):
        jax.jit(lambda x: run(network, {"x": x})["y"])(np.ones(2, np.float32))
