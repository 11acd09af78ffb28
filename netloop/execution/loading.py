"""What a program takes of the weights of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from netloop.graph.tensor import ITensor
from netloop.layers.sources import IConstantLayer
from netloop.lower import Program, constants_of
from netloop.network import INetworkDefinition


class Loading:
    """What a program takes beside inputs: weights, and what is computed from them when there are new ones.

    Args:
        program: the program.
        network: its network, which passes may have made of the engine's.
        constants: the constants of the engine's network.

    Attributes:
        tensors: what the program takes.
    """

    def __init__(self, program: Program, network: INetworkDefinition, constants: list[IConstantLayer]) -> None:
        positions = {layer.index: position for position, layer in enumerate(constants)}
        own = constants_of(network)
        self.tensors: list[ITensor] = [*(each.outputs[0] for each in own), *program.weight_folding.tensors]
        self._positions = [positions[each.index] for each in own]
        self._loaded: tuple[Any, list[Any]] = None, []
        self._program = program
        self._compute = jax.jit(self._load)

    def __call__(self, weights: Sequence[Any]) -> list[Any]:
        """What the program takes, for the weights of an engine."""
        known, loaded = self._loaded
        if known is not weights:
            own = [weights[position] for position in self._positions]
            compute = self._load if self._program.weight_folding.only_moves else self._compute
            with jax.ensure_compile_time_eval():
                loaded = [*own, *compute(own)]
            self._loaded = weights, loaded
        return loaded

    def _load(self, own: list[Any]) -> list[Any]:
        return self._program.load(dict(zip(self.tensors, own, strict=False)))

    def values(self, loaded: list[Any]) -> dict[ITensor, Any]:
        """What the program takes, by tensor."""
        return dict(zip(self.tensors, loaded, strict=True))
