import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netloop as trt
from tests.support.jax_functions import check_same
from tests.support.jax_programs import arguments, random_function
from tests.support.random_networks import random_network
from tests.support.strategies import assert_equal, is_pure


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 16), st.integers(0, 2), st.integers(1, 6))
def test_network_of_a_random_function_computes_what_it_does(seed, depth, most):
    check_same(random_function(seed, depth, most), *arguments(seed), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("seed", [0, 3, 37])
def test_function_of_the_network_of_a_random_function(seed):
    network = trt.from_jax(random_function(seed), *arguments(seed))
    function, weights = trt.to_jax(network)
    given = dict(zip((each.name for each in network.inputs), arguments(seed), strict=True))
    want = jax.tree.leaves(jax.jit(random_function(seed))(*arguments(seed)))
    for one, other in zip(function(weights, given).values(), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def check_round_trip(seed):
    grown = random_network(seed, False)
    if not is_pure(grown.network, grown.inputs):
        return False
    function, weights = trt.to_jax(grown.network)
    with jax.enable_x64(True):
        network = trt.from_jax(function, weights, grown.inputs, weights="weights", names=["weights", "inputs"])
    arrays = {each.name: grown.inputs[each.name.removeprefix("inputs.")] for each in network.inputs}
    meant = trt.evaluate(grown.network, grown.inputs)
    got = {name.removeprefix("output."): value for name, value in trt.compile(network)(arrays).items()}
    assert_equal({name: got[name] for name in meant}, meant, grown.rough)
    return True


def test_network_of_the_function_of_a_random_network():
    assert sum(check_round_trip(seed) for seed in range(5)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 80, 8))
def test_network_of_the_function_of_many_random_networks(start):
    assert sum(check_round_trip(seed) for seed in range(start, start + 8)) > 1
