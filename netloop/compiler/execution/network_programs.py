"""The compiled programs of a network of an executable: the choice between one program, shared ones and the host."""

from __future__ import annotations

from typing import Any, Protocol

import jax

from netloop.compiler.execution.compiled_program import CompiledProgram, ProgramSource, compile_program
from netloop.compiler.execution.input_lengths import InputBucketing
from netloop.compiler.execution.program_cache import Given, ProgramCache, inputs_with_sizes
from netloop.compiler.execution.ready_call import BoundCall
from netloop.compiler.execution.weight_loading import DeviceWeights, HostWeights
from netloop.compiler.host import HostProgram, is_long
from netloop.compiler.lower import has_program
from netloop.compiler.passes import Improved, LoweringForm
from netloop.compiler.phases import PhaseTimer
from netloop.model.check import ValidatedNetwork
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition


class ProgramOwner(ProgramSource, Protocol):
    """An executable, whose networks differ in the defaults that are inputs; ``interruptible`` as it has it."""

    interruptible: bool


class NetworkPrograms(ProgramCache[CompiledProgram]):
    """The programs of a network, with the weights of an executable: one for each set of input shapes, or a shared one.

    Args:
        network: the network of the executable, or a copy in which some defaults are inputs.
        owner: the executable.
    """

    def __init__(self, network: INetworkDefinition, owner: ProgramOwner) -> None:
        self._owner = owner
        self.constants, self.recipe, self.donated = owner.constants, owner.recipe, owner.donated
        self.watch_phase = owner.watch_phase
        self.bucketing = InputBucketing(self, self._shared_on_host) if self._may_share(network) else None
        self._watching: tuple[frozenset[ITensor], ProgramCache[HostProgram]] | None = None
        super().__init__(network, self._compile, owner.recipe.placement, self.bucketing)

    @property
    def weights(self) -> DeviceWeights:
        """The present weights of the executable."""
        return self._owner.weights

    def _may_share(self, network: INetworkDefinition) -> bool:
        """Whether lengths of inputs may share programs; if not, each set of shapes has its own."""
        types = [tensor.type for tensor in network.inputs]
        is_open = not all(type_.is_fixed for type_ in types) and all(type_.is_tensor for type_ in types)
        # a long loop may be interrupted between pieces of its own
        is_for_all = is_open and not self._owner.interruptible and not inputs_with_sizes(network)
        return is_for_all and LoweringForm.BUCKETING in self.recipe.passes

    def compile_declared(self) -> None:
        """Compile the program of the declared types, for which the network is checked already, if they are fixed."""
        inputs = self.network.inputs
        if all(tensor.type.is_fixed for tensor in inputs) and not self.shape_inputs:
            types = {tensor: jax.ShapeDtypeStruct(tensor.type.shape, tensor.type.dtype) for tensor in inputs}
            self.find(types, is_checked=True)

    def watching(self, watched: frozenset[ITensor]) -> ProgramCache[HostProgram]:
        """The programs that report some tensors; kept until other tensors are watched."""
        latest = self._watching
        if latest is not None and latest[0] == watched:
            return latest[1]

        def make(types: TypeTable, validated: ValidatedNetwork, given: Given) -> HostProgram:
            own = self.network, validated, types, self.recipe.host_options, self._owner.interruptible, watched
            return HostProgram(*own, is_bucketed=LoweringForm.BUCKETING in self.recipe.passes)

        programs = ProgramCache(self.network, make, self.recipe.placement)
        self._watching = watched, programs
        return programs

    def _compile(self, types: TypeTable, validated: ValidatedNetwork, given: Given) -> CompiledProgram:
        timer = PhaseTimer(self.watch_phase)
        with timer.phase("passes"):
            source = self.recipe.prepared(self.network, types, validated)
        is_interruptible = self._owner.interruptible and is_long(source.validated.block.steps, source.types)
        if has_program(source.network, source.types) and not is_interruptible:
            return compile_program(self, source, timer, given)
        return self._on_host(source, source.types, timer)

    def _shared_on_host(self, source: Improved, known: TypeTable) -> CompiledProgram:
        return self._on_host(source, known, PhaseTimer(self.watch_phase))

    def _on_host(self, source: Improved, known: TypeTable, timer: PhaseTimer) -> CompiledProgram:
        inputs, load = source.network.inputs, HostWeights(source, self.constants)
        own = source.network, source.validated, source.types, self.recipe.host_options, self._owner.interruptible
        program = HostProgram(
            *own, without=load.steps, phase=timer.phase, refusals=source.refusals, rooms=source.rooms, known=known,
            is_bucketed=LoweringForm.BUCKETING in self.recipe.passes,
        )  # fmt: skip

        with timer.phase("load"):
            load(self.weights)

        def bind(weights: list[Any]) -> BoundCall:
            loaded, placement = load(weights), self.recipe.placement
            return lambda arrays: placement.committed(program({**loaded, **dict(zip(inputs, arrays, strict=True))}))

        return CompiledProgram(bind, program, source.network.loops, notes=source.notes, seconds=timer.seconds)
