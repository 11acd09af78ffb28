"""The enumerations of building and running, with TensorRT's names and numbers."""

from netloop.enums import TensorRTEnum


class BuilderFlag(TensorRTEnum):
    """The flags of a build. All are recorded; those that choose kernels for NVIDIA devices change nothing here."""

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

    # of TensorRT 10 and gone in 11: recorded, so that older scripts run
    FP16 = 40
    INT8 = 41
    BF16 = 42
    FP8 = 43
    INT4 = 44
    FP4 = 45
    OBEY_PRECISION_CONSTRAINTS = 46
    PREFER_PRECISION_CONSTRAINTS = 47
    REJECT_EMPTY_ALGORITHMS = 48
    WEIGHTLESS = 49


class QuantizationFlag(TensorRTEnum):
    """The flags of quantisation by calibration, of TensorRT 10 and gone in 11: recorded, so that older scripts run."""

    CALIBRATE_BEFORE_FUSION = 0


class CalibrationAlgoType(TensorRTEnum):
    """How calibrators find ranges, in TensorRT 10 and gone in 11."""

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
    """Features on trial."""

    ALIASED_PLUGIN_IO_10_03 = 0
    RUNTIME_ACTIVATION_RESIZE_10_10 = 1

    # of TensorRT 10 and gone in 11: recorded, so that older scripts run
    PROFILE_SHARING_0806 = 40


class TacticSource(TensorRTEnum):
    """Where kernels come from."""

    EDGE_MASK_CONVOLUTIONS = 0
    JIT_CONVOLUTIONS = 1

    # of TensorRT 10 and gone in 11: recorded, so that older scripts run
    CUBLAS = 40
    CUBLAS_LT = 41
    CUDNN = 42


class ProfilingVerbosity(TensorRTEnum):
    """How much an engine tells of its layers."""

    LAYER_NAMES_ONLY = 0
    NONE = 1
    DETAILED = 2


class EngineCapability(TensorRTEnum):
    """What an engine is for."""

    STANDARD = 0
    SAFETY = 1
    DLA_STANDALONE = 2


class DeviceType(TensorRTEnum):
    """The processor that a layer runs on."""

    GPU = 0
    DLA = 1


class HardwareCompatibilityLevel(TensorRTEnum):
    """Which devices an engine runs on; in netloop every one."""

    NONE = 0
    AMPERE_PLUS = 1
    SAME_COMPUTE_CAPABILITY = 2


class RuntimePlatform(TensorRTEnum):
    """Which operating system an engine runs on; in netloop every one."""

    SAME_AS_BUILD = 0
    WINDOWS_AMD64 = 1


class TilingOptimizationLevel(TensorRTEnum):
    """How hard tilings are searched for."""

    NONE = 0
    FAST = 1
    MODERATE = 2
    FULL = 3


class LayerInformationFormat(TensorRTEnum):
    """The format in which an inspector tells of layers."""

    ONELINE = 0
    JSON = 1


class ExecutionContextAllocationStrategy(TensorRTEnum):
    """When an execution context takes its memory."""

    STATIC = 0
    ON_PROFILE_CHANGE = 1
    USER_MANAGED = 2


class AllocatorFlag(TensorRTEnum):
    """What memory is wanted for."""

    RESIZABLE = 0


class DLAWorkspaceAllocationStrategy(TensorRTEnum):
    """Whether the engines of a DLA share their workspace."""

    DEFAULT = 0
    SHARED_STATIC = 1


class SeekPosition(TensorRTEnum):
    """What an offset in a stream counts from."""

    SET = 0
    CUR = 1
    END = 2


class TempfileControlFlag(TensorRTEnum):
    """Which temporary files may be made."""

    ALLOW_IN_MEMORY_FILES = 0
    ALLOW_TEMPORARY_FILES = 1


class SerializationFlag(TensorRTEnum):
    """The flags of a serialization."""

    EXCLUDE_WEIGHTS = 0
    EXCLUDE_LEAN_RUNTIME = 1
    INCLUDE_REFIT = 2


class ErrorCodeTRT(TensorRTEnum):
    """The kinds of errors that an error recorder is told."""

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
    """What weights are to their layer."""

    KERNEL = 0
    BIAS = 1
    SHIFT = 2
    SCALE = 3
    CONSTANT = 4
    ANY = 5


class EngineStat(TensorRTEnum):
    """What an engine counts."""

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
    """The flags of ``OnnxParser``. All are recorded, and change nothing here."""

    NATIVE_INSTANCENORM = 0
    ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA = 1
    REPORT_CAPABILITY_DLA = 2
    ENABLE_PLUGIN_OVERRIDE = 3
    ADJUST_FOR_DLA = 4
