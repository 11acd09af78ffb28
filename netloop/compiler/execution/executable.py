"""A network that is compiled for sets of input shapes and called with a dict of arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any

import jax

from netloop.compiler.execution.compiled_program import CompiledProgram
from netloop.compiler.execution.network_programs import NetworkPrograms
from netloop.compiler.execution.program_cache import Given
from netloop.compiler.execution.ready_call import FoundCall, GuardedCall, KnownInputs, ReadyCall
from netloop.compiler.execution.refittable import Refittable
from netloop.compiler.execution.weight_loading import DeviceWeights, loaded_constants
from netloop.compiler.host import Listener
from netloop.compiler.layer_times import layer_times
from netloop.compiler.lower import constants_of
from netloop.compiler.lru_cache import LruCache
from netloop.compiler.phases import Phase
from netloop.compiler.recipe import Recipe
from netloop.model.call_inputs import check_values
from netloop.model.graph.tensor import ITensor
from netloop.model.input_defaults import input_defaults, replaced_defaults, with_inputs
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.process.garbage_collection import collection_paused
from netloop.values.diagnostics import Finding, InputError, did_you_mean, reason
from netloop.values.foreign_arrays import is_borrowed
from netloop.values.types import LARGEST_KNOWN_VALUE
from netloop.values.unpicklable import OF_AN_ENGINE, Unpicklable

MOST_VARIANTS = 16
"""The number of sets of defaults whose programs are kept, for calls that replace them."""

NO_NAMES = frozenset[str]()

Found = tuple[NetworkPrograms, CompiledProgram, DeviceWeights]
"""A program, with those of its network and the weights that belong to it."""


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
        self._ready: ReadyCall | None = None
        self._variants = LruCache[frozenset[str], NetworkPrograms](MOST_VARIANTS)
        self._take_weights()
        self._names = [tensor.name for tensor in network.outputs]
        self._defaults = frozenset(input_defaults(self.network))
        self._watch = watch
        self.forget_programs()
        if not self.absent:
            with self.settings():
                self._programs.compile_declared()
        self._watch = None

    def watch_phase(self, name: str) -> AbstractContextManager[None]:
        """The context of a phase of a compilation: what was given for those made while the object is made."""
        return nullcontext() if self._watch is None else self._watch(name)

    def _take_weights(self) -> None:
        there = [constant for constant in self.constants if constant not in self.absent]
        # in a function that JAX traces, the copies would otherwise be tracers
        with self.settings(), jax.ensure_compile_time_eval():
            loaded = dict(zip(there, loaded_constants(there), strict=True))
        self.weights = DeviceWeights(
            loaded[constant] if constant in loaded else jax.ShapeDtypeStruct(constant.shape, constant.weights.dtype)
            for constant in self.constants
        )
        self._ready = None
        for programs in self._variants:
            for copy, layer in zip(programs.network.layers, self.network.layers, strict=True):
                if isinstance(layer, IConstantLayer) and isinstance(copy, IConstantLayer):
                    copy.weights = layer.weights

    @property
    def latest(self) -> CompiledProgram | None:
        return self._latest.latest

    def prepare(self, inputs: Mapping[str, Any]) -> None:
        replaced = self._replaced(inputs)
        arrays, programs = self._checked(replaced, inputs), self._programs_for(replaced)
        if programs.bucketing:
            programs.bucketing.want(arrays)
        with self.settings():
            self._found(replaced, arrays)

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
        self._programs = NetworkPrograms(self.network, self)
        self._variants = LruCache[frozenset[str], NetworkPrograms](MOST_VARIANTS)
        self._latest = self._programs

    def _replaced(self, inputs: Mapping[str, Any]) -> frozenset[str]:
        """The names of the defaults that a call replaces."""
        return replaced_defaults(self._defaults, inputs) if self._defaults else NO_NAMES

    def _programs_for(self, replaced: frozenset[str]) -> NetworkPrograms:
        """The programs of the network in which the defaults that a call replaces are inputs.

        The weights of defaults that no call replaces thus stay as fast as those of other constants.
        """
        if not replaced:
            return self._programs
        return self._variants.find(replaced, lambda: NetworkPrograms(with_inputs(self.network, sorted(replaced)), self))

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
        replaced = self._replaced(inputs)
        recalled, generation = self._of_one_generation(lambda: self._recalled(replaced, inputs))
        if recalled is not None:
            found, arrays = recalled
            return self._outputs(lambda: self._bound(found, generation), arrays)
        checked = self._checked(replaced, inputs)
        if ready is not None and ready.generation is self.generation:
            # what numpy had to read, such as lists and texts, may now be of the types of the call before
            names = (tensor.name for tensor in self._programs_for(replaced).network.inputs)
            arrays = ready.inputs.arrays(dict(zip(names, checked, strict=True)))
            if arrays is not None:
                return dict(zip(self._names, ready.call(arrays), strict=True))
        return self._outputs(lambda: self._found(replaced, checked), checked)

    def _recalled(self, replaced: frozenset[str], inputs: Mapping[str, Any]) -> tuple[Found, list[Any]] | None:
        """The program of inputs of the types of an earlier call, and these in order; None if there is none."""
        programs = self._programs_for(replaced)
        recalled = programs.recall(inputs)
        return None if recalled is None else ((programs, recalled[0], self.weights), recalled[1])

    def find(self, given: Given) -> FoundCall:
        """Return the call of the program for inputs that were checked, or for their types; compile it if it is new.

        Raises:
            NetworkError: for these inputs the network is invalid, or has no fixed shapes.
        """
        return self._found(NO_NAMES, [*given.values()])

    def _found(self, replaced: frozenset[str], arrays: Sequence[Any]) -> FoundCall:
        """The call for inputs in order, with the weights of one generation."""

        def find() -> Found:
            programs = self._programs_for(replaced)
            return programs, programs.find(dict(zip(programs.network.inputs, arrays, strict=True))), self.weights

        return self._bound(*self._of_one_generation(find))

    def _bound(self, found: Found, generation: object) -> FoundCall:
        programs, program, weights = found
        # a call that needs no search would leave this program the latest
        self._latest, self._ready = programs, None
        is_of_types = program.compiled is not None or program.is_on_host
        is_general = generation is not None and is_of_types and not programs.shape_inputs
        call = GuardedCall(programs.network.inputs, program.bind(weights))
        return FoundCall(call, generation, is_general, program.is_on_host)

    def known_inputs(self, names: Sequence[str], arrays: Sequence[Any]) -> KnownInputs:
        """The exact types of some inputs."""
        return KnownInputs(names, arrays, self._programs.array_type)

    def _outputs(self, find: Callable[[], FoundCall], arrays: list[Any]) -> dict[str, jax.Array | Any]:
        """Look up the program, run it, and remember the call for inputs of the same types."""
        with self.settings():
            call = find()
            known = self.known_inputs([tensor.name for tensor in call.call.tensors], arrays)
            self._ready = ReadyCall.of(call, known, self.settings)
            return dict(zip(self._names, call.call(arrays), strict=True))

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
        watched = frozenset(tensors)
        arrays = dict(zip(self.network.inputs, self._checked(NO_NAMES, inputs), strict=True))
        with self.settings():
            (program, weights), _ = self._of_one_generation(
                lambda: (self._programs.watching(watched).find(arrays), self.weights)
            )
            constants = dict(zip((layer.outputs[0] for layer in self.constants), weights, strict=True))
            outputs = self.recipe.placement.committed(program({**constants, **arrays}, report))
            return dict(zip(self._names, outputs, strict=True))

    def _checked(self, replaced: frozenset[str], inputs: Mapping[str, Any]) -> list[Any]:
        """The arrays of the inputs, in order, if they are valid and no weights are absent."""
        results = self.taken(self._programs_for(replaced).network.inputs, inputs)
        absent = [constant for constant in self.absent if constant.name not in replaced]
        if absent:
            raise InputError(*(_absent(constant) for constant in sorted(absent, key=lambda layer: layer.index)))
        return [*results.values()]

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

    @property
    def shape_inputs(self) -> list[ITensor]:
        """The inputs whose values decide shapes."""
        return self._programs.shape_inputs

    @property
    def program_count(self) -> int:
        """The number of cached programs; inputs of several lengths may share one."""
        programs = chain(self._programs, *self._variants)
        return len({id(program.function or program) for program in programs})


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


def _absent(layer: IConstantLayer) -> Finding:
    fix = "give it weights with a Refitter, and refit_cuda_engine"
    return layer.finding("NL621", f"the plan had no weights for {layer.name!r}", reason("NL621"), fix)
