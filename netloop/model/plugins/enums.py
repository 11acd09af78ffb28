"""The enumerations of plugins, with TensorRT's names and numbers."""

from netloop.values.enums import TensorRTEnum


class APILanguage(TensorRTEnum):
    """The language that an interface is written in."""

    CPP = 0
    PYTHON = 1


class DimensionOperation(TensorRTEnum):
    """The operations on two lengths."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    SUB = 4
    EQUAL = 5
    LESS = 6
    FLOOR_DIV = 7
    CEIL_DIV = 8


class PluginArgType(TensorRTEnum):
    """The kind of an argument of a kernel that is compiled ahead of time, which netloop does not have."""

    INT = 0


class PluginArgDataType(TensorRTEnum):
    """The type of an argument of a kernel that is compiled ahead of time, which netloop does not have."""

    INT8 = 0
    INT16 = 1
    INT32 = 2


class PluginCapabilityType(TensorRTEnum):
    """The parts of a plugin."""

    CORE = 0
    BUILD = 1
    RUNTIME = 2


class PluginCreatorVersion(TensorRTEnum):
    """The version of a creator of the old interfaces."""

    V1 = 0
    V1_PYTHON = 64


class PluginFieldType(TensorRTEnum):
    """The type of the elements of a field."""

    FLOAT16 = 0
    FLOAT32 = 1
    FLOAT64 = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    CHAR = 6
    DIMS = 7
    UNKNOWN = 8
    BF16 = 9
    INT64 = 10
    FP8 = 11
    INT4 = 12
    FP4 = 13


class QuickPluginCreationRequest(TensorRTEnum):
    """When the kernel of a plugin of ``tensorrt.plugin`` is compiled; netloop does not have such plugins."""

    UNKNOWN = 0
    PREFER_JIT = 1
    PREFER_AOT = 2
    STRICT_JIT = 3
    STRICT_AOT = 4


class TensorRTPhase(TensorRTEnum):
    """The purpose of a plugin: to build a network, or to read a plan."""

    BUILD = 0
    RUNTIME = 1
