"""The enumerations of TensorRT 7 to 10: those of version 11, with members that it lacks, or with older numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import netloop
from netloop.values.enum_base import TensorRTEnum, TensorRTEnumType


class OlderNames(type):
    """An enumeration of TensorRT 11 with names of an older version, which stands for it in scripts.

    Its members are those of TensorRT 11, which all of netloop takes, and those given by name: a name of a member that
    has another one today, or a member of an enumeration of this module.
    """

    ENUM: type[Enum]
    OLDER: Mapping[str, Enum]

    def __new__(cls, enum: type[Enum], **older: Enum) -> OlderNames:
        return super().__new__(cls, enum.__name__, (), {"__doc__": enum.__doc__, "ENUM": enum, "OLDER": older})

    def __init__(cls, enum: type[Enum], **older: Enum) -> None:
        super().__init__(enum.__name__, (), {})

    def __getattr__(cls, name: str) -> Any:
        return cls.OLDER[name] if name in cls.OLDER else getattr(cls.ENUM, name)

    def __call__(cls, value: Any) -> Enum:
        own = (member for member in cls.OLDER.values() if not isinstance(member, cls.ENUM) and member.value == value)
        return next(own, None) or cls.ENUM(value)

    def __getitem__(cls, name: str) -> Enum:
        return cls.OLDER[name] if name in cls.OLDER else cls.ENUM[name]

    def __iter__(cls) -> Iterator[Enum]:
        return iter(dict.fromkeys(cls.__members__.values()))

    def __len__(cls) -> int:
        return len(dict.fromkeys(cls.__members__.values()))

    def __contains__(cls, member: object) -> bool:
        return member in cls.__members__.values()

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Enum) and instance in cls

    @property
    def __members__(cls) -> Mapping[str, Enum]:
        return {**cls.ENUM.__members__, **cls.OLDER}

    def __dir__(cls) -> list[str]:
        return sorted({*dir(cls.ENUM), *cls.OLDER})


class OlderFlag(TensorRTEnum):
    """Flags of builds that TensorRT 10 removed: recorded, without effect."""

    STRICT_TYPES = 50
    ENABLE_TACTIC_HEURISTIC = 51


class OlderFeature(TensorRTEnum):
    """Preview features that later versions have always: recorded, without effect."""

    FASTER_DYNAMIC_SHAPES_0805 = 50
    DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 = 51
    MULTIDEVICE_RUNTIME_10_16 = 52


class OlderCreationFlag(TensorRTEnum):
    """Flags of networks that TensorRT 11 removed or renumbered: the first is recorded, without effect."""

    EXPLICIT_PRECISION = 50
    STRONGLY_TYPED = 51


class TacticSource(TensorRTEnum):
    """Sources of kernels, as TensorRT 7 to 10 number them."""

    CUBLAS = 0
    CUBLAS_LT = 1
    CUDNN = 2
    EDGE_MASK_CONVOLUTIONS = 3
    JIT_CONVOLUTIONS = 4


class LayerKinds(TensorRTEnumType):
    """The type of an enumeration of kinds of layers in which those of later versions are there too, as today's."""

    if not TYPE_CHECKING:  # a type checker would take every name for a member

        def __getattr__(cls, name: str) -> Any:
            is_later = name in netloop.LayerType.__members__ and name not in cls._member_map_
            return netloop.LayerType[name] if is_later else super().__getattr__(name)


class OlderLayerType(TensorRTEnum, metaclass=LayerKinds):
    """The kinds of layers as an older version numbers them; each equals that of the same name in other versions."""

    @classmethod
    def of(cls, kind: Any) -> Any:
        """The kind of the same name; the kind itself if the version lacks it."""
        return cls._member_map_.get(kind.name, kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OlderLayerType | netloop.LayerType) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def _numbered(names: str) -> Any:
    """The enumeration of kinds of layers whose numbers are the places of their names."""
    members = [(name, number) for number, name in enumerate(names.split())]
    return OlderLayerType("LayerType", members, module=__name__)


class CaffePadding(TensorRTEnum):
    """The padding of Caffe, which has ``pre_padding`` at both ends; an explicit padding as soon as it is set."""

    CAFFE_ROUND_DOWN = 4
    CAFFE_ROUND_UP = 5


class RNNOperation(TensorRTEnum):
    """The cell of a recurrent layer."""

    RELU = 0
    TANH = 1
    LSTM = 2
    GRU = 3


class RNNDirection(TensorRTEnum):
    """The order in which a recurrent layer reads its steps."""

    UNIDIRECTION = 0
    BIDIRECTION = 1


class RNNInputMode(TensorRTEnum):
    """Whether the input of the first recurrent layer is multiplied by weights."""

    LINEAR = 0
    SKIP = 1


class RNNGateType(TensorRTEnum):
    """The gates of recurrent layers."""

    INPUT = 0
    OUTPUT = 1
    FORGET = 2
    UPDATE = 3
    RESET = 4
    CELL = 5
    HIDDEN = 6


BuilderFlag = OlderNames(netloop.BuilderFlag, **OlderFlag.__members__)
EngineCapability = OlderNames(
    netloop.EngineCapability,
    DEFAULT=netloop.EngineCapability.STANDARD,
    SAFE_GPU=netloop.EngineCapability.SAFETY,
    SAFE_DLA=netloop.EngineCapability.DLA_STANDALONE,
)
_FIRST = (
    "CONVOLUTION FULLY_CONNECTED ACTIVATION POOLING LRN SCALE SOFTMAX DECONVOLUTION CONCATENATION ELEMENTWISE PLUGIN"
)
_NEXT = (
    "UNARY PADDING SHUFFLE REDUCE TOPK GATHER MATRIX_MULTIPLY RAGGED_SOFTMAX CONSTANT RNN_V2 IDENTITY PLUGIN_V2 SLICE"
)
_LOOPS = "SHAPE PARAMETRIC_RELU RESIZE TRIP_LIMIT RECURRENCE ITERATOR LOOP_OUTPUT SELECT FILL"
_LAST = (
    "QUANTIZE DEQUANTIZE CONDITION CONDITIONAL_INPUT CONDITIONAL_OUTPUT SCATTER EINSUM ASSERTION ONE_HOT NON_ZERO "
    "GRID_SAMPLE NMS REVERSE_SEQUENCE NORMALIZATION CAST"
)
LayerType = _numbered(f"{_FIRST} {_NEXT} {_LOOPS} {_LAST}")
"""The kinds of layers of TensorRT 8.6."""
LayerType7 = _numbered(f"{_FIRST} RNN {_NEXT} {_LOOPS}")
"""The kinds of layers of TensorRT 7.2."""
NetworkDefinitionCreationFlag = OlderNames(netloop.NetworkDefinitionCreationFlag, **OlderCreationFlag.__members__)
NetworkDefinitionCreationFlag10 = OlderNames(
    netloop.NetworkDefinitionCreationFlag, STRONGLY_TYPED=OlderCreationFlag.STRONGLY_TYPED
)
PaddingMode = OlderNames(netloop.PaddingMode, **CaffePadding.__members__)
PreviewFeature = OlderNames(netloop.PreviewFeature, **OlderFeature.__members__)
ProfilingVerbosity = OlderNames(
    netloop.ProfilingVerbosity,
    DEFAULT=netloop.ProfilingVerbosity.LAYER_NAMES_ONLY,
    VERBOSE=netloop.ProfilingVerbosity.DETAILED,
)
SampleMode = OlderNames(netloop.SampleMode, DEFAULT=netloop.SampleMode.STRICT_BOUNDS)
SliceMode = SampleMode
ResizeMode = netloop.InterpolationMode
