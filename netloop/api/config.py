"""The builder config: flags, limits and profiles of a build."""

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
    TacticSource,
    TilingOptimizationLevel,
)
from netloop.api.profile import IOptimizationProfile
from netloop.api.progress import IProgressMonitor
from netloop.api.timing_cache import ITimingCache, read_timing_cache
from netloop.compiler.tuning import SECONDS
from netloop.model.graph import ILayer, check_instance, check_member
from netloop.model.graph.attributes import flag_bit
from netloop.model.graph.layer_text import value_text
from netloop.model.layers.loop import check_max_trips
from netloop.values.checked_attributes import CheckedAttributes, WithStatement, none_or, seconds, whole

DEFAULT_LIMITS = {
    MemoryPoolType.WORKSPACE: 1 << 34,
    MemoryPoolType.TACTIC_DRAM: 1 << 34,
    MemoryPoolType.TACTIC_SHARED_MEMORY: 1 << 30,
}
"""The default sizes of memory pools, in bytes; in TensorRT, the first two are the memory of the device."""

DEFAULT_PREVIEW_FEATURES = (PreviewFeature.PROFILE_SHARING_0806,)
"""The features that are enabled unless a script disables them; TensorRT 10 had made this one permanent."""

MEANINGFUL_FLAGS = (BuilderFlag.REFIT, BuilderFlag.REFIT_INDIVIDUAL, BuilderFlag.STRIP_PLAN,
                    BuilderFlag.DISABLE_TIMING_CACHE, BuilderFlag.ERROR_ON_TIMING_CACHE_MISS,
                    BuilderFlag.EDITABLE_TIMING_CACHE, BuilderFlag.TF32)  # fmt: skip
"""The flags that netloop implements; REFIT and EDITABLE_TIMING_CACHE need nothing, because every engine can be
refitted, and every timing cache be edited."""


