"""The enumerations of TensorRT, with its names and numbers."""

from enum import nonmember

from netloop.values.enum_base import TensorRTEnum as TensorRTEnum


class DataType(TensorRTEnum):
    """The element type of a tensor."""

    FLOAT = 0
    HALF = 1
    INT8 = 2
    INT32 = 3
    BOOL = 4
    UINT8 = 5
    FP8 = 6  # E4M3
    BF16 = 7
    INT64 = 8
    INT4 = 9
    FP4 = 10
    E8M0 = 11
    # from here on netloop's own, which no TensorRT has
    DOUBLE = 100  # float64
    INT16 = 101
    UINT16 = 102
    UINT32 = 103
    UINT64 = 104
    E5M2 = 105
    E4M3FNUZ = 106
    E5M2FNUZ = 107
    INT2 = 108
    UINT2 = 109
    UINT4 = 110
    STRING = 111  # text; such tensors are on the host only

    @property
    def itemsize(self) -> float:
        """The size of an element in bytes; half a byte for INT4 and FP4, as in TensorRT, and a quarter for 2 bits.

        Of a STRING it is that of its entry in an array, without the text.
        """
        return _ITEMSIZES.get(self, 1)


_TYPES_OF_SIZE = {
    0.25: (DataType.INT2, DataType.UINT2),
    0.5: (DataType.INT4, DataType.UINT4, DataType.FP4),
    2: (DataType.HALF, DataType.BF16, DataType.INT16, DataType.UINT16),
    4: (DataType.FLOAT, DataType.INT32, DataType.UINT32),
    8: (DataType.DOUBLE, DataType.INT64, DataType.UINT64),
    16: (DataType.STRING,),
}
"""The element types by their size in bytes; all others have one byte."""

_ITEMSIZES = {type_: size for size, types in _TYPES_OF_SIZE.items() for type_ in types}


class LayerType(TensorRTEnum):
    """The kind of a layer."""

    CONVOLUTION = 0
    CAST = 1
    ACTIVATION = 2
    POOLING = 3
    LRN = 4
    SCALE = 5
    SOFTMAX = 6
    DECONVOLUTION = 7
    CONCATENATION = 8
    ELEMENTWISE = 9
    PLUGIN = 10
    UNARY = 11
    PADDING = 12
    SHUFFLE = 13
    REDUCE = 14
    TOPK = 15
    GATHER = 16
    MATRIX_MULTIPLY = 17
    RAGGED_SOFTMAX = 18
    CONSTANT = 19
    IDENTITY = 20
    PLUGIN_V2 = 21
    SLICE = 22
    SHAPE = 23
    PARAMETRIC_RELU = 24
    RESIZE = 25
    TRIP_LIMIT = 26
    RECURRENCE = 27
    ITERATOR = 28
    LOOP_OUTPUT = 29
    SELECT = 30
    FILL = 31
    QUANTIZE = 32
    DEQUANTIZE = 33
    CONDITION = 34
    CONDITIONAL_INPUT = 35
    CONDITIONAL_OUTPUT = 36
    SCATTER = 37
    EINSUM = 38
    ASSERTION = 39
    ONE_HOT = 40
    NON_ZERO = 41
    GRID_SAMPLE = 42
    NMS = 43
    REVERSE_SEQUENCE = 44
    NORMALIZATION = 45
    PLUGIN_V3 = 46
    SQUEEZE = 47
    UNSQUEEZE = 48
    CUMULATIVE = 49
    DYNAMIC_QUANTIZE = 50
    ATTENTION_INPUT = 51
    ATTENTION_OUTPUT = 52
    ROTARY_EMBEDDING = 53
    KV_CACHE_UPDATE = 54
    MOE = 55
    DIST_COLLECTIVE = 56
    # netloop's own kinds have numbers from here on, which TensorRT does not use; a new one takes the next
    OWN = nonmember(100)
    BIT_CAST = 100
    DETERMINANT = 101
    UNIQUE = 102
    POOLING_INDICES = 103
    DFT = 104
    SEQUENCE = 110
    SEQUENCE_INSERT = 111
    SEQUENCE_ERASE = 112
    SEQUENCE_AT = 113
    SEQUENCE_LENGTH = 114
    SEQUENCE_CONCATENATION = 115
    SEQUENCE_SPLIT = 116
    OPTIONAL = 117
    OPTIONAL_HAS = 118
    OPTIONAL_GET = 119
    STRING_LOOKUP = 120
    STRING_CONCATENATION = 121
    STRING_SPLIT = 122
    STRING_NORMALIZATION = 123
    STRING_MATCH = 124
    STRING_TOKENIZATION = 125
    STRING_NGRAMS = 126
    MAP = 130
    MAP_LOOKUP = 131
    IMAGE_DECODER = 132
    INTERNAL = 199  # of layers that only passes add; no script and no plan has them


