"""Weights on a mesh of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

from netloop.execution.sharding import Sharding
from netloop.execution.weight_loading import WeightLoader, device_copy
from netloop.graph.tensor import ITensor
from netloop.layers.sources import IConstantLayer
from netloop.lower import Program, constants_of
from netloop.network import INetworkDefinition


class ShardedWeights:
    """The weights of a network on a mesh, each cut by its spec, or whole on each device.

    Where none is cut, weights are loaded as an engine loads them, which gives the same bits, and copied to the devices.
    Where some are, XLA computes what weight folding makes of them from the parts, and no device has the whole.
    """

    def __init__(self, constants: Sequence[IConstantLayer], sharding: Sharding) -> None:
        self._constants = list(constants)
        self._sharding = sharding
        self._kept: dict[int, Any] = {}

    def load(self, program: Program, network: INetworkDefinition) -> dict[ITensor, jax.Array]:
        """The arguments of a program of the network after the passes, by tensor."""
        if not self._sharding.weights:
            loader = WeightLoader(program, network, self._constants)
            loaded = loader.values(loader([device_copy(each.evaluate()) for each in self._constants]))
            return {each: self._sharding.place(loaded[each], PartitionSpec()) for each in program.unfolded(loaded)}
        own = {each.outputs[0]: self._placed(each) for each in constants_of(network)}
        folded = program.weight_folding.tensors
        if folded:
            given = list(own)
            load = jax.jit(lambda arrays: program.load(dict(zip(given, arrays, strict=True))))
            own.update(zip(folded, load([*own.values()]), strict=True))
        return {each: own[each] for each in program.unfolded(own)}

    def _placed(self, layer: IConstantLayer) -> jax.Array:
        """A constant on the mesh; one of the original network is placed once."""
        index = layer.index
        if index not in {each.index for each in self._constants}:
            return self._sharding.place(layer.evaluate(), PartitionSpec())
        if index not in self._kept:
            spec = self._sharding.weights.get(index, PartitionSpec())
            self._kept[index] = self._sharding.place(layer.evaluate(), spec)
        return self._kept[index]
