"""Weights as the arguments of a compiled program."""

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.lower import constants_of
from netloop.compiler.lower.weight_folding import find_weight_folding, read_by_others
from netloop.compiler.passes import Improved
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.string_arrays import STRING
from netloop.values.types import Array


class DeviceWeights(list[jax.Array | jax.ShapeDtypeStruct]):
    """The values of the constants of an executable on the device, or the types of those that are absent."""


jax.tree_util.register_pytree_node(
    DeviceWeights, lambda weights: (list(weights), None), lambda _, values: DeviceWeights(values)
)


ALIGNMENT = 64
"""The alignment of memory, in bytes, that XLA's CPU computes in as it is; JAX would copy other arrays once more."""


def own_copy(array: Array) -> Array:
    """A copy of an array of numbers, aligned as XLA needs it."""
    # numpy promises no such alignment, but a larger array has a place that has it
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy: Array = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def device_copy(array: Array) -> jax.Array:
    """A copy of an array on the device, in memory to which nobody else writes.

    ``jnp.array`` and ``asarray`` copy by a program that XLA compiles for each new shape, in 25 ms.
    """
    return jax.device_put(own_copy(array))


def loaded_constants(layers: list[IConstantLayer]) -> list[Any]:
    """The weights of constants on the device; strings stay on the host.

    The constants keep copies of their own. Where the device computes in the host's memory, these are views of the
    weights: there is one copy, and not two.
    """
    arrays = [constant.evaluate() for constant in layers]
    copies: list[Any] = [array.copy() if array.dtype == STRING else own_copy(array) for array in arrays]
    numbers = iter(jax.device_put([copy for copy in copies if copy.dtype != STRING]))
    loaded = [copy if copy.dtype == STRING else next(numbers) for copy in copies]
    for layer, copy, result in zip(layers, copies, loaded, strict=True):
        is_here = result is copy or {device.platform for device in result.devices()} == {"cpu"}
        vars(layer)["weights"] = (np.asarray(result) if is_here else copy).reshape(-1)
    return loaded


W = TypeVar("W")
V = TypeVar("V")


def original_constants(
    network: INetworkDefinition, constants: Sequence[IConstantLayer]
) -> dict[ITensor, int | IConstantLayer]:
    """For the tensor of each constant of a network after the passes, its position among those of the original.

    A constant that passes added stands for itself: its array is that of the network, which a refit makes anew.
    """
    positions = {layer.index: position for position, layer in enumerate(constants)}
    return {layer.outputs[0]: positions.get(layer.index, layer) for layer in constants_of(network)}


class ComputedOnce(Generic[W, V]):
    """A function of the weights of an engine, of which the latest result is kept as long as these weights exist."""

    def __init__(self, compute: Callable[[W], V]) -> None:
        self._compute, self._lock = compute, threading.Lock()
        self._latest: tuple[weakref.ref[W], V] | None = None

    def __call__(self, weights: W) -> V:
        """The result for these weights, which are compared by identity."""
        # under the lock, so that one thread computes it: twice the weights may be too much for the device
        with self._lock:
            latest = self._latest
            if latest is None or latest[0]() is not weights:
                result = self._compute(weights)
                # a program that is not called after a refit would keep the old weights on the device
                latest = self._latest = weakref.ref(weights, self._forget), result
            return latest[1]

    def _forget(self, weights: weakref.ref[W]) -> None:
        if self._latest is not None and self._latest[0] is weights:
            self._latest = None


class WeightLoader:
    """Compute the weight arguments of a program: constants, and what weight folding computes from them once.

    The ``constants`` are those of the original network.

    Attributes:
        tensors: the tensors that are arguments of the program in addition to its inputs.
    """

    def __init__(self, lowered: LoweredNetwork, constants: Sequence[IConstantLayer]) -> None:
        self._program = lowered.program
        self._sources = original_constants(lowered.source.network, constants)
        self.tensors: list[ITensor] = [*self._sources, *self._program.weight_folding.tensors]
        self._latest = ComputedOnce(self.computed)
        self._compute = XlaFunction(self._load, self._program)
        self._given: list[ITensor] = []

    def __call__(self, weights: Sequence[Any]) -> list[Any]:
        """Return the arguments for the weights of an executable; they are computed once for each list of weights."""
        return self._latest(weights)

    def computed(self, weights: Sequence[Any]) -> list[Any]:
        """The arguments for the weights of an executable, of which the loader keeps nothing."""
        own = [
            weights[source] if isinstance(source, int) else device_copy(source.evaluate())
            for source in self._sources.values()
        ]
        # a call may come while JAX traces, where the results would be tracers
        with jax.ensure_compile_time_eval():
            return [*own, *self._folded(dict(zip(self.tensors, own, strict=False)))]

    def _folded(self, given: dict[ITensor, Any]) -> list[Any]:
        """The tensors of weight folding: by numpy, and what it does not compute by a program."""
        folding = self._program.weight_folding
        result = folding.by_numpy(given, self._program.types)
        # where numpy computes everything, no program has to be compiled
        if not folding.others:
            return jax.device_put([result[tensor] for tensor in folding.tensors])
        values = {**given, **result}
        self._given = list(values)
        return self._compute(jax.device_put([*values.values()]))

    def _load(self, arrays: list[Any]) -> list[Any]:
        return self._program.load(dict(zip(self._given, arrays, strict=True)))

    def values(self, loaded: list[Any]) -> dict[ITensor, Any]:
        """Return the arguments by tensor."""
        return dict(zip(self.tensors, loaded, strict=True))


class HostWeights:
    """Compute the weights of a network that runs on the host: constants, and what numpy computes of them once.

    The ``source`` may have been rewritten by passes; the ``constants`` are those of the original network. The rest
    ``is_padded``, and runs as one program, or it runs step by step.

    Attributes:
        steps: the steps of the network that need not run, as their results are among the weights.
    """

    def __init__(self, source: Improved, constants: Sequence[IConstantLayer], is_padded: bool = False) -> None:
        self._sources = original_constants(source.network, constants)
        block, outputs = source.validated.block, source.network.outputs
        self._types = source.types
        self._folding = find_weight_folding(block, outputs, source.types, is_on_host=not is_padded)
        folded = set(self._folding.steps).difference(self._folding.others)
        self.steps = frozenset(step for step in block.steps if step in folded)
        self._read = {*read_by_others(block, self.steps), *outputs}
        self._latest = ComputedOnce(self._computed)

    def __call__(self, weights: Sequence[Any]) -> dict[ITensor, Any]:
        """Return the values by tensor; they are computed once for each list of weights."""
        return self._latest(weights)

    def _computed(self, weights: Sequence[Any]) -> dict[ITensor, Any]:
        sources = self._sources.items()
        own = {tensor: weights[of] if isinstance(of, int) else device_copy(of.evaluate()) for tensor, of in sources}
        values = self._folding.by_numpy(own, self._types)
        # what only folded layers read stays on the host, and is dropped
        return {**own, **{tensor: jax.device_put(values[tensor]) for tensor in values if tensor in self._read}}