class ActivationType(TensorRTEnum):
    """The functions of :meth:`INetworkDefinition.add_activation`."""

    RELU = 0
    SIGMOID = 1
    TANH = 2
    LEAKY_RELU = 3
    ELU = 4
    SELU = 5
    SOFTSIGN = 6
    SOFTPLUS = 7
    CLIP = 8
    HARD_SIGMOID = 9
    SCALED_TANH = 10
    THRESHOLDED_RELU = 11
    GELU_ERF = 12
    GELU_TANH = 13


class UnaryOperation(TensorRTEnum):
    """The functions of :meth:`INetworkDefinition.add_unary`."""

    EXP = 0
    LOG = 1
    SQRT = 2
    RECIP = 3
    ABS = 4
    NEG = 5
    SIN = 6
    COS = 7
    TAN = 8
    SINH = 9
    COSH = 10
    ASIN = 11
    ACOS = 12
    ATAN = 13
    ASINH = 14
    ACOSH = 15
    ATANH = 16
    CEIL = 17
    FLOOR = 18
    ERF = 19
    NOT = 20
    SIGN = 21
    ROUND = 22  # half to even
    ISINF = 23
    ISNAN = 24


class ElementWiseOperation(TensorRTEnum):
    """The operations of :meth:`INetworkDefinition.add_elementwise`."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    SUB = 4
    DIV = 5  # on integers, towards zero
    POW = 6
    FLOOR_DIV = 7  # towards minus infinity
    AND = 8
    OR = 9
    XOR = 10
    EQUAL = 11
    GREATER = 12
    LESS = 13
    # from here on netloop's own, which no TensorRT has
    MOD = 100  # the remainder of FLOOR_DIV, with the sign of the divisor
    FMOD = 101  # the remainder of DIV, with the sign of the dividend
    SHIFT_LEFT = 102
    SHIFT_RIGHT = 103


class ReduceOperation(TensorRTEnum):
    """The operations of :meth:`INetworkDefinition.add_reduce`."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4
    NONE = 5


class CumulativeOperation(TensorRTEnum):
    """The operations of :meth:`INetworkDefinition.add_cumulative`."""

    SUM = 0
    PROD = 100  # netloop's own, which no TensorRT has


class TopKOperation(TensorRTEnum):
    """Whether :meth:`INetworkDefinition.add_topk` takes the largest or the smallest elements."""

    MAX = 0
    MIN = 1


class MatrixOperation(TensorRTEnum):
    """The form of an operand of :meth:`INetworkDefinition.add_matrix_multiply`."""

    NONE = 0
    TRANSPOSE = 1
    VECTOR = 2  # the operand has one axis fewer: a vector, or a batch of them


class GatherMode(TensorRTEnum):
    """The modes of :meth:`INetworkDefinition.add_gather_v2`."""

    DEFAULT = 0  # np.take along one axis
    ELEMENT = 1  # np.take_along_axis
    ND = 2  # the last axis of the indices is a position


class ScatterMode(TensorRTEnum):
    """The modes of :meth:`INetworkDefinition.add_scatter`."""

    ELEMENT = 0  # np.put_along_axis
    ND = 1  # the last axis of the indices is a position


class SampleMode(TensorRTEnum):
    """The elements of a slice outside its input."""

    STRICT_BOUNDS = 0  # there may be none
    WRAP = 1  # the input repeated
    CLAMP = 2  # the nearest element
    FILL = 3  # a fill value
    REFLECT = 4  # the input mirrored at the centres of its edge elements


class FillOperation(TensorRTEnum):
    """The values that :meth:`INetworkDefinition.add_fill` generates."""

    LINSPACE = 0  # alpha + the sum of beta[d] * index[d]
    RANDOM_UNIFORM = 1  # between alpha and beta
    RANDOM_NORMAL = 2  # of mean alpha and standard deviation beta


class TripLimit(TensorRTEnum):
    """The kinds of limits of a loop."""

    COUNT = 0  # the number of iterations
    WHILE = 1  # ends before the first iteration in which it is false


class LoopOutput(TensorRTEnum):
    """The kinds of outputs of a loop."""

    LAST_VALUE = 0  # element n, after n iterations
    CONCATENATE = 1  # elements 0 to n-1, stacked
    REVERSE = 2  # elements n-1 to 0, stacked


