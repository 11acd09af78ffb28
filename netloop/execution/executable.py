"""A network compiled, and compiled anew for each set of input shapes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from netloop.call_inputs import check_values
from netloop.check import ValidatedNetwork, require_valid
from netloop.checked_attributes import Settings
from netloop.diagnostics import Finding, InputError, did_you_mean, reason
from netloop.execution.compiled_program import Ready, make_ready
from netloop.execution.jax_settings import on_device
from netloop.execution.program_cache import Given, Programs
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, check_instance
from netloop.graph.tensor import ITensor
from netloop.host import HostProgram, Listener, is_long
from netloop.layers.loop import ILoop, check_max_trips
from netloop.layers.sources import IConstantLayer
from netloop.lower import constants_of, has_program
from netloop.lower.loop.strategy import LoopStrategy
from netloop.network import INetworkDefinition
from netloop.passes import Note, chosen


class Executable(Settings):
    """A compiled network, called with a dict of arrays.

    It keeps its own copy of the network and of the weights; later edits do not reach it. Where all input shapes are
    fixed the program is compiled here, else in the first call that brings new shapes.

    Attributes:
        network: the network.
        constants: the constants that are arguments of its programs.
        weights: their values on the device, or the types of those that are absent; others may take their places, and no
            program is compiled anew.
        max_trips: how many trips a loop may make, each time that it is entered; None for any number.
        interruptible: whether a long loop can be interrupted.
        passes: the names of the passes that its programs are made with.
        donated: the names of the inputs whose memory a call may take.
        absent: the constants that have no weights yet.
    """

    network: INetworkDefinition
    constants: list[IConstantLayer]
    weights: list[jax.Array | jax.ShapeDtypeStruct]
    max_trips: int | None
    interruptible: bool
    passes: frozenset[str]
    donated: frozenset[str]
    absent: set[IConstantLayer]

    def __init__(
        self,
        network: INetworkDefinition,
        max_trips: int | None = None,
        interruptible: bool = False,
        absent: Collection[int] = (),
        passes: Iterable[str] | None = None,
        donate: Iterable[str] = (),
    ) -> None:
        check_max_trips("max_trips", max_trips)
        require_valid(check_instance("network", network, INetworkDefinition))
        network = network.copy()
        constants = constants_of(network)
        vars(self).update(network=network, constants=constants, max_trips=max_trips, interruptible=interruptible)
        vars(self).update(passes=chosen(passes), donated=inputs_named(donate, network))
        vars(self)["absent"] = {each for each in constants if each.index in absent}
        self.take_weights()
        self._names = [each.name for each in network.outputs]
        self._programs = Programs(network, self._compile)
        self._watching: tuple[frozenset[ITensor], Programs[HostProgram]] | None = None
        if not (self.absent or self._programs.shape_inputs) and all(each.type.is_fixed for each in network.inputs):
            with on_device():
                self._programs.find({each: jax.ShapeDtypeStruct(*_shape_and_type(each)) for each in network.inputs})

    def take_weights(self) -> None:
        """Bring the arrays of the constants to the device, as they are now; programs under way keep the old ones."""
        with on_device(), jax.ensure_compile_time_eval():
            vars(self)["weights"] = [
                jax.ShapeDtypeStruct(each.shape, each.weights.dtype)
                if each in self.absent
                else jnp.array(each.evaluate())
                for each in self.constants
            ]

    def forget_programs(self) -> None:
        """Compile anew in the next call, as weights that are part of the programs have changed."""
        self._programs = Programs(self.network, self._compile)
        self._watching = None

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, jax.Array | Any]:
        """The outputs by name, in the order in which they were marked.

        Args:
            inputs: an array for each input, numpy's or JAX's, of exactly its element type and shape; a list of arrays
                for a sequence, None for what is absent. Outputs are given alike.

        Raises:
            InputError: an input is missing, unknown, or of another element type or shape; or weights are missing.
            NetworkError: for these shapes the network has no meaning.
            ExecutionError: something without a meaning was met, such as more trips than an output has room for.
        """
        known = self._programs.recall(inputs)
        if known is None:
            given = self._checked(inputs)
            return self._outputs(lambda: self._programs.find(given).run(self.weights, list(given.values())))
        program, arrays = known
        return self._outputs(lambda: program.run(self.weights, arrays))

    def watch(
        self, inputs: Mapping[str, Any], tensors: Iterable[ITensor], tell: Listener
    ) -> dict[str, jax.Array | Any]:
        """The same, step by step on the host, telling of some tensors as they are computed.

        Each element is told once, in the order of the trips. The element after the last trip is told too where it is
        computed, as that of a recurrence is. What is not computed, as in a branch not taken, is not told.

        Args:
            inputs: as for a call.
            tensors: the tensors, of this engine's network.
            tell: takes a tensor, the trips of the loops in which it varies, and its value; what it raises ends the run.

        Raises:
            InputError, NetworkError, ExecutionError: as a call does.
        """
        programs, given = self._programs_that_tell(frozenset(tensors)), self._checked(inputs)
        return self._outputs(lambda: programs.find(given)({**self._values_of(self.weights), **given}, tell))

    def _programs_that_tell(self, watched: frozenset[ITensor]) -> Programs[HostProgram]:
        """The programs that tell of some tensors; they are kept until others are asked for."""
        latest = self._watching
        if latest is not None and latest[0] == watched:
            return latest[1]

        def make(types: TypeTable, validated: ValidatedNetwork, given: Given) -> HostProgram:
            return HostProgram(self.network, validated, self.max_trips, self.interruptible, watched)

        programs = Programs(self.network, make)
        self._watching = watched, programs
        return programs

    def _checked(self, inputs: Mapping[str, Any]) -> Given:
        given = check_values(self.network.inputs, inputs)
        if self.absent:
            raise InputError(*(_absent(each) for each in sorted(self.absent, key=lambda layer: layer.index)))
        return given

    def _outputs(self, run: Callable[[], list[Any]]) -> dict[str, jax.Array | Any]:
        """The outputs by name, as something gives them."""
        with on_device():
            return dict(zip(self._names, run(), strict=True))

    def _compile(self, types: TypeTable, validated: ValidatedNetwork, given: Given) -> Ready:
        if not has_program(self.network, types) or (self.interruptible and is_long(validated.block.steps, types)):
            return self._on_host(HostProgram(self.network, validated, self.max_trips, self.interruptible))
        return make_ready(self, types, validated, given)

    def _on_host(self, program: HostProgram) -> Ready:
        def run(weights: list[Any], arrays: list[Any]) -> list[Any]:
            return program({**self._values_of(weights), **dict(zip(self.network.inputs, arrays, strict=True))})

        return Ready(run, program, self.network.loops)

    def _values_of(self, weights: list[Any]) -> dict[ITensor, Any]:
        return {layer.outputs[0]: array for layer, array in zip(self.constants, weights, strict=True)}

    @property
    def shape_inputs(self) -> list[ITensor]:
        """The inputs whose values decide shapes."""
        return self._programs.shape_inputs

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the latest program takes beside inputs, outputs and weights; 0 if XLA does not tell.

        A program that runs on the host takes what its pieces take, which nobody tells.
        """
        compiled = self._programs.latest.compiled if self._programs.latest else None
        analysis = compiled.memory_analysis() if compiled is not None else None
        return int(analysis.temp_size_in_bytes) if analysis is not None else 0

    @property
    def program_count(self) -> int:
        """The number of programs that are kept."""
        return len(self._programs)

    @property
    def loop_strategies(self) -> dict[str, LoopStrategy]:
        """How each loop ran in the latest program, and why, by its name, and its number if others share the name."""
        return self._by_name("loop_strategies")

    @property
    def batched_layers(self) -> dict[str, list[ILayer]]:
        """The layers of each loop that the latest program runs for many trips at once, by the name of the loop."""
        return self._by_name("batched_layers")

    @property
    def notes(self) -> list[Note]:
        """What passes did for the latest program."""
        latest = self._programs.latest
        return latest.notes if latest else []

    def profile(self, inputs: Mapping[str, Any]) -> dict[str, float]:
        """How long each phase takes for some inputs, in seconds, in the order of the phases.

        ``passes``, ``load``, ``trace`` and ``compile`` are what making the program took, when it was made; none are
        told of a program that runs on the host. ``call`` is a call of now, until all outputs are there.

        Raises:
            InputError, NetworkError, ExecutionError: as a call does.
        """
        self(inputs)
        latest = self._programs.latest
        began = time.perf_counter()
        jax.block_until_ready(self(inputs))
        return {**(latest.seconds if latest else {}), "call": time.perf_counter() - began}

    def _by_name(self, what: str) -> dict[str, Any]:
        latest = self._programs.latest
        told: dict[ILoop, Any] = getattr(latest.program, what) if latest else {}
        names = [loop.name for loop in self.network.loops]
        by_name: dict[str, Any] = {}
        for number, loop in enumerate(latest.loops if latest else []):
            if loop in told:
                by_name[loop.name if names.count(loop.name) == 1 else f"{loop.name}#{number}"] = told[loop]
        return by_name


def inputs_named(names: Iterable[str], network: INetworkDefinition) -> frozenset[str]:
    """The names of inputs, if there are such inputs.

    Raises:
        TypeError: they are no strings.
        ValueError: there is no such input.
    """
    listed = () if isinstance(names, str) else tuple(names)
    if isinstance(names, str) or not all(isinstance(each, str) for each in listed):
        raise TypeError("donate is a list of the names of inputs")
    known = [each.name for each in network.inputs]
    for name in listed:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"the network has no input {name!r} to donate" + (hint and f"; {hint}"))
    return frozenset(listed)


def _absent(layer: IConstantLayer) -> Finding:
    fix = "give it weights with a Refitter, and refit_cuda_engine"
    return layer.finding("NL621", f"the plan had no weights for {layer.name!r}", reason("NL621"), fix)


def _shape_and_type(tensor: ITensor) -> tuple[Any, Any]:
    return tensor.type.shape, tensor.type.dtype
