"""Helpers of the tests of passes: networks through passes, their inputs, and thresholds that nothing misses."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

import netloop as trt
from netloop.compiler.passes import PASSES, Improved, LoweringPass, improve
from netloop.model.check import require_valid
from netloop.model.nest import live_layers

REWRITES = [name for name, pass_ in PASSES.items() if not isinstance(pass_, LoweringPass)]

LOWEST: dict[str, object] = {
    "netloop.compiler.lower.loop.fission.SMALLEST_PRODUCT": 1,
    "netloop.compiler.lower.weight_folding.SMALLEST": 1,
    "netloop.compiler.passes.carry_layout.MIN_LONG_AXIS": 4,
    "netloop.compiler.passes.weight_prepacking.MIN_ELEMENTS": 1,
    "netloop.compiler.passes.weight_prepacking.MIN_ELEMENTS_ONE_ROW": 1,
    "netloop.compiler.passes.weight_prepacking.MIN_ELEMENTS_LEFT": 1,
    "netloop.compiler.passes.matmul_partitioning.PART_ELEMENTS": 9,
    "netloop.compiler.passes.matmul_partitioning.CACHED_ELEMENTS": 0,
    "netloop.compiler.passes.matmul_partitioning.cores": lambda: 2,
    "netloop.compiler.passes.winograd.MIN_CHANNELS": 1,
    "netloop.compiler.passes.winograd.MIN_MAPS": 1,
    "netloop.compiler.passes.winograd.MIN_TILES": 1,
    "netloop.compiler.passes.winograd.MIN_WORK": 1,
}
"""Thresholds with which passes apply to networks of any size."""


def improved(network: trt.INetworkDefinition, passes: Collection[str], platform: str = "cpu") -> Improved:
    return improve(network, network.types, require_valid(network), passes, platform=platform)


def inputs_of(network: trt.INetworkDefinition) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    made = {tensor.name: random.standard_normal(tensor.shape).astype(np.float32) for tensor in network.inputs}
    return {
        name: random.integers(0, 6, array.shape, np.int32) if name == "tokens" else array
        for name, array in made.items()
    }


def assert_close(got: Mapping[str, Any], wanted: Mapping[str, np.ndarray]) -> None:
    for name, array in wanted.items():
        np.testing.assert_allclose(np.asarray(got[name]), array, rtol=1e-5, atol=1e-6, err_msg=name)


def count(network: trt.INetworkDefinition, kind: type[trt.ILayer]) -> int:
    """The number of live layers of a kind."""
    return sum(isinstance(layer, kind) for layer in live_layers(network))


def wiring(network: trt.INetworkDefinition) -> list[tuple[object, ...]]:
    """The live layers, with the tensors that they read and their attributes."""
    return [
        (layer, *layer.inputs, *(repr(getattr(layer, name)) for name in layer.ATTRIBUTES))
        for layer in live_layers(network)
    ]