class TensorLocation(TensorRTEnum):
    """The memory of a tensor."""

    DEVICE = 0
    HOST = 1


class TensorFormat(TensorRTEnum):
    """The memory layout of a tensor; netloop has LINEAR, and HWC where a network allows no LINEAR."""

    LINEAR = 0
    CHW2 = 1
    HWC8 = 2
    CHW4 = 3
    CHW16 = 4
    CHW32 = 5
    DHWC8 = 6
    CDHW32 = 7
    HWC = 8
    DLA_LINEAR = 9
    DLA_HWC4 = 10
    HWC16 = 11
    DHWC = 12


class TensorIOMode(TensorRTEnum):
    """Whether a tensor of an engine is an input or an output."""

    NONE = 0
    INPUT = 1
    OUTPUT = 2


class NetworkDefinitionCreationFlag(TensorRTEnum):
    """The flags of :meth:`Builder.create_network`, each a bit position."""

    STRONGLY_TYPED = 0
    EXPLICIT_BATCH = 0  # of TensorRT 10, where it is 0 too; removed in 11, without effect in either
    PREFER_JIT_PYTHON_PLUGINS = 1
    PREFER_AOT_PYTHON_PLUGINS = 2


class PaddingMode(TensorRTEnum):
    """The computation of the padding of a convolution or pooling."""

    EXPLICIT_ROUND_DOWN = 0
    EXPLICIT_ROUND_UP = 1
    SAME_UPPER = 2
    SAME_LOWER = 3


class PoolingType(TensorRTEnum):
    """The value that :meth:`INetworkDefinition.add_pooling_nd` computes of a window."""

    MAX = 0
    AVERAGE = 1
    MAX_AVERAGE_BLEND = 2


class ScaleMode(TensorRTEnum):
    """Whether :meth:`INetworkDefinition.add_scale` has one weight for all elements, per channel or per element."""

    UNIFORM = 0
    CHANNEL = 1
    ELEMENTWISE = 2


class InterpolationMode(TensorRTEnum):
    """The interpolation of a resize or grid sample."""

    NEAREST = 0
    LINEAR = 1
    CUBIC = 2


class ResizeCoordinateTransformation(TensorRTEnum):
    """The coordinates of the elements of a resized axis on the original axis."""

    ALIGN_CORNERS = 0
    ASYMMETRIC = 1
    HALF_PIXEL = 2
    # from here on netloop's own, which no TensorRT has
    HALF_PIXEL_SYMMETRIC = 100
    CROP = 101


class ResizeSelector(TensorRTEnum):
    """The coordinate, on the original axis, of the element of an axis resized to length 1."""

    FORMULA = 0
    UPPER = 1


class ResizeRoundMode(TensorRTEnum):
    """The rounding of a coordinate to the nearest element."""

    HALF_UP = 0
    HALF_DOWN = 1
    FLOOR = 2
    CEIL = 3


class StringCase(TensorRTEnum):
    """The case of the letters that a normalization makes; netloop's own."""

    NONE = 0  # unchanged
    LOWER = 1
    UPPER = 2


class BoundingBoxFormat(TensorRTEnum):
    """The meaning of the four numbers of a box."""

    CORNER_PAIRS = 0
    CENTER_SIZES = 1


class AttentionNormalizationOp(TensorRTEnum):
    """The function that turns the scores of an attention into weights."""

    NONE = 0
    SOFTMAX = 1


class CausalMaskKind(TensorRTEnum):
    """The mask of the keys that a query may attend to."""

    NONE = 0
    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class AttentionIOForm(TensorRTEnum):
    """The layout of sequences of several lengths in a tensor."""

    PADDED_BHND = 0
    PACKED_NHD = 1


class KVCacheMode(TensorRTEnum):
    """The layout in which a key-value cache is written."""

    LINEAR = 0


class MoEActType(TensorRTEnum):
    """The activation inside the experts of a mixture."""

    NONE = 0
    SILU = 1


class CollectiveOperation(TensorRTEnum):
    """The operations of :meth:`INetworkDefinition.add_dist_collective`."""

    ALL_REDUCE = 0
    ALL_GATHER = 1
    BROADCAST = 2
    REDUCE = 3
    REDUCE_SCATTER = 4
    ALL_TO_ALL = 5
    GATHER = 6
    SCATTER = 7


class PixelFormat(TensorRTEnum):
    """The channels of a decoded image and their order. Netloop's own."""

    RGB = 0
    BGR = 1
    GRAYSCALE = 2
