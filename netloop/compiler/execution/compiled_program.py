"""Compile a network for the input types of a call: passes, weights, tracing, XLA."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax

from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.execution.program_cache import Given
from netloop.compiler.execution.ready_call import BoundCall
from netloop.compiler.execution.weight_loading import DeviceWeights, WeightLoader
from netloop.compiler.host import HostProgram
from netloop.compiler.launches import Launches
from netloop.compiler.lower import Program
from netloop.compiler.passes import Improved, Note
from netloop.compiler.phases import PhaseTimer
from netloop.compiler.recipe import Recipe
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.device_errors import can_run_out, completed
from netloop.model.layers.loop import ILoop
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.devices import JaxDevice

Bind = Callable[[list[Any]], BoundCall]
"""Returns the call of a program with some weights; what that computes of them is computed once."""


class ProgramSource(Protocol):
    """The attributes of an executable that its programs are compiled from."""

    network: INetworkDefinition
    constants: list[IConstantLayer]
    recipe: Recipe
    donated: frozenset[str]

    @property
    def weights(self) -> DeviceWeights: ...

    def watch_phase(self, name: str) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class CompiledProgram:
    """A program that is ready to run.

    Attributes:
        bind: its call with some weights; it raises ExecutionError.
        program: the lowered network, which records the strategy of each loop.
        loops: the loops of the lowered network, in order.
        compiled: XLA's executable; None if the program runs on the host.
        notes: what the passes did.
        seconds: the duration of each phase of the compilation.
        network: the network after the passes; None if the program runs on the host.
        function: the function of which ``compiled`` is the program; None if the program runs on the host.
        lasts: whether it stays the program of its inputs; if not, they get one of their own.
    """

    bind: Bind
    program: Program | HostProgram
    loops: list[ILoop]
    compiled: Any = None
    notes: list[Note] = field(default_factory=list[Note])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    network: INetworkDefinition | None = None
    function: XlaFunction | None = None
    lasts: Callable[[], bool] = lambda: True

    @property
    def is_on_host(self) -> bool:
        """Whether its steps run on the host."""
        return isinstance(self.program, HostProgram)

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that it needs besides inputs, outputs and weights; on the host, its largest piece."""
        if self.function is not None:
            return self.function.scratch_size
        assert isinstance(self.program, HostProgram)
        return self.program.scratch_size

    @property
    def launches(self) -> Launches | None:
        """The launches of a call on a GPU; None on other devices, and where the host decides what runs."""
        return None if self.function is None else self.function.launches


def compile_program(origin: ProgramSource, source: Improved, timer: PhaseTimer, given: Given) -> CompiledProgram:
    """Compile the program of an executable for the inputs ``given``, or for their shapes and element types."""
    lowered = LoweredNetwork.of_program(source, origin.recipe, timer)
    loader = WeightLoader(lowered, origin.constants)
    # argument 0 of the traced function is the list of weights
    donated = [position for position, tensor in enumerate(lowered.inputs, 1) if tensor.name in origin.donated]

    def trace(loaded: list[Any], *arrays: Any) -> tuple[list[Any], Any]:
        outcome = lowered.run(loader.values(loaded), arrays)
        return outcome.values, outcome.verdict()

    # before the program is traced, whose arguments have the types of what is loaded
    with timer.phase("load"):
        loaded = loader(origin.weights)
    function = lowered.function(trace, donate_argnums=donated, **origin.recipe.placement.options)
    # of types and not of arrays, whose device may be chosen: the program is that of all arrays of these types
    compiled = function.compile(loaded, *(jax.ShapeDtypeStruct(value.shape, value.dtype) for value in given.values()))
    return CompiledProgram(
        _binding(compiled, loader, lowered, origin.recipe.placement.device),
        lowered.program,
        lowered.loops,
        compiled,
        lowered.notes,
        timer.seconds,
        lowered.network,
        function,
    )


def _binding(compiled: jax.stages.Compiled, loader: WeightLoader, lowered: LoweredNetwork, device: JaxDevice) -> Bind:
    """The binding of a compiled program, whose calls return the outputs or raise the first error."""
    # a call of a small program takes microseconds, and to wait for each result would be a good part of them
    waits = can_run_out(compiled, device)

    def bind(weights: list[Any]) -> BoundCall:
        loaded = loader(weights)

        def call(arrays: Sequence[Any]) -> list[Any]:
            result = compiled(loaded, *arrays)
            outputs, verdict = completed(result) if waits else result
            if verdict is not None:
                lowered.require(verdict)
            return outputs

        return call

    return bind
