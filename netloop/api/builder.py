"""The builder: networks come from it, and engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TypeVar

from netloop.api.allocators import IGpuAllocator
from netloop.api.build_options import Origin
from netloop.api.config import IBuilderConfig
from netloop.api.engine import ICudaEngine
from netloop.api.enums import BuilderFlag, ErrorCodeTRT, SerializationFlag
from netloop.api.logger import ILogger
from netloop.api.memory import IHostMemory
from netloop.api.observers import IErrorRecorder
from netloop.api.profile import IOptimizationProfile
from netloop.api.progress import Cancelled, Progress
from netloop.api.streams import IStreamWriter, write_to
from netloop.check import check, require_valid
from netloop.checked_attributes import Settings, none_or, whole
from netloop.diagnostics import Finding, NetloopError, NetworkError, Severity, did_you_mean, reason
from netloop.graph.layer import check_instance
from netloop.network import INetworkDefinition
from netloop.passes import of_level
from netloop.plugins.registry import IPluginRegistry, get_plugin_registry

T = TypeVar("T")


class Builder(Settings):
    """Makes networks, and engines and plans of networks.

    A build that fails is logged, and gives None, as in TensorRT; :func:`netloop.compile` raises instead.

    Attributes:
        error_recorder: what is told of errors; None if nothing is.
        gpu_allocator: recorded, and of no effect: XLA takes the memory that it needs.
        max_threads: recorded, and of no effect.
        none_on_error: whether the ``add_`` methods of its networks answer as TensorRT's do: a layer that cannot be
            made, whatever is set later, is logged and None, and the network stays as it was. False at first: such a
            layer is added, and told of by whoever asks for its type, as ``set_input`` may mend it until then.
    """

    error_recorder: IErrorRecorder | None = None
    gpu_allocator: IGpuAllocator | None = None
    max_threads: int = 1
    none_on_error: bool = False

    CHECKS = {
        "error_recorder": none_or(IErrorRecorder),
        "gpu_allocator": none_or(IGpuAllocator),
        "max_threads": whole(1),
    }

    def __init__(self, logger: ILogger) -> None:
        self._logger: ILogger = check_instance("logger", logger, ILogger)

    @property
    def logger(self) -> ILogger:
        """What its messages go to."""
        return self._logger

    @property
    def num_DLA_cores(self) -> int:
        """0: there is no DLA."""
        return 0

    @property
    def max_DLA_batch_size(self) -> int:
        """0: there is no DLA."""
        return 0

    @property
    def platform_has_fast_fp16(self) -> bool:
        """True, as are its like: nothing that a script of TensorRT 10 does about precision is refused."""
        return True

    platform_has_fast_int8 = platform_has_tf32 = platform_has_fast_fp16

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        """A network without layers. It is strongly typed, whatever the flags say."""
        return INetworkDefinition(self, flags)

    def create_builder_config(self) -> IBuilderConfig:
        """The settings of a build, at their defaults."""
        return IBuilderConfig()

    def create_optimization_profile(self) -> IOptimizationProfile:
        """A profile without ranges."""
        return IOptimizationProfile()

    def reset(self) -> None:
        """Nothing: a builder keeps nothing."""

    def is_network_supported(self, network: INetworkDefinition, config: IBuilderConfig) -> bool:
        """Whether a network has no errors."""
        return not any(each.severity is Severity.ERROR for each in check(network))

    def build_engine_with_config(self, network: INetworkDefinition, config: IBuilderConfig) -> ICudaEngine | None:
        """The engine of a network; None, with the reasons in the log, if it has errors or a monitor ends the build."""
        return self._build(network, config, lambda progress: self._engine(network, config, progress))

    def build_serialized_network(self, network: INetworkDefinition, config: IBuilderConfig) -> IHostMemory | None:
        """The plan of a network; None, with the reasons in the log, if it has errors or a monitor ends the build."""

        def build(progress: Progress) -> IHostMemory:
            engine = self._engine(network, config, progress)
            with progress.phase("Serialize"):
                return _plan_of(engine, config)

        return self._build(network, config, build)

    def build_serialized_network_to_stream(
        self, network: INetworkDefinition, config: IBuilderConfig, writer: IStreamWriter
    ) -> bool:
        """Give the plan of a network to a writer; False, with the reasons in the log, if there is none or it fails."""
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
            return ICudaEngine(network, self._origin(config))

    def _origin(self, config: IBuilderConfig) -> Origin:
        return Origin(
            self._logger,
            tuple(map(deepcopy, config.profiles)),
            config.profiling_verbosity,
            marked_only=config.get_flag(BuilderFlag.REFIT_INDIVIDUAL),
            tactic_sources=config.get_tactic_sources(),
            max_trips=config.max_trips,
            interruptible=config.interruptible,
            passes=of_level(config.builder_optimization_level),
        )

    def _build(self, network: INetworkDefinition, config: IBuilderConfig, build: Callable[[Progress], T]) -> T | None:
        check_instance("network", network, INetworkDefinition)
        check_instance("config", config, IBuilderConfig)
        self._tell_of(config)
        progress = Progress(config.progress_monitor)
        try:
            with progress.build(3):
                return build(progress)
        except NetloopError as error:
            for finding in error.findings:
                self.report(finding)
        except Cancelled as error:
            self._logger.log(ILogger.WARNING, f"the progress monitor ended the build in the phase {error}")
        return None

    def _tell_of(self, config: IBuilderConfig) -> None:
        names = [*(["gpu_allocator"] if self.gpu_allocator is not None else []), *config.without_meaning()]
        if names:
            self._logger.log(ILogger.INFO, f"of no effect here, as XLA chooses: {', '.join(names)}")

    def report(self, finding: Finding) -> None:
        """Log a finding as an error, and tell the error recorder of it."""
        self._logger.log(ILogger.ERROR, str(finding))
        if self.error_recorder is not None:
            self.error_recorder.report_error(ErrorCodeTRT.INVALID_CONFIG, str(finding))

    def advise(self, what: str) -> None:
        """Log something about a network that does no harm."""
        self._logger.log(ILogger.WARNING, what)

    def get_plugin_registry(self) -> IPluginRegistry:
        """The registry of plugins, which is the same for all."""
        return get_plugin_registry()

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def _plan_of(engine: ICudaEngine, config: IBuilderConfig) -> IHostMemory:
    settings = engine.create_serialization_config()
    if config.get_flag(BuilderFlag.STRIP_PLAN):
        settings.set_flag(SerializationFlag.EXCLUDE_WEIGHTS)
    return engine.serialize_with_config(settings)


def _require_fitting(profiles: Sequence[IOptimizationProfile], network: INetworkDefinition) -> None:
    """Refuse a profile that speaks of no input, or of one of another rank.

    Raises:
        NetworkError: there is such a profile.
    """
    ranks = {each.name: each.type.rank for each in network.inputs}
    for profile in profiles:
        for name in (*profile.shapes(), *profile.values()):
            if name not in ranks:
                what = f"an optimization profile has a range for {name!r}, and the network has no such input"
                raise NetworkError(Finding("NL109", what, why=reason("NL109"), fix=did_you_mean(name, ranks)))
        for name, limits in profile.shapes().items():
            if len(limits.min) != ranks[name]:
                what = (
                    f"an optimization profile has {len(limits.min)} lengths for {name!r}, which has {ranks[name]} axes"
                )
                raise NetworkError(Finding("NL109", what, why=reason("NL109")))
