"""Engines: compiled networks with TensorRT's interface."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, overload

from netloop.api.build_options import BuildOptions
from netloop.api.context import IExecutionContext
from netloop.api.engine_config import IRuntimeConfig, ISerializationConfig
from netloop.api.engine_plan import load_plan, read_plan, write_plan
from netloop.api.engine_tensors import EngineTensors
from netloop.api.enums import (
    EngineCapability,
    EngineStat,
    ExecutionContextAllocationStrategy,
    HardwareCompatibilityLevel,
    ProfilingVerbosity,
)
from netloop.api.inspector import EngineInspector
from netloop.api.logger import ILogger
from netloop.api.memory import IHostMemory
from netloop.api.observers import IErrorRecorder
from netloop.api.progress import IProgressMonitor, Progress
from netloop.api.stripped_weights import strippable, stripped
from netloop.api.tuning import CacheFile, Tune, tuning_of
from netloop.compiler.execution.executable import Executable, inputs_named
from netloop.compiler.passes import Note, chosen
from netloop.compiler.phases import Phase
from netloop.compiler.placement import device_of
from netloop.compiler.recipe import Recipe
from netloop.compiler.trial import BY
from netloop.compiler.tuning import SECONDS, Candidates, Tuning, fastest
from netloop.model.graph.attributes import check_instance, check_member
from netloop.model.layers.loop import check_max_trips
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest.listing import listing, listing_html, summary
from netloop.model.network import INetworkDefinition
from netloop.process.atomic_write import write_whole
from netloop.process.forked import FORK, require_jax
from netloop.values.checked_attributes import WithStatement, none_or, whole
from netloop.values.devices import Device
from netloop.values.diagnostics import FileFormatError, plain


def compile(
    network: INetworkDefinition,
    *,
    max_trips: int | None = None,
    interruptible: bool = False,
    passes: Iterable[str] | None = None,
    donate: Iterable[str] = (),
    tf32: bool = True,
    progress: IProgressMonitor | None = None,
    tune: Tune = False,
    timing_cache: CacheFile = None,
    tuning_seconds: float = SECONDS,
    device: Device | None = None,
) -> ICudaEngine:
    """Compile a network to an engine.

    The program is compiled here if all input shapes are fixed, otherwise in the first call with new shapes.

    Args:
        network: the network.
        max_trips: the largest number of iterations of a loop, each time it is entered; one more is an ExecutionError.
            None for any number.
        interruptible: whether Ctrl-C ends a call within a second, however long a loop is. Such loops are compiled in
            the first call, and a loop around one runs in Python.
        passes: the names of the optimization passes to apply, of ``netloop.PASSES``; None for all.
        donate: the names of inputs, such as states, whose memory a call may reuse for outputs of the same type; a JAX
            array passed for one cannot be used again.
        tf32: whether products and convolutions of float32 have the precision that JAX is set to now,
            ``jax_default_matmul_precision``: by default the fast one of the device, for which GPUs round the operands
            to TensorFloat-32, 10 bits after the point, and TPUs to bfloat16, 7 bits. If not, they are those of float32
            on every device. It changes nothing on CPUs. TensorRT's ``BuilderFlag.TF32``.
        progress: receives the phases of the compilation made here, and may cancel it; None for no monitor.
        tune: whether the forms of passes whose gain depends on the processor are timed here, and the fastest chosen, in
            place of rules; or the inputs of a typical call to time them with, by name. True makes up the inputs.
        timing_cache: a timing cache, or the path of its file: forms that it has are not timed again, and those that are
            timed are added.
        tuning_seconds: the seconds after which no further form is timed; infinity for no limit.
        device: the device that the engine computes on, with its weights and outputs: a ``jax.Device``, or a name such
            as ``"cpu"``, ``"gpu"`` or ``"cuda:1"``. None for JAX's default device as it is now. Arrays on other devices
            are moved there by each call. It is not in the plan.

    Raises:
        TypeError, ValueError: an argument is not of its range.
        NetworkError: the network is invalid, or its loops and conditionals are nested too deep.
        InputError: there is no such device; inputs for tuning cannot be made up, or the given ones do not fit.
        ExecutionError: a call with the given inputs fails.
        FileFormatError: the timing cache is not one, or is damaged.
        Cancelled: the monitor cancels the compilation.
    """
    check_max_trips("max_trips", max_trips)
    check_instance("interruptible", interruptible, bool)
    donated = inputs_named(donate, check_instance("network", network, INetworkDefinition))
    watched = Progress(none_or(IProgressMonitor)("progress", progress))
    check_instance("tf32", tf32, bool)
    options = BuildOptions(
        max_trips=max_trips, interruptible=interruptible, passes=chosen(passes), donated=donated, tf32=tf32
    )
    options = replace(options, device=None if device is None else device_of(device))
    asked = tuning_of(tune, timing_cache, tuning_seconds, watched.trial)
    with watched.build(1), watched.phase("Compile"), asked as tuning:
        if tuning is None:
            return ICudaEngine(network, options, watched.part)
        return tuned_engine(network, options, tuning, watched.part)


def tuned_engine(
    network: INetworkDefinition, options: BuildOptions, tuning: Tuning, watch: Phase | None
) -> ICudaEngine:
    """Return the engine of a network with the fastest forms; see :func:`netloop.compiler.tuning.fastest`."""
    what_counts = options.max_trips, options.interruptible, sorted(options.passes), sorted(options.donated)
    candidates = Candidates(partial(_executable, network, options, watch), network, options.recipe, what_counts)
    core = fastest(candidates, tuning)
    return ICudaEngine(network, options.with_forms(core.forms), executable=core)


def _executable(network: INetworkDefinition, options: BuildOptions, watch: Phase | None, recipe: Recipe) -> Executable:
    return Executable(network, recipe, options.interruptible, options.absent, options.donated, watch)


def engine_of_plan(data: bytes) -> ICudaEngine | LostEngine:
    """The engine of a plan, which is how pickled engines arrive.

    Raises:
        FileFormatError: the plan is damaged, truncated, of a newer version, or not a plan.
    """
    return LostEngine(data) if FORK.lost_jax else ICudaEngine(*read_plan(data))


class LostEngine:
    """An engine that arrived in a fork of a process that has used JAX: every use of it raises NL612.

    It raises when it is used and not when it arrives, because ``multiprocessing.Pool`` replaces a worker that cannot
    unpickle its task by another one, and waits forever for the result.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return engine_of_plan, (self._data,)

    def __call__(self, *args: Any) -> Any:
        require_jax()

    def __getattr__(self, name: str) -> Any:
        # pickle and copy look for optional methods of such names
        if not name.startswith("__"):
            require_jax()
        raise AttributeError(f"an engine has no attribute {name!r}")


