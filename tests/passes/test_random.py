"""Random networks of what the passes look for, with nothing too small for them."""

from random import Random

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.check import require_valid
from netloop.passes import PASSES, LoweringPass, improve
from tests.support.growth import CellGrower
from tests.support.strategies import Grown, assert_equal, is_pure

LOWEST: dict[str, object] = {
    "netloop.lower.loop.fission.SMALLEST_PRODUCT": 1,
    "netloop.lower.loop.fission.FEWEST_TRIPS": 1,
    "netloop.lower.weight_folding.SMALLEST": 1,
    "netloop.passes.carry_layout.MIN_LONG_AXIS": 4,
    "netloop.passes.weight_prepacking.MIN_ELEMENTS": 1,
    "netloop.passes.weight_prepacking.MIN_ELEMENTS_ONE_ROW": 1,
    "netloop.passes.weight_prepacking.MIN_ELEMENTS_LEFT": 1,
    "netloop.passes.matmul_partitioning.PART_ELEMENTS": 3,
    "netloop.passes.matmul_partitioning.CACHED_ELEMENTS": 0,
    "netloop.passes.matmul_partitioning.cores": lambda: 2,
}
UNLIMITED = [
    "netloop.lower.weight_folding.MOST_GROWTH",
    "netloop.lower.loop.unroll_heuristic.MOST_LAYERS",
    "netloop.lower.loop.unroll_heuristic.MOST_ELEMENTS",
]


@pytest.fixture
def grown(seed, monkeypatch) -> Grown:
    """A random network, and thresholds that nothing misses; at times a few trips at once are as many as fit."""
    chance = Random(seed)
    limits: dict[str, object] = LOWEST | dict.fromkeys(UNLIMITED, 1 << 20)
    limits["netloop.passes.weight_prepacking.LEFT_ROWS"] = chance.choice([range(2, 9), range(8, 65)])
    limits["netloop.lower.loop.fission.CACHED"] = chance.choice([1, 1 << 22])
    limits["netloop.lower.loop.fission.CHUNK"] = chance.choice([100, 300, 1000])
    for name, limit in limits.items():
        monkeypatch.setattr(name, limit)
    return CellGrower(chance, chance.randint(1, 2), chance.randint(5, 25)).grow()


def improved(grown: Grown) -> trt.INetworkDefinition:
    """The network for the shapes of its inputs, rewritten by all passes."""
    network = grown.network.copy()
    for each in network.inputs:
        each.shape = grown.inputs[each.name].shape
    return improve(network, network.types, require_valid(network), PASSES).network


def agree(grown: Grown) -> None:
    meant = trt.evaluate(grown.network, grown.inputs)
    assert_equal(trt.evaluate(improved(grown), grown.inputs), meant, grown.rough)
    assert_equal(trt.compile(grown.network)(grown.inputs), meant, grown.rough)


@pytest.mark.parametrize("seed", range(30))
def test_passes_keep_what_random_networks_mean(grown):
    agree(grown)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_passes_keep_what_random_networks_mean_at_length(grown):
    agree(grown)
    meant = trt.evaluate(grown.network, grown.inputs)
    assert_equal(trt.compile(grown.network, passes=[])(grown.inputs), meant, grown.rough)
    if is_pure(grown.network):
        function, weights = trt.to_jax(grown.network)
        outputs = jax.jit(function)(weights, grown.inputs)
        assert_equal({name: np.asarray(outputs[name]) for name in meant}, meant, grown.rough)


def test_every_pass_that_rewrites_finds_something_in_random_networks(monkeypatch):
    for name, limit in LOWEST.items():
        monkeypatch.setattr(name, limit)
    used = set()
    rewrites = [name for name, each in PASSES.items() if not isinstance(each, LoweringPass)]
    for seed in range(60):
        grown = CellGrower(Random(seed), 2, 25).grow()
        used.update(name for name in rewrites if name not in used and uses(grown, name))

    assert used == set(rewrites)


def uses(grown: Grown, name: str) -> bool:
    return bool(improve(grown.network, grown.network.types, require_valid(grown.network), [name]).notes)
