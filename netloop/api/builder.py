"""The builder, which creates networks and builds engines and plans from them."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, TypeVar

from netloop.api.allocators import IGpuAllocator
from netloop.api.build_options import BuildOptions
from netloop.api.config import IBuilderConfig
from netloop.api.current_gpu import current_gpu
from netloop.api.engine import ICudaEngine, tuned_engine
from netloop.api.enums import BuilderFlag, ErrorCodeTRT, SerializationFlag
from netloop.api.logger import ILogger
from netloop.api.memory import IHostMemory
from netloop.api.observers import LoggedObject
from netloop.api.profile import IOptimizationProfile, Range
from netloop.api.progress import Cancelled, Progress
from netloop.api.streams import IStreamWriter, write_to
from netloop.api.timing_cache import ITimingCache
from netloop.compiler.passes import of_level
from netloop.compiler.placement import Placement
from netloop.compiler.tuning import Samples, Tuning
from netloop.model.check import check, require_valid
from netloop.model.graph.attributes import check_instance
from netloop.model.network import INetworkDefinition
from netloop.model.plugins.registry import IPluginRegistry, get_plugin_registry
from netloop.values.checked_attributes import WithStatement, none_or
from netloop.values.devices import compute_capability
from netloop.values.diagnostics import Finding, InputError, NetloopError, NetworkError, Severity, did_you_mean, reason
from netloop.values.types import UNKNOWN, TensorType

T = TypeVar("T")

BY_CACHE = 3
"""The optimization level with which rules decide what the timing cache does not; a higher one measures."""


class Builder(WithStatement, LoggedObject):
    """Create networks, and build engines and plans from them.

    A build that fails logs its errors and returns None, as in TensorRT; :func:`netloop.compile` raises instead.

    Attributes:
        gpu_allocator: recorded without effect: XLA manages memory.
        none_on_error: whether the ``add_`` methods of its networks behave as TensorRT's: a layer that stays invalid,
            whatever is set later, is logged, the method returns None, and the network does not change. False by
            default: such a layer is added, and its error is reported when its type is needed, because ``set_input`` can
            correct it until then.
    """

    gpu_allocator: IGpuAllocator | None = None
    none_on_error: bool = False

    UNLISTED = frozenset({"report", "warn"})
    CHECKS = {"gpu_allocator": none_or(IGpuAllocator)}

    def __repr__(self) -> str:
        return f"<Builder none_on_error={self.none_on_error}>"

    @property
    def num_DLA_cores(self) -> int:
        """0: netloop supports no DLA."""
        return 0

    max_DLA_batch_size = num_DLA_cores

    @property
    def platform_has_fast_fp16(self) -> bool:
        """Whether JAX's default device computes faster in float16: a GPU, by its compute capability.

        True on other devices, so that scripts for TensorRT 10 set the precisions that they want.
        """
        capability = compute_capability(Placement.default().device)
        return capability is None or capability in (5.3, 6.0, 6.2) or capability >= 7.0

    @property
    def platform_has_fast_int8(self) -> bool:
        """Whether JAX's default device computes faster in int8: a GPU, by its compute capability; True on others."""
        capability = compute_capability(Placement.default().device)
        return capability is None or capability == 6.1 or capability >= 7.0

    @property
    def platform_has_tf32(self) -> bool:
        """Whether JAX's default device has TensorFloat-32: a GPU from Ampere on; True on other devices."""
        capability = compute_capability(Placement.default().device)
        return capability is None or capability >= 8.0

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        """Create a network without layers. It is strongly typed, whatever the flags say."""
        return INetworkDefinition(self, flags)

    def create_builder_config(self) -> IBuilderConfig:
        """Create a config with the default settings."""
        return IBuilderConfig()

    def create_optimization_profile(self) -> IOptimizationProfile:
        """Create a profile without ranges."""
        return IOptimizationProfile()

    def reset(self) -> None:
        """Do nothing: a builder has no state."""

    def is_network_supported(self, network: INetworkDefinition, config: IBuilderConfig) -> bool:
        """Whether a network has no errors."""
        return not any(finding.severity is Severity.ERROR for finding in check(network))

    def build_engine_with_config(self, network: INetworkDefinition, config: IBuilderConfig) -> ICudaEngine | Any:
        """Build the engine of a network; None, with the errors in the log, if it is invalid or a monitor cancels."""
        return self._build(network, config, lambda progress: self._engine(network, config, progress))

    def build_serialized_network(self, network: INetworkDefinition, config: IBuilderConfig) -> IHostMemory | Any:
        """Build the plan of a network; None, with the errors in the log, if it is invalid or a monitor cancels."""

        def build(progress: Progress) -> IHostMemory:
            engine = self._engine(network, config, progress)
            with progress.phase("Serialize"):
                return _plan_of(engine, config)

        return self._build(network, config, build)

    def build_serialized_network_to_stream(
        self, network: INetworkDefinition, config: IBuilderConfig, writer: IStreamWriter
    ) -> bool:
        """Build the plan of a network and write it to a stream; False, with the errors in the log, if either fails."""
        check_instance("writer", writer, IStreamWriter)

        def build(progress: Progress) -> bool:
            engine = self._engine(network, config, progress)
            with progress.phase("Serialize"):
                write_to(writer, _plan_of(engine, config))
            return True

        return self._build(network, config, build) or False

    def _engine(self, network: INetworkDefinition, config: IBuilderConfig, progress: Progress) -> ICudaEngine:
        with progress.phase("Check"):
            require_valid(network)
            _require_fitting(config.profiles, network)
        with progress.phase("Compile"):
            return self._compiled(network, config, progress)

    def _compiled(self, network: INetworkDefinition, config: IBuilderConfig, progress: Progress) -> ICudaEngine:
        options, tuning = self._options(config), _tuning(config, progress)
        if tuning is None:
            return ICudaEngine(network, options, progress.part)
        try:
            engine = tuned_engine(network, options, tuning, progress.part)
        except InputError as error:
            self.warn(f"rules decide: {error.findings[0].what}")
            return ICudaEngine(network, options, progress.part)
        for trial in engine.trials:
            self._logger.log(ILogger.INFO, f"tuning: {trial}")
        return engine

    def _options(self, config: IBuilderConfig) -> BuildOptions:
        return BuildOptions(
            self._logger,
            tuple(map(deepcopy, config.profiles)),
            config.profiling_verbosity,
            marked_only=config.get_flag(BuilderFlag.REFIT_INDIVIDUAL),
            tactic_sources=config.get_tactic_sources(),
            max_trips=config.max_trips,
            interruptible=config.interruptible,
            passes=of_level(config.builder_optimization_level),
            tf32=config.get_flag(BuilderFlag.TF32),
            device=current_gpu(),
        )

    def _build(self, network: INetworkDefinition, config: IBuilderConfig, build: Callable[[Progress], T]) -> T | None:
        check_instance("network", network, INetworkDefinition)
        check_instance("config", config, IBuilderConfig)
        self._log_ignored(config)
        progress = Progress(config.progress_monitor)
        try:
            with progress.build(3):
                return build(progress)
        except NetloopError as error:
            for finding in error.findings:
                self.report(finding)
        except Cancelled as error:
            self._logger.log(ILogger.WARNING, f"the progress monitor cancelled the build in the phase {error}")
        return None

    def _log_ignored(self, config: IBuilderConfig) -> None:
        names = [*(["gpu_allocator"] if self.gpu_allocator is not None else []), *config.ignored()]
        if names:
            self._logger.log(ILogger.INFO, f"no effect in netloop, because XLA decides: {', '.join(names)}")

    def report(self, finding: Finding) -> None:
        """Log a finding as an error, and pass it to the error recorder."""
        self._log_error(ErrorCodeTRT.INVALID_CONFIG, str(finding))

    def warn(self, what: str) -> None:
        """Log a warning about a network."""
        self._logger.log(ILogger.WARNING, what)

    def get_plugin_registry(self) -> IPluginRegistry:
        """Return the global registry of plugins."""
        return get_plugin_registry()