def load(path: str | os.PathLike[str], *, device: Device | None = None) -> ICudaEngine:
    """Return the engine of a plan in a file, written by :meth:`ICudaEngine.save`.

    The file may also hold the bytes of ``serialize`` or ``build_serialized_network``, or a plan of a network alone,
    which is compiled with the default options.

    Args:
        path: the file.
        device: the device that the engine computes on, as for :func:`netloop.compile`; None for JAX's default one.

    Raises:
        InputError: there is no such device.
        FileFormatError: the file is damaged, truncated, of a newer version, or not a plan; the error names it.
        NetworkError: the network is invalid.
        OSError: the file cannot be read, or is not a regular file.
    """
    try:
        network, options = load_plan(path)
        return ICudaEngine(network, replace(options, device=None if device is None else device_of(device)))
    except FileFormatError as error:
        reader = MODELS.get(Path(path).suffix.lower())
        if reader is None:
            raise
        fix = f"{reader} reads models of this format, and netloop.compile makes an engine of the network"
        raise FileFormatError(*(replace(finding, fix=fix) for finding in error.findings)) from None


MODELS = {".onnx": "netloop.onnx.load", ".xml": "netloop.openvino.load"}
"""The functions that read files of other formats, by the ends of their names."""


class ICudaEngine(WithStatement, EngineTensors):
    """A compiled network, called with arrays by name: ``engine(x=x)["y"]``, or ``engine({"x": x})["y"]``.

    It keeps its own copy of the network and of the weights; later edits do not reach it. The name is TensorRT's: it
    runs on any device that JAX supports. It can be pickled and copied: its plan is, and the copy compiles its programs
    itself.

    Attributes:
        build_options: the options of its build.
        error_recorder: receives errors; None for no recorder.
    """

    error_recorder: IErrorRecorder | None = None

    CHECKS = {"error_recorder": none_or(IErrorRecorder)}

    def __init__(
        self,
        network: INetworkDefinition,
        options: BuildOptions | None = None,
        watch: Phase | None = None,
        *,
        executable: Executable | None = None,
    ) -> None:
        kept = options or BuildOptions()
        core = _executable(network, kept, watch, kept.recipe) if executable is None else executable
        own = {"network": core.network, "recipe": core.recipe, "trials": core.trials}
        vars(self).update(own, build_options=kept, executable=core)
        self._budget = 0
        if kept.is_tuned_elsewhere:
            self.log(ILogger.WARNING, str(_tuned_elsewhere(kept)))

    def __reduce_ex__(self, protocol: object) -> Any:
        return engine_of_plan, (bytes(self.serialize()),)

    def create_execution_context(
        self,
        strategy: ExecutionContextAllocationStrategy | IRuntimeConfig = ExecutionContextAllocationStrategy.STATIC,
        runtime_config: IRuntimeConfig | None = None,
    ) -> IExecutionContext[ICudaEngine]:
        """Create a context, through which the engine runs on addresses.

        The strategy, which may also be given as a runtime config, has no effect.
        """
        config = strategy if isinstance(strategy, IRuntimeConfig) else runtime_config
        if config is None:
            return IExecutionContext(self, IRuntimeConfig(strategy))  # pyright: ignore[reportArgumentType]
        return IExecutionContext(self, check_instance("runtime_config", config, IRuntimeConfig))

    def create_runtime_config(self) -> IRuntimeConfig:
        """Create a runtime config with the default settings."""
        return IRuntimeConfig()

    def create_execution_context_without_device_memory(self) -> IExecutionContext[ICudaEngine]:
        """Create a context. From TensorRT 10."""
        return IExecutionContext(self)

    def create_engine_inspector(self) -> EngineInspector:
        """Create an inspector, which reports the layers and loops of the engine."""
        return EngineInspector(self, self.build_options.verbosity, self.tensor_names, self.trials)

    def serialize(self) -> IHostMemory:
        """The plan of the engine, ready to be written to a file."""
        return self.serialize_with_config(ISerializationConfig())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan of the engine to a file, which :func:`netloop.load` reads.

        The file is written next to ``path`` and then renamed, so that at any time the old file or the new one exists.

        Raises:
            OSError: the file cannot be written; the old one is unchanged.
        """
        write_whole(Path(path), [memoryview(self.serialize())])

    def create_serialization_config(self) -> ISerializationConfig:
        """Create a config for ``serialize_with_config`` with the default settings."""
        return ISerializationConfig()

    def serialize_with_config(self, arg0: ISerializationConfig) -> IHostMemory:
        """The plan of the engine; EXCLUDE_WEIGHTS leaves out all refittable weights of more than 1 KiB."""
        config = check_instance("config", arg0, ISerializationConfig)
        without = stripped(config, self.constants, self.refittable_constants, self.absent)
        return write_plan(self.network, self.build_options, without)

    @property
    def refittable_constants(self) -> list[IConstantLayer]:
        """The constants whose weights can be replaced."""
        marks, name = self.network.marks.refittable, self.network.weights_name
        return [
            constant for constant in self.constants if not self.build_options.marked_only or name(constant) in marks
        ]

    @overload
    def __call__(self) -> Self: ...  # pyright: ignore[reportOverlappingOverload]

    @overload
    def __call__(self, inputs: Mapping[str, Any], /) -> dict[str, Any]: ...

    @overload
    def __call__(self, **named: Any) -> dict[str, Any]: ...

    def __call__(self, *inputs: Any, **named: Any) -> Self | dict[str, Any]:
        """Run the network, and return its outputs by name: ``engine({"x": x})``, or ``engine(x=x)``.

        Without an argument, return the engine itself: tools such as Polygraphy take an engine or a function that makes
        one, and call whatever is callable. A network without inputs runs by ``engine({})``.

        Args:
            inputs: a dict with an array for each input, by its name; see :meth:`Executable.__call__`.
            named: the arrays as arguments, instead of the dict.

        Raises:
            TypeError: there are both a dict and named arrays.
            InputError, NetworkError, ExecutionError: the inputs do not fit, or a computation failed.
        """
        if not named:
            return self.executable(*inputs) if inputs else self
        if inputs:
            raise TypeError("an engine takes a dict of arrays, or the arrays by name, and not both")
        if [*named] == ["inputs"] and isinstance(named["inputs"], Mapping):
            names = [tensor.name for tensor in self.network.inputs]
            return self.executable(named if "inputs" in names else named["inputs"])
        return self.executable(named)

    # ------------------------------------------------------------------ properties

    def __repr__(self) -> str:
        """A line; the listing of the layers is ``str(engine)``."""
        return f"<ICudaEngine {summary(self.network)}, {self.program_count} compiled>"

    def __str__(self) -> str:
        """The listing of its network, then how each loop of the latest program runs."""
        loops = [
            f"  {plain(name)} runs as {strategy.name}: {strategy.why}"
            for name, strategy in sorted(self.loop_strategies.items())
        ]
        return "\n".join([f"engine of {listing(self.network)}", *loops])

    def _repr_html_(self) -> str:
        """The listing for notebooks."""
        return listing_html(self.network)

    @property
    def notes(self) -> list[Note]:
        """The forms that tuning timed and chose, then the changes that the passes made for the latest program."""
        options = self.build_options
        return [*([_tuned_elsewhere(options)] if options.is_tuned_elsewhere else []), *super().notes]

    @property
    def num_layers(self) -> int:
        """The number of layers of the network."""
        return self.network.num_layers

    @property
    def profiling_verbosity(self) -> ProfilingVerbosity:
        """How much an inspector reports about the layers."""
        return self.build_options.verbosity

    @property
    def engine_capability(self) -> EngineCapability:
        """STANDARD, always."""
        return EngineCapability.STANDARD

    @property
    def hardware_compatibility_level(self) -> HardwareCompatibilityLevel:
        """NONE: every plan runs wherever JAX does."""
        return HardwareCompatibilityLevel.NONE

    @property
    def refittable(self) -> bool:
        """Whether any of its weights can be replaced."""
        return bool(self.refittable_constants)

    @property
    def num_aux_streams(self) -> int:
        """0: XLA has streams of its own, and needs none of the caller's."""
        return 0

    @property
    def device_memory_size_v2(self) -> int:
        """The memory of the device in bytes that a run needs; see :attr:`Engine.scratch_size`."""
        return self.scratch_size

    def get_device_memory_size_for_profile_v2(self, profile_index: int) -> int:
        """``device_memory_size_v2``, because programs are compiled for shapes and not for profiles."""
        self.profile_of(operator.index(profile_index))
        return self.scratch_size

    @property
    def tactic_sources(self) -> int:
        """The sources of kernels in the config of the build, one bit each."""
        return self.build_options.tactic_sources

    device_memory_size = device_memory_size_v2

    def get_device_memory_size_for_profile(self, profile_index: int) -> int:
        """``get_device_memory_size_for_profile_v2``. From TensorRT 10."""
        return self.get_device_memory_size_for_profile_v2(profile_index)

    @property
    def has_implicit_batch_dimension(self) -> bool:
        """False: every axis is in the shape."""
        return False

    def get_engine_stat(self, stat: EngineStat = EngineStat.TOTAL_WEIGHTS_SIZE) -> int:
        """The size in bytes of all weights, or of those in a plan with all strippable weights left out."""
        total = sum(constant.weights.nbytes for constant in self.constants)
        if check_member("stat", stat, EngineStat) is EngineStat.TOTAL_WEIGHTS_SIZE:
            return total
        return total - sum(constant.weights.nbytes for constant in strippable(self.refittable_constants))

    # ------------------------------------------------------------------ weight streaming

    @property
    def streamable_weights_size(self) -> int:
        """0: weights stay on the device."""
        return 0

    weight_streaming_scratch_memory_size = streamable_weights_size

    @property
    def weight_streaming_budget_v2(self) -> int:
        """The budget that was set last, in bytes; it has no effect, because weights stay on the device."""
        return self._budget

    @weight_streaming_budget_v2.setter
    def weight_streaming_budget_v2(self, budget: int) -> None:
        self._budget = whole(0)("weight_streaming_budget_v2", budget)
        self.log(ILogger.INFO, "no effect in netloop, because weights stay on the device: weight_streaming_budget_v2")

    def get_weight_streaming_automatic_budget(self) -> int:
        """0: weights stay on the device."""
        return 0


def _tuned_elsewhere(options: BuildOptions) -> Note:
    return Note(BY, f"rules decide, because the engine was tuned on another machine: {options.tuned_on}")
