"""The executable in an engine, as users of the engine see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax

from netloop.compiler.execution.executable import Executable
from netloop.compiler.host import Listener
from netloop.compiler.lower.loop.strategy import LoopStrategy
from netloop.compiler.passes import Note
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.checked_attributes import CheckedAttributes


class EngineCore(CheckedAttributes):
    """An object with TensorRT's interface around an executable.

    Attributes:
        executable: the compiled network, which calls use.
    """

    executable: Executable

    @property
    def network(self) -> INetworkDefinition:
        """The engine's own copy of the network."""
        return self.executable.network

    @property
    def constants(self) -> list[IConstantLayer]:
        """The constants that are arguments of its programs."""
        return self.executable.constants

    @property
    def absent(self) -> set[IConstantLayer]:
        """The constants that have no weights yet."""
        return self.executable.absent

    @property
    def max_trips(self) -> int | None:
        """The largest number of iterations of a loop, each time it is entered; None for any number."""
        return self.executable.recipe.max_trips

    @property
    def passes(self) -> frozenset[str]:
        """The names of the passes applied to its programs."""
        return self.executable.recipe.passes

    @property
    def forms(self) -> Mapping[str, str]:
        """The forms of the passes that do not follow their rule, by name."""
        return self.executable.recipe.forms

    @property
    def donated(self) -> frozenset[str]:
        """The names of the inputs whose memory a call may reuse."""
        return self.executable.donated

    @property
    def interruptible(self) -> bool:
        """Whether Ctrl-C ends a long loop."""
        return self.executable.interruptible

    @property
    def shape_inputs(self) -> list[ITensor]:
        """The inputs whose values decide shapes."""
        return self.executable.shape_inputs

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the latest program needs in addition to inputs, outputs and weights."""
        return self.executable.scratch_size

    @property
    def program_count(self) -> int:
        """The number of cached programs."""
        return self.executable.program_count

    @property
    def loop_strategies(self) -> dict[str, LoopStrategy]:
        """The lowering strategy of each loop in the latest program and its reason, by the name of the loop.

        Loops that share a name are ``name#number``.
        """
        return self.executable.loop_strategies

    @property
    def batched_layers(self) -> dict[str, list[ILayer]]:
        """The layers of each loop that the latest program computes for many iterations at once, by loop name."""
        return self.executable.batched_layers

    @property
    def notes(self) -> list[Note]:
        """The changes that the passes made for the latest program."""
        return self.executable.notes

    @property
    def rewritten_network(self) -> INetworkDefinition | None:
        """The network after the passes, of which the latest program is made; None if none is compiled."""
        return self.executable.rewritten_network

    def profile(self, inputs: Mapping[str, Any]) -> dict[str, float]:
        """The duration of each phase for some inputs, in seconds; see :meth:`Executable.profile`."""
        return self.executable.profile(inputs)

    def watch(
        self, inputs: Mapping[str, Any], tensors: Iterable[ITensor], report: Listener
    ) -> dict[str, jax.Array | Any]:
        """Run the network step by step, and report the values of some tensors; see :meth:`Executable.watch`."""
        return self.executable.watch(inputs, tensors, report)
