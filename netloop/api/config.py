"""The settings of a build."""

from __future__ import annotations

from typing import Any, ClassVar

from netloop.api.calibration import IInt8Calibrator
from netloop.api.enums import (
    BuilderFlag,
    DeviceType,
    EngineCapability,
    HardwareCompatibilityLevel,
    MemoryPoolType,
    PreviewFeature,
    ProfilingVerbosity,
    QuantizationFlag,
    RuntimePlatform,
    TilingOptimizationLevel,
)
from netloop.api.profile import IOptimizationProfile
from netloop.api.progress import IProgressMonitor
from netloop.api.timing_cache import ITimingCache, read_timing_cache
from netloop.checked_attributes import Settings, none_or, whole
from netloop.graph.layer import ILayer, check_instance, check_member
from netloop.layers.loop import check_max_trips

WORKSPACE = 1 << 34
"""The workspace that is told where none was set, in bytes."""


DEFAULT_TACTIC_SOURCES = 0b11
"""Where kernels come from where nothing else was set, a bit each."""


MEANINGFUL_FLAGS = (BuilderFlag.REFIT, BuilderFlag.REFIT_INDIVIDUAL, BuilderFlag.STRIP_PLAN)
"""The flags that change something here, REFIT as every engine has it."""


class IBuilderConfig(Settings):
    """What a build is told: flags, limits, profiles.

    Every setting of TensorRT is accepted and recorded. Those that choose kernels for NVIDIA devices change nothing:
    XLA chooses. The builder says once in the log which of those it was given.
    """

    DLA_core: int = -1
    avg_timing_iterations: int = 1
    build_route: Any = None
    builder_optimization_level: int = 3
    default_device_type: DeviceType = DeviceType.GPU
    engine_capability: EngineCapability = EngineCapability.STANDARD
    flags: int = 0
    interruptible: bool = False
    """Whether a long loop can be interrupted. TensorRT has no such setting."""
    hardware_compatibility_level: HardwareCompatibilityLevel = HardwareCompatibilityLevel.NONE
    l2_limit_for_tiling: int = -1
    max_aux_streams: int = -1
    max_num_tactics: int = -1
    max_trips: int | None = None
    """How many trips a loop may make, each time that it is entered; None for any number. TensorRT has none."""
    plugins_to_serialize: Any = None
    profile_stream: int = 0
    profiling_verbosity: ProfilingVerbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
    progress_monitor: IProgressMonitor | None = None
    remote_auto_tuning_config: str = ""
    runtime_platform: RuntimePlatform = RuntimePlatform.SAME_AS_BUILD
    tiling_optimization_level: TilingOptimizationLevel = TilingOptimizationLevel.NONE

    algorithm_selector: Any = None
    int8_calibrator: IInt8Calibrator | None = None
    quantization_flags: int = 0

    CHECKS = {
        "avg_timing_iterations": whole(1),
        "builder_optimization_level": whole(0, 5),
        "flags": whole(0),
        "int8_calibrator": none_or(IInt8Calibrator),
        "max_trips": check_max_trips,
        "progress_monitor": none_or(IProgressMonitor),
        "quantization_flags": whole(0),
    }
    MEANINGFUL: ClassVar[frozenset[str]] = frozenset(
        {"flags", "interruptible", "max_trips", "profiling_verbosity", "progress_monitor"}
    )
    """The settings that change something here."""

    def __init__(self) -> None:
        self.reset()

    def __enter__(self) -> IBuilderConfig:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def reset(self) -> None:
        """Bring every setting back to its default."""
        vars(self).clear()
        self._profiles: list[IOptimizationProfile] = []
        self._limits: dict[MemoryPoolType, int] = {}
        self._previews: dict[PreviewFeature, bool] = {}
        self._devices: dict[ILayer, DeviceType] = {}
        self._tactic_sources = DEFAULT_TACTIC_SOURCES
        self._timing_cache: ITimingCache | None = None
        self._calibration_profile: IOptimizationProfile | None = None

    @property
    def profiles(self) -> list[IOptimizationProfile]:
        """The optimization profiles, in the order in which they were added."""
        return list(self._profiles)

    @property
    def num_optimization_profiles(self) -> int:
        """The number of optimization profiles."""
        return len(self._profiles)

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        """Add a profile; its number."""
        self._profiles.append(check_instance("profile", profile, IOptimizationProfile))
        return len(self._profiles) - 1

    # ------------------------------------------------------------------ flags and limits

    def set_flag(self, flag: BuilderFlag) -> None:
        """Set a flag."""
        self.flags = self.flags | 1 << int(check_member("flag", flag, BuilderFlag))

    def clear_flag(self, flag: BuilderFlag) -> None:
        """Clear a flag."""
        self.flags = self.flags & ~(1 << int(check_member("flag", flag, BuilderFlag)))

    def get_flag(self, flag: BuilderFlag) -> bool:
        """Whether a flag is set."""
        return bool(self.flags >> int(check_member("flag", flag, BuilderFlag)) & 1)

    def set_memory_pool_limit(self, pool: MemoryPoolType, pool_size: int) -> None:
        """Set the size of a memory pool, in bytes."""
        whole(0)("pool_size", pool_size)
        self._limits[check_member("pool", pool, MemoryPoolType)] = pool_size

    def get_memory_pool_limit(self, pool: MemoryPoolType) -> int:
        """The size of a memory pool, in bytes."""
        return self._limits.get(pool, WORKSPACE if pool is MemoryPoolType.WORKSPACE else 0)

    def set_preview_feature(self, feature: PreviewFeature, enable: bool) -> None:
        """Switch a feature on or off."""
        self._previews[check_member("feature", feature, PreviewFeature)] = bool(enable)

    def get_preview_feature(self, feature: PreviewFeature) -> bool:
        """Whether a feature is on."""
        return self._previews.get(feature, False)

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        """Set where kernels come from, a bit each."""
        self._tactic_sources = check_instance("tactic_sources", tactic_sources, int)
        return True

    def get_tactic_sources(self) -> int:
        """Where kernels come from, a bit each."""
        return self._tactic_sources

    @property
    def all_build_routes(self) -> list[Any]:
        """Empty: there is one compiler, XLA."""
        return []

    # ------------------------------------------------------------------ timing caches

    def create_timing_cache(self, serialized_timing_cache: Any) -> ITimingCache | None:
        """A timing cache of the bytes of one, or an empty one of no bytes; None if they are none that netloop wrote."""
        return read_timing_cache(serialized_timing_cache)

    def set_timing_cache(self, cache: ITimingCache, ignore_mismatch: bool) -> bool:
        """Keep a timing cache; True. A build adds nothing to it."""
        self._timing_cache = check_instance("cache", cache, ITimingCache)
        return True

    def get_timing_cache(self) -> ITimingCache | None:
        """The timing cache that was set; None if none was."""
        return self._timing_cache

    # ------------------------------------------------------------------ what TensorRT 10 had

    def set_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Set a flag of quantisation."""
        self.quantization_flags = self.quantization_flags | 1 << int(check_member("flag", flag, QuantizationFlag))

    def clear_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Clear a flag of quantisation."""
        self.quantization_flags = self.quantization_flags & ~(1 << int(check_member("flag", flag, QuantizationFlag)))

    def get_quantization_flag(self, flag: QuantizationFlag) -> bool:
        """Whether a flag of quantisation is set."""
        return bool(self.quantization_flags >> int(check_member("flag", flag, QuantizationFlag)) & 1)

    def set_calibration_profile(self, profile: IOptimizationProfile) -> bool:
        """Set the shapes to calibrate with."""
        self._calibration_profile = check_instance("profile", profile, IOptimizationProfile)
        return True

    def get_calibration_profile(self) -> IOptimizationProfile | None:
        """The shapes to calibrate with; None if none were set."""
        return self._calibration_profile

    # ------------------------------------------------------------------ devices

    def set_device_type(self, layer: ILayer, device_type: DeviceType) -> None:
        """Set the processor of a layer."""
        self._devices[layer] = check_member("device_type", device_type, DeviceType)

    def get_device_type(self, layer: ILayer) -> DeviceType:
        """The processor of a layer."""
        return self._devices.get(layer, self.default_device_type)

    def is_device_type_set(self, layer: ILayer) -> bool:
        """Whether the processor of a layer was set."""
        return layer in self._devices

    def reset_device_type(self, layer: ILayer) -> None:
        """Bring the processor of a layer back to the default."""
        self._devices.pop(layer, None)

    def can_run_on_DLA(self, layer: ILayer) -> bool:
        """False: there is no DLA."""
        return False

    # ------------------------------------------------------------------ what has no meaning here

    def without_meaning(self) -> list[str]:
        """The settings that were changed and change nothing."""
        names = [name for name in self.changed() if name not in self.MEANINGFUL]
        names += [f"flag {each.name}" for each in BuilderFlag if self.get_flag(each) and each not in MEANINGFUL_FLAGS]
        names += ["timing cache"] if self._timing_cache is not None else []
        names += [f"memory pool {each.name}" for each in self._limits]
        return names
