"""TensorRT's enumerations for building and running engines, with its names and numbers."""

from netloop.values.enums import TensorRTEnum


class BuilderFlag(TensorRTEnum):
    """Flags of a build. All are recorded; those that choose kernels for NVIDIA devices have no effect.

    TF32 is set by default. Cleared, products and convolutions of float32 are those of float32 on every device.
    """

    # in TensorRT 10, removed in 11: recorded, so that older scripts run; first, as tools list the flags in this order
    FP16 = 40
    INT8 = 41

    DEBUG = 2
    GPU_FALLBACK = 3
    REFIT = 4
    DISABLE_TIMING_CACHE = 5
    TF32 = 6
    SPARSE_WEIGHTS = 7
    SAFETY_SCOPE = 8
    DIRECT_IO = 11
    VERSION_COMPATIBLE = 12
    EXCLUDE_LEAN_RUNTIME = 13
    ERROR_ON_TIMING_CACHE_MISS = 15
    DISABLE_COMPILATION_CACHE = 17
    STRIP_PLAN = 18
    REFIT_IDENTICAL = 19
    WEIGHT_STREAMING = 20
    REFIT_INDIVIDUAL = 22
    STRICT_NANS = 23
    MONITOR_MEMORY = 24
    EDITABLE_TIMING_CACHE = 26
    DISTRIBUTIVE_INDEPENDENCE = 27

    # in TensorRT 10, removed in 11
    BF16 = 42
    FP8 = 43
    INT4 = 44
    FP4 = 45
    OBEY_PRECISION_CONSTRAINTS = 46
    PREFER_PRECISION_CONSTRAINTS = 47
    REJECT_EMPTY_ALGORITHMS = 48
    WEIGHTLESS = 49


class QuantizationFlag(TensorRTEnum):
    """Flags of quantization by calibration; in TensorRT 10, removed in 11: recorded, so that older scripts run."""

    CALIBRATE_BEFORE_FUSION = 0


class CalibrationAlgoType(TensorRTEnum):
    """Algorithms by which calibrators compute ranges; in TensorRT 10, removed in 11."""

    LEGACY_CALIBRATION = 0
    ENTROPY_CALIBRATION = 1
    ENTROPY_CALIBRATION_2 = 2
    MINMAX_CALIBRATION = 3


class MemoryPoolType(TensorRTEnum):
    """The memory pools of a build."""

    WORKSPACE = 0
    DLA_MANAGED_SRAM = 1
    DLA_LOCAL_DRAM = 2
    DLA_GLOBAL_DRAM = 3
    TACTIC_DRAM = 4
    TACTIC_SHARED_MEMORY = 5


class PreviewFeature(TensorRTEnum):
    """Preview features."""

    ALIASED_PLUGIN_IO_10_03 = 0
    RUNTIME_ACTIVATION_RESIZE_10_10 = 1

    # in TensorRT 10, removed in 11: recorded, so that older scripts run
    PROFILE_SHARING_0806 = 40


class TacticSource(TensorRTEnum):
    """Sources of kernels."""

    EDGE_MASK_CONVOLUTIONS = 0
    JIT_CONVOLUTIONS = 1

    # in TensorRT 10, removed in 11: recorded, so that older scripts run
    CUBLAS = 40
    CUBLAS_LT = 41
    CUDNN = 42


class ProfilingVerbosity(TensorRTEnum):
    """The amount of detail that an inspector reports about layers."""

    LAYER_NAMES_ONLY = 0
    NONE = 1
    DETAILED = 2


class EngineCapability(TensorRTEnum):
    """The intended use of an engine."""

    STANDARD = 0
    SAFETY = 1
    DLA_STANDALONE = 2


class DeviceType(TensorRTEnum):
    """The kind of device that a layer runs on."""

    GPU = 0
    DLA = 1


