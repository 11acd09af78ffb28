"""Random networks with what the passes look for, and thresholds that nothing misses."""

from random import Random

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes import PASSES
from tests.support import pass_checks
from tests.support.examples import many, mostly_slow
from tests.support.growth import CellGrower
from tests.support.random_networks import LIMITS, lowest
from tests.support.strategies import Grown, assert_equal, is_pure


@pytest.fixture
def grown(seed, monkeypatch) -> Grown:
    """A random network with thresholds that nothing misses; at times only a few iterations fit in a chunk."""
    chance = Random(seed)
    for name, limit in lowest(chance).items():
        monkeypatch.setattr(name, limit)
    return CellGrower(chance, chance.randint(1, 2), chance.randint(0, 20)).grow()


def improved(grown: Grown) -> trt.INetworkDefinition:
    """The network for the shapes of its inputs, rewritten by all passes."""
    network = grown.network.copy()
    for tensor in network.inputs:
        tensor.shape = grown.inputs[tensor.name].shape
    return pass_checks.improved(network, PASSES).network


def agree(grown: Grown) -> None:
    meant = trt.evaluate(grown.network, grown.inputs)
    assert_equal(trt.evaluate(improved(grown), grown.inputs), meant, grown.rough)
    assert_equal(trt.compile(grown.network)(grown.inputs), meant, grown.rough)


@pytest.mark.parametrize("seed", mostly_slow(1, range(20)))
def test_passes_keep_the_meaning_of_random_networks(grown):
    agree(grown)


@pytest.mark.slow
@pytest.mark.parametrize("seed", many(40, 1000))
def test_passes_keep_the_meaning_of_many_random_networks(grown):
    agree(grown)
    meant = trt.evaluate(grown.network, grown.inputs)
    assert_equal(trt.compile(grown.network, passes=[])(grown.inputs), meant, grown.rough)
    if is_pure(grown.network, grown.inputs):
        function, weights = trt.to_jax(grown.network)
        outputs = jax.jit(function)(weights, grown.inputs)
        assert_equal({name: np.asarray(outputs[name]) for name in meant}, meant, grown.rough)


@pytest.mark.slow
def test_passes_find_something_in_random_networks(monkeypatch):
    for name, limit in LIMITS.items():
        monkeypatch.setattr(name, limit)
    used = set()
    for seed in range(60):
        grown = CellGrower(Random(seed), 2, 25).grow()
        unused = [name for name in CellGrower.passes if name not in used]
        used.update(name for name in unused if pass_checks.improved(grown.network, [name]).notes)
        if used == set(CellGrower.passes):
            break

    assert used == set(CellGrower.passes)