def _tuning(config: IBuilderConfig, progress: Progress) -> Tuning | None:
    """How a build is tuned: by rules alone, by rules and what the timing cache has, or by measuring."""
    level, known = config.builder_optimization_level, config.get_timing_cache()
    cache = ITimingCache() if known is None or config.get_flag(BuilderFlag.DISABLE_TIMING_CACHE) else known
    if level < BY_CACHE or (level == BY_CACHE and cache is not known):
        return None
    return Tuning(
        cache,
        measures=level > BY_CACHE,
        only_off=level == BY_CACHE + 1,
        seconds=config.tuning_seconds,
        calls=config.avg_timing_iterations,
        samples=next((_samples(profile) for profile in config.profiles), Samples()),
        requires_known=level > BY_CACHE and config.get_flag(BuilderFlag.ERROR_ON_TIMING_CACHE_MISS),
        step=progress.trial,
    )


def _samples(profile: IOptimizationProfile) -> Samples:
    """The optimal shapes and values of a profile."""
    shapes = {name: range_.opt for name, range_ in profile.shapes().items()}
    return Samples(shapes, {name: range_.opt for name, range_ in profile.values().items()})


def _plan_of(engine: ICudaEngine, config: IBuilderConfig) -> IHostMemory:
    settings = engine.create_serialization_config()
    if config.get_flag(BuilderFlag.STRIP_PLAN):
        settings.set_flag(SerializationFlag.EXCLUDE_WEIGHTS)
    return engine.serialize_with_config(settings)


def _require_fitting(profiles: Sequence[IOptimizationProfile], network: INetworkDefinition) -> None:
    """Check that each range of the profiles is for an input of the network, and that calls can be within it.

    Raises:
        NetworkError: a range is not.
    """
    types = {tensor.name: tensor.type for tensor in network.inputs}
    for profile in profiles:
        for name in (*profile.shapes(), *profile.values()):
            if name not in types:
                what = f"an optimization profile has a range for {name!r}, which is not an input of the network"
                raise _unfitting(what, did_you_mean(name, types))
        for name, limits in profile.shapes().items():
            _require_fitting_shape(name, limits, types[name])
        for name, limits in profile.values().items():
            count = types[name].volume
            if count not in (UNKNOWN, len(limits.min)):
                what = f"an optimization profile has {len(limits.min)} values for {name!r}, which has {count} elements"
                raise _unfitting(what)


def _require_fitting_shape(name: str, limits: Range, type_: TensorType) -> None:
    if len(limits.min) != type_.rank:
        what = f"an optimization profile has {len(limits.min)} dims for {name!r}, which has {type_.rank} axes"
        raise _unfitting(what)
    lengths = zip(limits.min, type_.shape, limits.max, strict=True)
    wrong = [
        axis for axis, (low, length, high) in enumerate(lengths) if length != UNKNOWN and not low <= length <= high
    ]
    if wrong:
        what = f"an optimization profile has {limits.min} to {limits.max} for {name!r}, which is {type_}"
        raise _unfitting(what, f"axis {wrong[0]} has {type_.shape[wrong[0]]} elements in each call: give this length")


def _unfitting(what: str, fix: str = "") -> NetworkError:
    return NetworkError(Finding("NL109", what, why=reason("NL109"), fix=fix))
