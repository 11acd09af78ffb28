"""Weights on a mesh of devices."""

import threading
from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.execution.sharding import Sharding
from netloop.compiler.execution.weight_loading import ComputedOnce, WeightLoader, device_copy, original_constants
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer


class ShardedWeights:
    """The weights of a network between two refits, each cut by its spec, or whole on each device.

    Attributes:
        arrays: the values of the constants, which a refit replaces and does not write to.
    """

    def __init__(self, constants: Sequence[IConstantLayer], sharding: Sharding) -> None:
        self.arrays = [constant.evaluate() for constant in constants]
        self._specs = [sharding.weights.get(constant.index, PartitionSpec()) for constant in constants]
        self._sharding = sharding
        self._kept: dict[int, jax.Array] = {}
        self._lock = threading.Lock()

    def placed(self, position: int) -> jax.Array:
        """A constant on the mesh, which is placed once for all programs."""
        with self._lock:
            if position not in self._kept:
                self._kept[position] = self._sharding.place(self.arrays[position], self._specs[position])
            return self._kept[position]


class ShardedLoader:
    """Compute the weight arguments of a program of the ``network`` after the passes, once for each refit.

    Where no weight is cut, weights are loaded as an engine loads them, which gives the same bits, and copied to the
    devices. Where some are, XLA computes what weight folding makes of them from the parts, and no device has the whole.
    """

    def __init__(self, lowered: LoweredNetwork, constants: list[IConstantLayer], sharding: Sharding) -> None:
        self._program, self._sharding = lowered.program, sharding
        self._loader = None if sharding.weights else WeightLoader(lowered, constants)
        self._own = original_constants(lowered.source.network, constants)
        self._fold = XlaFunction(self._folded, lowered.program)
        self._latest = ComputedOnce(self._copied if self._loader else self._in_parts)

    def __call__(self, weights: ShardedWeights) -> dict[ITensor, jax.Array]:
        """The arguments by tensor."""
        return self._latest(weights)

    def _copied(self, weights: ShardedWeights) -> dict[ITensor, jax.Array]:
        assert self._loader is not None
        loaded = self._loader.values(self._loader.computed([device_copy(array) for array in weights.arrays]))
        return {
            tensor: self._sharding.place(loaded[tensor], PartitionSpec()) for tensor in self._program.unfolded(loaded)
        }

    def _in_parts(self, weights: ShardedWeights) -> dict[ITensor, jax.Array]:
        own = {
            # a constant that passes have added stands for itself
            tensor: weights.placed(of) if isinstance(of, int) else self._sharding.place(of.evaluate(), PartitionSpec())
            for tensor, of in self._own.items()
        }
        folded = self._program.weight_folding.tensors
        # without anything to fold there is no program to compile
        if folded:
            own.update(zip(folded, self._fold([*own.values()]), strict=True))
        return {tensor: own[tensor] for tensor in self._program.unfolded(own)}

    def _folded(self, arrays: list[Any]) -> list[Any]:
        return self._program.load(dict(zip(self._own, arrays, strict=True)))