class IBuilderConfig(WithStatement, CheckedAttributes):
    """The settings of a build: flags, limits, profiles.

    Every setting of TensorRT is accepted and recorded. Settings that choose kernels for NVIDIA devices have no effect,
    because XLA makes these choices; the builder logs once which of them were set.
    """

    UNLISTED = frozenset({"ignored", "profiles"})

    DLA_core: int = -1
    avg_timing_iterations: int = 1
    build_route: Any = None
    builder_optimization_level: int = 3
    default_device_type: DeviceType = DeviceType.GPU
    engine_capability: EngineCapability = EngineCapability.STANDARD
    flags: int = 1 << int(BuilderFlag.TF32)
    interruptible: bool = False
    """Whether a long loop can be interrupted. Not in TensorRT."""
    hardware_compatibility_level: HardwareCompatibilityLevel = HardwareCompatibilityLevel.NONE
    l2_limit_for_tiling: int = -1
    max_aux_streams: int = -1
    max_num_tactics: int = -1
    max_trips: int | None = None
    """The largest number of iterations of a loop, each time it is entered; None for any number. Not in TensorRT."""
    plugins_to_serialize: Any = None
    profile_stream: int = 0
    profiling_verbosity: ProfilingVerbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
    progress_monitor: IProgressMonitor | None = None
    remote_auto_tuning_config: str = ""
    runtime_platform: RuntimePlatform = RuntimePlatform.SAME_AS_BUILD
    tiling_optimization_level: TilingOptimizationLevel = TilingOptimizationLevel.NONE
    tuning_seconds: float = SECONDS
    """The seconds after which a build of level 4 or 5 times no further form; infinity for no limit. Not in TensorRT."""

    algorithm_selector: Any = None
    int8_calibrator: IInt8Calibrator | None = None
    quantization_flags: int = 0

    CHECKS = {
        "avg_timing_iterations": whole(1),
        "builder_optimization_level": whole(0, 5, clips=True),
        "flags": whole(0),
        "int8_calibrator": none_or(IInt8Calibrator),
        "max_trips": check_max_trips,
        "progress_monitor": none_or(IProgressMonitor),
        "quantization_flags": whole(0),
        "tuning_seconds": seconds(endless=True),
    }
    MEANINGFUL: ClassVar[frozenset[str]] = frozenset(
        {
            "avg_timing_iterations",
            "builder_optimization_level",
            "flags",
            "interruptible",
            "max_trips",
            "profiling_verbosity",
            "progress_monitor",
            "tuning_seconds",
        }
    )
    """The settings that netloop implements."""  # fmt: skip
    TACTIC_SOURCES: ClassVar[Any] = TacticSource
    DEFAULT_TACTIC_SOURCES: ClassVar[int] = 0b11
    """The default sources of kernels, one bit each."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Restore the default of every setting."""
        vars(self).clear()
        self._profiles: list[IOptimizationProfile] = []
        self._limits: dict[MemoryPoolType, int] = {}
        self._previews: dict[PreviewFeature, bool] = {}
        self._devices: dict[ILayer, DeviceType] = {}
        self._tactic_sources = self.DEFAULT_TACTIC_SOURCES
        self._timing_cache: ITimingCache | None = None
        self._calibration_profile: IOptimizationProfile | None = None

    def __repr__(self) -> str:
        """The settings that are not their defaults."""
        settings = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        profiles = [f"{len(self._profiles)} profiles"] * bool(self._profiles)
        shown = ", ".join([*(f"{name}={value_text(setting)}" for name, setting in settings.items()), *profiles])
        return f"<IBuilderConfig {shown or 'with default settings'}>"

    @property
    def profiles(self) -> list[IOptimizationProfile]:
        """The optimization profiles, in the order in which they were added."""
        return list(self._profiles)

    @property
    def num_optimization_profiles(self) -> int:
        """The number of optimization profiles."""
        return len(self._profiles)

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        """Add a profile and return its index."""
        self._profiles.append(check_instance("profile", profile, IOptimizationProfile))
        return len(self._profiles) - 1

    # ------------------------------------------------------------------ flags and limits

    def set_flag(self, flag: BuilderFlag) -> None:
        """Set a flag."""
        self.flags |= flag_bit(flag, BuilderFlag)

    def clear_flag(self, flag: BuilderFlag) -> None:
        """Clear a flag."""
        self.flags &= ~flag_bit(flag, BuilderFlag)

    def get_flag(self, flag: BuilderFlag) -> bool:
        """Whether a flag is set."""
        return bool(self.flags & flag_bit(flag, BuilderFlag))

    def set_memory_pool_limit(self, pool: MemoryPoolType, pool_size: int) -> None:
        """Set the size of a memory pool, in bytes."""
        self._limits[check_member("pool", pool, MemoryPoolType)] = whole(0)("pool_size", pool_size)

    def get_memory_pool_limit(self, pool: MemoryPoolType) -> int:
        """The size of a memory pool, in bytes."""
        return self._limits.get(pool, DEFAULT_LIMITS.get(pool, 0))

    def set_preview_feature(self, feature: PreviewFeature, enable: bool) -> None:
        """Enable or disable a feature."""
        self._previews[check_member("feature", feature, PreviewFeature)] = bool(enable)

    def get_preview_feature(self, feature: PreviewFeature) -> bool:
        """Whether a feature is enabled."""
        return self._previews.get(feature, feature in DEFAULT_PREVIEW_FEATURES)

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        """Set the sources of kernels, one bit each; False, without effect, if a bit stands for no source."""
        asked = whole(0)("tactic_sources", tactic_sources)
        if asked & ~sum(1 << int(source) for source in self.TACTIC_SOURCES):
            return False
        self._tactic_sources = asked
        return True

    def get_tactic_sources(self) -> int:
        """The sources of kernels, one bit each."""
        return self._tactic_sources

    @property
    def all_build_routes(self) -> list[Any]:
        """Empty: XLA is the only compiler."""
        return []

    # ------------------------------------------------------------------ timing caches

    def create_timing_cache(self, serialized_timing_cache: Any) -> ITimingCache | None:
        """Create a timing cache from its serialized bytes, empty for no bytes; None if netloop did not write them."""
        return read_timing_cache(serialized_timing_cache)

    def set_timing_cache(self, cache: ITimingCache | None, ignore_mismatch: bool) -> bool:
        """Set the timing cache. False, without effect, if it has entries of other machines only, unless ignored."""
        if cache is None:
            why = "create_timing_cache returns None for bytes of others, as TensorRT's; create one from b''"
            raise TypeError(f"cache must be ITimingCache, not None: {why}")
        if not (check_instance("cache", cache, ITimingCache).is_of_here or ignore_mismatch):
            return False
        self._timing_cache = cache
        return True

    def get_timing_cache(self) -> ITimingCache | None:
        """The timing cache that was set, or None."""
        return self._timing_cache

    # ------------------------------------------------------------------ TensorRT 10

    def set_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Set a quantization flag."""
        self.quantization_flags |= flag_bit(flag, QuantizationFlag)

    def clear_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Clear a quantization flag."""
        self.quantization_flags &= ~flag_bit(flag, QuantizationFlag)

    def get_quantization_flag(self, flag: QuantizationFlag) -> bool:
        """Whether a quantization flag is set."""
        return bool(self.quantization_flags & flag_bit(flag, QuantizationFlag))

    def set_calibration_profile(self, profile: IOptimizationProfile) -> bool:
        """Set the profile for calibration; True."""
        self._calibration_profile = check_instance("profile", profile, IOptimizationProfile)
        return True

    def get_calibration_profile(self) -> IOptimizationProfile | None:
        """The profile for calibration, or None."""
        return self._calibration_profile

    # ------------------------------------------------------------------ devices

    def set_device_type(self, layer: ILayer, device_type: DeviceType) -> None:
        """Set the device type of a layer."""
        self._devices[layer] = check_member("device_type", device_type, DeviceType)

    def get_device_type(self, layer: ILayer) -> DeviceType:
        """The device type of a layer."""
        return self._devices.get(layer, self.default_device_type)

    def is_device_type_set(self, layer: ILayer) -> bool:
        """Whether the device type of a layer was set."""
        return layer in self._devices

    def reset_device_type(self, layer: ILayer) -> None:
        """Restore the default device type of a layer."""
        self._devices.pop(layer, None)

    def can_run_on_DLA(self, layer: ILayer) -> bool:
        """False: netloop supports no DLA."""
        return False

    # ------------------------------------------------------------------ settings without effect

    def ignored(self) -> list[str]:
        """The names of the changed settings that have no effect in netloop."""
        names = [name for name in self.changed() if name not in self.MEANINGFUL]
        names += [f"flag {flag.name}" for flag in BuilderFlag if self.get_flag(flag) and flag not in MEANINGFUL_FLAGS]
        names += [f"memory pool {limit.name}" for limit in self._limits]
        return names
