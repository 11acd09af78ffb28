"""A network that is compiled for sets of input shapes and called with a dict of arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

from netloop.compiler.execution.compiled_program import CompiledProgram, compile_program
from netloop.compiler.execution.input_lengths import InputBucketing
from netloop.compiler.execution.program_cache import Given, ProgramCache, inputs_with_sizes
from netloop.compiler.execution.ready_call import BoundCall, FoundCall, GuardedCall, KnownInputs, ReadyCall
from netloop.compiler.execution.refittable import Refittable
from netloop.compiler.execution.weight_loading import DeviceWeights, HostWeights, own_copy
from netloop.compiler.host import HostProgram, Listener, is_long
from netloop.compiler.layer_times import layer_times
from netloop.compiler.lower import constants_of, has_program
from netloop.compiler.passes import Improved, LoweringForm
from netloop.compiler.phases import Phase, PhaseTimer
from netloop.compiler.recipe import Recipe
from netloop.model.call_inputs import check_values
from netloop.model.check import ValidatedNetwork
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.tensor import ITensor
from netloop.model.input_defaults import input_defaults, replaced_defaults, with_inputs
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.process.garbage_collection import collection_paused
from netloop.values.diagnostics import Finding, InputError, did_you_mean, reason
from netloop.values.foreign_arrays import is_borrowed
from netloop.values.string_arrays import STRING
from netloop.values.types import LARGEST_KNOWN_VALUE
from netloop.values.unpicklable import OF_AN_ENGINE, Unpicklable


class Executable(Unpicklable, Refittable):
    """A compiled network, called with a dict of arrays.

    It keeps its own copy of the network and of the weights; later edits do not reach it. The program is compiled here
    if all input shapes are fixed, otherwise in the first call with new shapes.

    Attributes:
        network: the network.
        recipe: the decisions by which its programs are made.
        constants: the constants that are arguments of its programs.
        weights: their values on the device, or the types of those that are absent; they can be replaced without
            compiling a program again.
        interruptible: whether a long loop can be interrupted.
        donated: the names of the inputs whose memory a call may reuse.
        absent: the constants that have no weights yet.
    """

    UNPICKLABLE = OF_AN_ENGINE

    def __init__(
        self,
        network: INetworkDefinition,
        recipe: Recipe,
        interruptible: bool = False,
        absent: Collection[int] = (),
        donate: Iterable[str] = (),
        watch: Phase | None = None,
    ) -> None:
        with collection_paused:
            recipe.validated(network)
            # these are copied to the device; smaller arrays may be part of types
            large = [constant for constant in constants_of(network) if constant.weights.nbytes > LARGEST_KNOWN_VALUE]
            self.network = network.copy(sharing=large)
        self.constants = constants_of(self.network)
        self.recipe, self.interruptible = recipe, interruptible
        self.donated = inputs_named(donate, network)
        self.absent = {constant for constant in self.constants if constant.index in absent}
        super().__init__()
        self._take_weights()
        self._names = [tensor.name for tensor in network.outputs]
        self._defaults = frozenset(input_defaults(self.network))
        self._bucketing = self._bucketing_of_inputs()
        self._programs = ProgramCache(self.network, self._compile, recipe.placement, self._bucketing)
        self._watch: Phase | None = None
        self._watching: tuple[frozenset[ITensor], ProgramCache[HostProgram]] | None = None
        is_known = all(tensor.type.is_fixed for tensor in self.network.inputs) and not self._programs.shape_inputs
        if is_known and not self.absent:
            self._compile_declared(watch)

    def _compile_declared(self, watch: Phase | None) -> None:
        """Compile the program of the declared types, for which the network is checked already."""
        with self.settings():
            self._watch = watch
            types = {
                tensor: jax.ShapeDtypeStruct(tensor.type.shape, tensor.type.dtype) for tensor in self.network.inputs
            }
            self._programs.find(types, is_checked=True)
            self._watch = None

    def _bucketing_of_inputs(self) -> InputBucketing | None:
        """The sharing of programs between lengths of inputs; None if each set of shapes is to have its own."""
        types = [tensor.type for tensor in self.network.inputs]
        is_open = not all(type_.is_fixed for type_ in types) and all(type_.is_tensor for type_ in types)
        # a long loop may be interrupted between pieces of its own
        is_for_all = is_open and not self.interruptible and not inputs_with_sizes(self.network)
        is_chosen = LoweringForm.BUCKETING in self.recipe.passes
        return InputBucketing(self, self._shared_on_host) if is_for_all and is_chosen else None

    def watch_phase(self, name: str) -> AbstractContextManager[None]:
        """The context of a phase of a compilation: what was given for those made while the object is made."""
        return nullcontext() if self._watch is None else self._watch(name)

    def _take_weights(self) -> None:
        there = [constant for constant in self.constants if constant not in self.absent]
        # in a function that JAX traces, the copies would otherwise be tracers
        with self.settings(), jax.ensure_compile_time_eval():
            loaded = dict(zip(there, _loaded(there), strict=True))
        self.weights = DeviceWeights(
            loaded[constant] if constant in loaded else jax.ShapeDtypeStruct(constant.shape, constant.weights.dtype)
            for constant in self.constants
        )
        self._variants: dict[frozenset[str], Executable] = {}
        self._ready: ReadyCall | None = None

    @property
    def latest(self) -> CompiledProgram | None:
        return self._programs.latest

    def prepare(self, inputs: Mapping[str, Any]) -> None:
        variant = self._variant(inputs)
        if variant is not None:
            variant.prepare(inputs)
            return
        arrays = self._checked(inputs)
        if self._bucketing:
            self._bucketing.want(arrays)
        with self.settings():
            self.find(arrays)

    def run_to_end(self, inputs: Mapping[str, Any]) -> None:
        jax.block_until_ready(self(inputs))

    def layer_times(self, inputs: Mapping[str, Any], calls: int = 10) -> dict[str, float]:
        """The seconds that each layer takes in a call, by its name, the longest first, from the profiler of JAX.

        XLA fuses layers: the time of a fusion is that of its last layer. A loop has the time that no layer in it has:
        all of it where XLA compiles the loop as one operation. ``(other)`` is the rest. On CPUs, operations of several
        threads add up to more than a call takes. The result is empty where steps run on the host.

        Args:
            inputs: as for a call.
            calls: the number of calls, after a first one, of which the times are the means.

        Raises:
            InputError, NetworkError, ExecutionError: as a call does.
        """
        self.run_to_end(inputs)
        latest = self.latest
        if latest is None or latest.function is None or latest.network is None:
            return {}
        parts = *latest.network.loops, *latest.network.layers
        return layer_times(lambda: self.run_to_end(inputs), calls, latest.function.text, parts)

    def forget_programs(self) -> None:
        self._bucketing = self._bucketing_of_inputs()
        self._programs = ProgramCache(self.network, self._compile, self.recipe.placement, self._bucketing)
        self._watching = None

    def _variant(self, inputs: Mapping[str, Any]) -> Executable | None:
        """The executable in which the defaults that a call replaces are inputs; None if it replaces none.

        The weights of defaults that no call replaces thus stay as fast as those of other constants.
        """
        names = replaced_defaults(self._defaults, inputs) if self._defaults else None
        if not names:
            return None
        with self._refit:
            if names not in self._variants:
                absent = {constant.index for constant in self.absent if constant.name not in names}
                network = with_inputs(self.network, sorted(names))
                self._variants[names] = Executable(network, self.recipe, self.interruptible, absent, self.donated)
            return self._variants[names]

    def __call__(self, inputs: Mapping[str, Any], /) -> dict[str, jax.Array | Any]:
        """Run the network; return the outputs by name, in the order in which they were marked.

        Args:
            inputs: an array for each input, of exactly its element type and shape: of JAX, or whatever numpy or the
                protocols of DLPack and CUDA arrays read, on any device; a list of arrays for a sequence, None for an
                absent optional value. Inputs with a default may be left out; the first call that has one compiles.
                Outputs have the same forms, with arrays of JAX on the engine's device.

        Raises:
            InputError: an input is missing, unknown, or of another element type or shape; or weights are missing.
            NetworkError: the network is invalid for these shapes.
            ExecutionError: a computation failed, for instance a loop with more iterations than its output has rows.
        """
        ready = self._ready
        if ready is not None and ready.generation is self.generation:
            arrays = ready.inputs.arrays(inputs)
            if arrays is not None:
                return dict(zip(self._names, ready.call(arrays), strict=True))
        variant = self._variant(inputs)
        if variant is not None:
            return variant(inputs)
        (known, weights), generation = self._of_one_generation(lambda: (self._programs.recall(inputs), self.weights))
        if known is not None:
            program, arrays = known
            return self._outputs(lambda: self._found(program, weights, generation), arrays)
        given = self._checked(inputs)
        return self._outputs(lambda: self.find(given), [*given.values()])

    def find(self, given: Given) -> FoundCall:
        """Return the call of the program for inputs that were checked, or for their types; compile it if it is new.

        Raises:
            NetworkError: for these inputs the network is invalid, or has no fixed shapes.
        """
        (program, weights), generation = self._of_one_generation(lambda: (self._programs.find(given), self.weights))
        return self._found(program, weights, generation)

    def known_inputs(self, names: Sequence[str], arrays: Sequence[Any]) -> KnownInputs:
        """The exact types of some inputs."""
        return KnownInputs(names, arrays, self._programs.array_type)

    def _found(self, program: CompiledProgram, weights: DeviceWeights, generation: object) -> FoundCall:
        is_general = generation is not None and program.compiled is not None and not self.shape_inputs
        return FoundCall(GuardedCall(self.network.inputs, program.bind(weights)), generation, is_general)

    def _outputs(self, find: Callable[[], FoundCall], arrays: list[Any]) -> dict[str, jax.Array | Any]:
        """Look up the program, run it, and remember the call for inputs of the same types."""
        with self.settings():
            call = find()
            self._ready = self._ready_call(call, arrays) if call.is_general else None
            return dict(zip(self._names, call.call(arrays), strict=True))

    def _ready_call(self, call: FoundCall, arrays: list[Any]) -> ReadyCall | None:
        """The call for inputs of the types of some arrays, if it needs no settings of JAX."""
        known = self.known_inputs([tensor.name for tensor in self.network.inputs], arrays)
        return None if known.needs_settings else ReadyCall(known, call.call, call.generation)

    def watch(
        self, inputs: Mapping[str, Any], tensors: Iterable[ITensor], report: Listener
    ) -> dict[str, jax.Array | Any]:
        """Run the network step by step on the host, and report the values of some tensors as they are computed.

        Each element is reported once, in the order of the iterations. The element after the last iteration is reported
        too if it is computed, as that of a recurrence is. Values that are not computed, such as those of the branch not
        taken, are not reported.

        Args:
            inputs: as for a call.
            tensors: the tensors, of this engine's network.
            report: called with a tensor, the iterations of the loops in which it varies, and its value; an exception
                that it raises ends the run.

        Raises:
            InputError, NetworkError, ExecutionError: as a call does.
        """
        watched, given = frozenset(tensors), self._checked(inputs)

        with self.settings():
            (program, weights), _ = self._of_one_generation(
                lambda: (self._watching_programs(watched).find(given), self.weights)
            )
            outputs = self.recipe.placement.committed(program({**self._values_of(weights), **given}, report))
            return dict(zip(self._names, outputs, strict=True))

    def _watching_programs(self, watched: frozenset[ITensor]) -> ProgramCache[HostProgram]:
        """The programs that report some tensors; kept until other tensors are watched."""
        latest = self._watching
        if latest is not None and latest[0] == watched:
            return latest[1]

        def make(types: TypeTable, validated: ValidatedNetwork, given: Given) -> HostProgram:
            own, recipe = (self.network, validated, types, self.recipe.max_trips, self.interruptible), self.recipe
            is_bucketed = LoweringForm.BUCKETING in recipe.passes
            return HostProgram(
                *own, watched, precision=recipe.precision, platform=recipe.target, is_bucketed=is_bucketed
            )

        programs = ProgramCache(self.network, make, self.recipe.placement)
        self._watching = watched, programs
        return programs

    def _checked(self, inputs: Mapping[str, Any]) -> Given:
        results = self.taken(self.network.inputs, inputs)
        if self.absent:
            raise InputError(*(_absent(constant) for constant in sorted(self.absent, key=lambda layer: layer.index)))
        return results

    def taken(self, tensors: Sequence[ITensor], inputs: Mapping[str, Any]) -> Given:
        """The arrays for some inputs, on the device of the engine or of numpy; the errors are those of a call.

        A tensor of another library keeps its memory: it is copied where it would be donated.
        """
        arrays, place = check_values(tensors, inputs), self.recipe.placement
        donated = (key for key in arrays if key.name in self.donated)
        kept = [key for key in donated if is_borrowed(arrays[key], inputs[key.name])]
        if kept:
            with self.settings():
                arrays.update((key, place.copied(arrays[key])) for key in kept)
        return place.moved(arrays)

    def _shared_on_host(self, source: Improved, known: TypeTable) -> CompiledProgram:
        return self._on_host(source, known, PhaseTimer(self.watch_phase))

    def _compile(self, types: TypeTable, validated: ValidatedNetwork, given: Given) -> CompiledProgram:
        timer = PhaseTimer(self.watch_phase)
        with timer.phase("passes"):
            source = self.recipe.for_a_program(self.network, types, validated)
        is_interruptible = self.interruptible and is_long(source.validated.block.steps, source.types)
        if has_program(source.network, source.types) and not is_interruptible:
            return compile_program(self, source, timer, given)
        return self._on_host(source, source.types, timer)

    def _on_host(self, source: Improved, known: TypeTable, timer: PhaseTimer) -> CompiledProgram:
        inputs, load = source.network.inputs, HostWeights(source, self.constants)
        own = source.network, source.validated, source.types
        recipe, placement = self.recipe, self.recipe.placement
        program = HostProgram(
            *own, recipe.max_trips, self.interruptible, without=load.steps, phase=timer.phase,
            precision=recipe.precision, platform=recipe.target, refusals=source.refusals,
            rooms=source.rooms, known=known,
            is_bucketed=LoweringForm.BUCKETING in recipe.passes,
        )  # fmt: skip

        with timer.phase("load"):
            load(self.weights)

        def bind(weights: list[Any]) -> BoundCall:
            loaded = load(weights)
            return lambda arrays: placement.committed(program({**loaded, **dict(zip(inputs, arrays, strict=True))}))

        return CompiledProgram(bind, program, source.network.loops, notes=source.notes, seconds=timer.seconds)

    def _values_of(self, weights: list[Any]) -> dict[ITensor, Any]:
        return {layer.outputs[0]: array for layer, array in zip(self.constants, weights, strict=True)}

    @property
    def shape_inputs(self) -> list[ITensor]:
        """The inputs whose values decide shapes."""
        return self._programs.shape_inputs

    @property
    def program_count(self) -> int:
        """The number of cached programs; inputs of several lengths may share one."""
        return len({id(program.function or program) for program in self._programs})


def inputs_named(names: Iterable[str], network: INetworkDefinition) -> frozenset[str]:
    """Check the names of inputs, and return them as a set.

    Raises:
        TypeError: a name is not a string.
        ValueError: the network has no input of a name.
    """
    is_list = isinstance(names, Iterable) and not isinstance(names, str)
    listed = tuple(names) if is_list else ()
    if not is_list or not all(isinstance(name, str) for name in listed):
        raise TypeError("donate is a list of the names of inputs")
    known = [tensor.name for tensor in network.inputs]
    for name in listed:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"the network has no input {name!r} to donate" + (hint and f"; {hint}"))
    return frozenset(listed)


def _loaded(layers: list[IConstantLayer]) -> list[Any]:
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


def _absent(layer: IConstantLayer) -> Finding:
    fix = "give it weights with a Refitter, and refit_cuda_engine"
    return layer.finding("NL621", f"the plan had no weights for {layer.name!r}", reason("NL621"), fix)
