"""Weights as the arguments of a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from netloop.graph.tensor import ITensor
from netloop.layers.sources import IConstantLayer
from netloop.lower import Program, constants_of
from netloop.network import INetworkDefinition
from netloop.xla_compilation import InterruptibleJit

DeviceWeights = list[jax.Array | jax.ShapeDtypeStruct]
"""The values of the constants of an executable on the device, or the types of those that are absent."""


class WeightLoader:
    """Compute the weight arguments of a program: constants, and what weight folding computes from them once.

    The program's ``network`` may have been rewritten by passes; the ``constants`` are those of the original network.

    Attributes:
        tensors: the tensors that are arguments of the program in addition to its inputs.
    """

    def __init__(self, program: Program, network: INetworkDefinition, constants: list[IConstantLayer]) -> None:
        positions = {layer.index: position for position, layer in enumerate(constants)}
        own = constants_of(network)
        self.tensors: list[ITensor] = [*(each.outputs[0] for each in own), *program.weight_folding.tensors]
        self._positions = [positions[each.index] for each in own]
        self._loaded: tuple[Any, list[Any]] = None, []
        self._program = program
        self._compute = InterruptibleJit(self._fold)

    def __call__(self, weights: Sequence[Any]) -> list[Any]:
        """Return the arguments for the weights of an executable; they are computed once for each list of weights."""
        known, loaded = self._loaded
        if known is not weights:
            own = [weights[position] for position in self._positions]
            compute = self._fold if self._program.weight_folding.only_moves else self._compute
            with jax.ensure_compile_time_eval():
                loaded = [*own, *compute(own)]
            self._loaded = weights, loaded
        return loaded

    def _fold(self, own: list[Any]) -> list[Any]:
        return self._program.load(dict(zip(self.tensors, own, strict=False)))

    def values(self, loaded: list[Any]) -> dict[ITensor, Any]:
        """Return the arguments by tensor."""
        return dict(zip(self.tensors, loaded, strict=True))
