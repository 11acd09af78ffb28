"""The executable in an engine, as users of the engine see it."""

from collections.abc import Iterable, Mapping
from typing import Any

import jax

from netloop.compiler.execution.engines import Engine, Report
from netloop.compiler.execution.executable import Executable
from netloop.compiler.host import Listener
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.values.checked_attributes import CheckedAttributes


class EngineCore(CheckedAttributes, Engine):
    """An object with TensorRT's interface around an executable.

    Attributes:
        executable: the compiled network, which calls use.
    """

    executable: Executable

    @property
    def latest(self) -> Report | None:
        return self.executable.latest

    @property
    def constants(self) -> list[IConstantLayer]:
        """The constants that are arguments of its programs."""
        return self.executable.constants

    @property
    def absent(self) -> set[IConstantLayer]:
        """The constants that have no weights yet."""
        return self.executable.absent

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
    def program_count(self) -> int:
        """The number of cached programs."""
        return self.executable.program_count

    def profile(self, inputs: Mapping[str, Any]) -> dict[str, float]:
        """The duration of each phase for some inputs, in seconds; see :meth:`Tunable.profile`."""
        return self.executable.profile(inputs)

    def layer_times(self, inputs: Mapping[str, Any], calls: int = 10) -> dict[str, float]:
        """The seconds that each layer takes in a call; see :meth:`Executable.layer_times`."""
        return self.executable.layer_times(inputs, calls)

    def watch(
        self, inputs: Mapping[str, Any], tensors: Iterable[ITensor], report: Listener
    ) -> dict[str, jax.Array | Any]:
        """Run the network step by step, and report the values of some tensors; see :meth:`Executable.watch`."""
        return self.executable.watch(inputs, tensors, report)