class HardwareCompatibilityLevel(TensorRTEnum):
    """The devices that an engine runs on; in netloop all of JAX's."""

    NONE = 0
    AMPERE_PLUS = 1
    SAME_COMPUTE_CAPABILITY = 2


class RuntimePlatform(TensorRTEnum):
    """The operating systems that an engine runs on; in netloop all."""

    SAME_AS_BUILD = 0
    WINDOWS_AMD64 = 1


class TilingOptimizationLevel(TensorRTEnum):
    """The effort of the search for tilings."""

    NONE = 0
    FAST = 1
    MODERATE = 2
    FULL = 3


class LayerInformationFormat(TensorRTEnum):
    """The format of an inspector's report."""

    ONELINE = 0
    JSON = 1


class ExecutionContextAllocationStrategy(TensorRTEnum):
    """When an execution context allocates its memory."""

    STATIC = 0
    ON_PROFILE_CHANGE = 1
    USER_MANAGED = 2


class AllocatorFlag(TensorRTEnum):
    """Flags of an allocation."""

    RESIZABLE = 0


class DLAWorkspaceAllocationStrategy(TensorRTEnum):
    """Whether the engines of a DLA share their workspace."""

    DEFAULT = 0
    SHARED_STATIC = 1


class SeekPosition(TensorRTEnum):
    """The position that an offset in a stream is relative to."""

    SET = 0
    CUR = 1
    END = 2


class TempfileControlFlag(TensorRTEnum):
    """The kinds of temporary files that may be created."""

    ALLOW_IN_MEMORY_FILES = 0
    ALLOW_TEMPORARY_FILES = 1


class SerializationFlag(TensorRTEnum):
    """Flags of serialization."""

    EXCLUDE_WEIGHTS = 0
    EXCLUDE_LEAN_RUNTIME = 1
    INCLUDE_REFIT = 2


class ErrorCodeTRT(TensorRTEnum):
    """The kinds of errors that an error recorder receives."""

    SUCCESS = 0
    UNSPECIFIED_ERROR = 1
    INTERNAL_ERROR = 2
    INVALID_ARGUMENT = 3
    INVALID_CONFIG = 4
    FAILED_ALLOCATION = 5
    FAILED_INITIALIZATION = 6
    FAILED_EXECUTION = 7
    FAILED_COMPUTATION = 8
    INVALID_STATE = 9
    UNSUPPORTED_STATE = 10


class WeightsRole(TensorRTEnum):
    """The role of weights in their layer."""

    KERNEL = 0
    BIAS = 1
    SHIFT = 2
    SCALE = 3
    CONSTANT = 4
    ANY = 5


class EngineStat(TensorRTEnum):
    """Statistics of an engine."""

    TOTAL_WEIGHTS_SIZE = 0
    STRIPPED_WEIGHTS_SIZE = 1


class ErrorCode(TensorRTEnum):
    """The kinds of errors of ``OnnxParser``."""

    SUCCESS = 0
    INTERNAL_ERROR = 1
    MEM_ALLOC_FAILED = 2
    MODEL_DESERIALIZE_FAILED = 3
    INVALID_VALUE = 4
    INVALID_GRAPH = 5
    INVALID_NODE = 6
    UNSUPPORTED_GRAPH = 7
    UNSUPPORTED_NODE = 8
    UNSUPPORTED_NODE_ATTR = 9
    UNSUPPORTED_NODE_INPUT = 10
    UNSUPPORTED_NODE_DATATYPE = 11
    UNSUPPORTED_NODE_DYNAMIC = 12
    UNSUPPORTED_NODE_SHAPE = 13
    REFIT_FAILED = 14


class OnnxParserFlag(TensorRTEnum):
    """The flags of ``OnnxParser``; all except ENABLE_PLUGIN_OVERRIDE are recorded without effect."""

    NATIVE_INSTANCENORM = 0
    ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA = 1
    REPORT_CAPABILITY_DLA = 2
    ENABLE_PLUGIN_OVERRIDE = 3
    ADJUST_FOR_DLA = 4
