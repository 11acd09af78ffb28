"""The enumerations of plugins, with TensorRT's names and numbers."""

from netloop.enums import TensorRTEnum


class APILanguage(TensorRTEnum):
    """What an interface is written in."""

    CPP = 0
    PYTHON = 1


class DimensionOperation(TensorRTEnum):
    """What two lengths are combined by."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    SUB = 4
    EQUAL = 5
    LESS = 6
    FLOOR_DIV = 7
    CEIL_DIV = 8


class PluginCapabilityType(TensorRTEnum):
    """The part of a plugin that is asked for."""

    CORE = 0
    BUILD = 1
    RUNTIME = 2


class PluginCreatorVersion(TensorRTEnum):
    """The version of a creator of old."""

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


class TensorRTPhase(TensorRTEnum):
    """What a plugin is created for: a network that is built, or a plan that is read."""

    BUILD = 0
    RUNTIME = 1
