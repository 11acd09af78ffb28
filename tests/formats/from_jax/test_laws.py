"""Networks of functions, and functions of networks, are each other's inverse; files and scripts keep what they do."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.bits import IBitCastLayer
from netloop.model.layers.gather import IScatterLayer
from tests.model.script.same_networks import built
from tests.support import onnx_runtime, openvino_runtime
from tests.support.examples import many, mostly_slow
from tests.support.jax_programs import arguments, random_function
from tests.support.random_networks import random_network
from tests.support.strategies import assert_equal, is_pure

NETWORKS, PROGRAMS = many(100), many(40)
BLOCK = 20
NOT_IN_OPENVINO = {IBitCastLayer, IScatterLayer}
"""OpenVINO has no operator for the first, and in loops its plugin scatters into a tensor that is needed again."""
CLOSE = {"rtol": 3e-4, "atol": 3e-5}


def blocks(seeds):
    return pytest.mark.parametrize("start", range(seeds.start, seeds.stop, BLOCK))


# ---------------------------------------------------------------------- from_jax of to_jax


def pure_network(seed):
    """The first network from a number on that one program can hold: of those that cannot there is no function."""
    for number in range(50):
        # by a prime number, which has no factor with that of recipes, of which some come in turn
        grown = random_network(1009 * number + seed, False)
        if is_pure(grown.network, grown.inputs):
            return grown
    raise AssertionError("no network is pure")


def check_network(seed):
    grown = pure_network(seed)
    function, weights = trt.to_jax(grown.network)
    with jax.enable_x64(True):
        network = trt.from_jax(function, weights, grown.inputs, weights="weights", names=["weights", "inputs"])
    arrays = {tensor.name: grown.inputs[tensor.name.removeprefix("inputs.")] for tensor in network.inputs}
    # not the reference: XLA makes 0 of numbers that are subnormal on their way
    meant = {name: np.asarray(value) for name, value in trt.compile(grown.network)(grown.inputs).items()}
    got = {name.removeprefix("output."): value for name, value in trt.compile(network)(arrays).items()}
    assert_equal({name: got[name] for name in meant}, meant, grown.rough)


@pytest.mark.parametrize("seed", mostly_slow(1, range(3)))
def test_network_of_the_function_of_a_random_network_is_that_network(seed):
    check_network(seed)


@pytest.mark.slow
@blocks(NETWORKS)
def test_network_of_the_function_of_any_random_network_is_that_network(start):
    for seed in range(start, start + BLOCK):
        check_network(seed)


# ---------------------------------------------------------------------- to_jax of from_jax, files and scripts


def by_function(network, given, folder):
    function, weights = trt.to_jax(network)
    return function(weights, given)


def by_onnxruntime(network, given, folder):
    return onnx_runtime.run(onnx_runtime.export(network), given)


def by_openvino(network, given, folder):
    if not {type(layer) for layer in network.layers} & NOT_IN_OPENVINO:
        return openvino_runtime.run(openvino_runtime.export(network), given)
    return trt.evaluate(network, given)


def by_script(network, given, folder):
    trt.script.save(network, folder / "model.py")
    return trt.compile(built(folder / "model.py"))(given)


WAYS = [by_function, by_onnxruntime, by_openvino, by_script]


def results(function, given):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*given))]


def are_close(found, wanted):
    return all(np.allclose(one, other, **CLOSE, equal_nan=True) for one, other in zip(found, wanted, strict=True))


def is_steady(function, given, wanted):
    """Whether results stay as they are where numbers are rounded otherwise: floor, for one, may jump there."""
    for factor in (1 - 1e-6, 1 + 1e-6):
        moved = [array * np.float32(factor) if array.dtype == np.float32 else array for array in given]
        if not are_close(results(function, moved), wanted):
            return False
    return True


def check_program(seed, way, folder):
    """Check that a random function, made a network and run in some way, gives what JAX computes."""
    function, given = random_function(seed), arguments(seed)
    network = trt.from_jax(function, *given)
    wanted = results(function, given)
    arrays = dict(zip((tensor.name for tensor in network.inputs), given, strict=True))
    made = way(network, arrays, folder)
    found = [np.asarray(made[tensor.name]) for tensor in network.outputs]

    assert [array.shape for array in found] == [array.shape for array in wanted]
    assert are_close(found, wanted) or not is_steady(function, given, wanted), f"{found}, not {wanted}"


@pytest.mark.parametrize("seed", mostly_slow(1, [3, 0, 37]))
@pytest.mark.parametrize("way", WAYS)
def test_random_function_is_kept(way, seed, tmp_path):
    check_program(seed, way, tmp_path)


@pytest.mark.slow
@blocks(PROGRAMS)
@pytest.mark.parametrize("way", WAYS)
def test_any_random_function_is_kept(way, start, tmp_path):
    for seed in range(start, start + BLOCK):
        check_program(seed, way, tmp_path)
