"""The words of ONNX, OpenVINO and JAX for the members of netloop's enumerations.

All importers and exporters read these tables, so that they agree; ``tests/formats/shared/test_word_tables.py`` lists
the members that a format lacks.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from netloop.model.layers.pointwise import SELU
from netloop.values.enums import (
    ActivationType,
    BoundingBoxFormat,
    CumulativeOperation,
    DataType,
    ElementWiseOperation,
    InterpolationMode,
    PaddingMode,
    PixelFormat,
    ReduceOperation,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    SampleMode,
    TopKOperation,
    UnaryOperation,
)

E = TypeVar("E", bound=Enum)


class Words(Generic[E]):
    """The words of one format.

    Attributes:
        write: the word that an exporter writes for a member; members that the format lacks are not in it.
        read: the member for a word that an importer reads, other spellings included.
    """

    def __init__(self, words: Mapping[E, str | None], aliases: Mapping[str, E] | None) -> None:
        self.write: dict[E, str] = {member: word for member, word in words.items() if word is not None}
        self.read: dict[str, E] = {word: member for member, word in self.write.items()} | dict(aliases or {})


class Vocabulary(Generic[E]):
    """The words of all formats for the members of an enumeration.

    Args:
        rows: the words of ONNX, OpenVINO and JAX for each member; None where a format has none. Those of JAX are names
            of primitives, and a table without any has no third column.
        onnx_aliases, openvino_aliases, jax_aliases: other spellings that models may have.
    """

    def __init__(
        self,
        rows: Mapping[E, tuple[str | None, ...]],
        onnx_aliases: Mapping[str, E] | None = None,
        openvino_aliases: Mapping[str, E] | None = None,
        jax_aliases: Mapping[str, E] | None = None,
    ) -> None:
        self.members = tuple(rows)
        self.onnx, self.openvino, self.jax = (
            Words({member: words[column] for member, words in rows.items() if column < len(words)}, aliases)
            for column, aliases in enumerate((onnx_aliases, openvino_aliases, jax_aliases))
        )

    @property
    def onnx_to_openvino(self) -> dict[str, str]:
        """The word of OpenVINO for each word of ONNX that it has a counterpart for."""
        write = self.openvino.write
        return {word: write[member] for word, member in self.onnx.read.items() if member in write}


def same(enumeration: type[E], words: str) -> dict[E, tuple[str | None, ...]]:
    """Rows for members whose word is their name in ONNX and OpenVINO, in another case."""
    return {enumeration[word.upper()]: (word, word) for word in words.split()}


def same_in_all(enumeration: type[E], words: str) -> dict[E, tuple[str | None, ...]]:
    """Rows for members whose word is their name in all formats, in JAX in lower case."""
    return {member: (*row, member.name.lower()) for member, row in same(enumeration, words).items()}


# ---------------------------------------------------------------------------- functions of elements

# fmt: off
ACTIVATIONS = Vocabulary(same(ActivationType, "Elu Selu") | {
    ActivationType.SIGMOID:          ("Sigmoid",         "Sigmoid", "logistic"),
    ActivationType.TANH:             ("Tanh",            "Tanh",    "tanh"),
    ActivationType.RELU:             ("Relu",            "ReLU"),
    ActivationType.LEAKY_RELU:       ("LeakyRelu",       None),
    ActivationType.SOFTSIGN:         ("Softsign",        "SoftSign"),
    ActivationType.SOFTPLUS:         ("Softplus",        "SoftPlus"),
    ActivationType.CLIP:             ("Clip",            "Clamp"),
    ActivationType.HARD_SIGMOID:     ("HardSigmoid",     "HardSigmoid"),
    ActivationType.SCALED_TANH:      (None,              None),
    ActivationType.THRESHOLDED_RELU: ("ThresholdedRelu", None),
    ActivationType.GELU_ERF:         (None,              None),  # Gelu, see GELU_APPROXIMATIONS
    ActivationType.GELU_TANH:        (None,              None),
})
ACTIVATION_PARAMETERS: dict[ActivationType, dict[str, float]] = {
    ActivationType.LEAKY_RELU:       {"alpha": 0.01},
    ActivationType.ELU:              {"alpha": 1.0},
    ActivationType.SELU:             {"alpha": SELU["alpha"], "gamma": SELU["beta"]},
    ActivationType.HARD_SIGMOID:     {"alpha": 0.2, "beta": 0.5},
    ActivationType.SCALED_TANH:      {"alpha": 1.0, "beta": 1.0},
    ActivationType.THRESHOLDED_RELU: {"alpha": 1.0},
}
"""The names and defaults that ONNX has for ``alpha`` and ``beta`` of an activation, in this order."""

GELU_APPROXIMATIONS = Vocabulary({
    ActivationType.GELU_ERF:  ("none", "erf"),
    ActivationType.GELU_TANH: ("tanh", "tanh"),
})
RECURRENT_ACTIVATIONS = Vocabulary(same(ActivationType, "relu tanh sigmoid softsign softplus elu") | {
    ActivationType.LEAKY_RELU:       ("leakyrelu",       "leakyrelu"),
    ActivationType.THRESHOLDED_RELU: ("thresholdedrelu", "thresholdedrelu"),
    ActivationType.SCALED_TANH:      ("scaledtanh",      "scaledtanh"),
    ActivationType.HARD_SIGMOID:     ("hardsigmoid",     "hardsigmoid"),
})
"""The activations of recurrent cells, in lower case. ``affine`` (alpha x + beta) is no activation of a layer."""

UNARY = Vocabulary(same_in_all(
    UnaryOperation,
    "Exp Log Sqrt Abs Sin Cos Tan Sinh Cosh Asin Acos Atan Asinh Acosh Atanh Floor Erf Sign Round",
) | {
    UnaryOperation.RECIP: ("Reciprocal", None),
    UnaryOperation.NEG:   ("Neg",        "Negative",   "neg"),
    UnaryOperation.CEIL:  ("Ceil",       "Ceiling",    "ceil"),
    UnaryOperation.NOT:   ("Not",        "LogicalNot", "not"),  # of bools; in JAX of integers too
    UnaryOperation.ISINF: ("IsInf",      "IsInf"),
    UnaryOperation.ISNAN: ("IsNaN",      "IsNaN"),
})
UNARY_BITWISE = Vocabulary({UnaryOperation.NOT: ("BitwiseNot", "BitwiseNot")})
"""The operations on integers that have other names than those on bools."""

ELEMENTWISE = Vocabulary({
    ElementWiseOperation.EQUAL:       ("Equal",   "Equal",             "eq"),
    ElementWiseOperation.GREATER:     ("Greater", "Greater",           "gt"),
    ElementWiseOperation.LESS:        ("Less",    "Less",              "lt"),
    ElementWiseOperation.SUM:         ("Add",     "Add",               "add"),
    ElementWiseOperation.PROD:        ("Mul",     "Multiply",          "mul"),
    ElementWiseOperation.MAX:         ("Max",     "Maximum",           "max"),
    ElementWiseOperation.MIN:         ("Min",     "Minimum",           "min"),
    ElementWiseOperation.SUB:         ("Sub",     "Subtract",          "sub"),
    ElementWiseOperation.DIV:         ("Div",     "Divide",            "div"),  # in OpenVINO FLOOR_DIV too
    ElementWiseOperation.POW:         ("Pow",     "Power",             "pow"),
    ElementWiseOperation.FLOOR_DIV:   (None,      None),
    ElementWiseOperation.AND:         ("And",     "LogicalAnd",        "and"),  # of bools; in JAX of integers too
    ElementWiseOperation.OR:          ("Or",      "LogicalOr",         "or"),
    ElementWiseOperation.XOR:         ("Xor",     "LogicalXor",        "xor"),
    ElementWiseOperation.MOD:         ("Mod",     "FloorMod"),
    ElementWiseOperation.FMOD:        (None,      "Mod",               "rem"),  # ONNX's Mod with fmod=1
    ElementWiseOperation.SHIFT_LEFT:  (None,      "BitwiseLeftShift",  "shift_left"),  # see SHIFT_DIRECTIONS
    ElementWiseOperation.SHIFT_RIGHT: (None,      "BitwiseRightShift"),  # JAX has two: with zeros or the sign above
}, openvino_aliases={"Xor": ElementWiseOperation.XOR}, jax_aliases={"add_any": ElementWiseOperation.SUM})
ELEMENTWISE_BITWISE = Vocabulary({
    ElementWiseOperation.AND: ("BitwiseAnd", "BitwiseAnd"),
    ElementWiseOperation.OR:  ("BitwiseOr",  "BitwiseOr"),
    ElementWiseOperation.XOR: ("BitwiseXor", "BitwiseXor"),
})
SHIFT_DIRECTIONS = Vocabulary({
    ElementWiseOperation.SHIFT_LEFT:  ("LEFT",  None),
    ElementWiseOperation.SHIFT_RIGHT: ("RIGHT", None),
})
"""The attribute ``direction`` of ONNX's BitShift."""

OPENVINO_OPSETS = {
    "Acosh": 4, "Asinh": 4, "Atanh": 4, "SoftPlus": 4, "Round": 5, "SoftSign": 9, "IsInf": 10, "IsNaN": 10,
    "BitwiseAnd": 13, "BitwiseNot": 13, "BitwiseOr": 13, "BitwiseXor": 13,
    "BitwiseLeftShift": 15, "BitwiseRightShift": 15,
}
"""The opsets in which OpenVINO got operators of the tables above; it is 1 for all others."""

# ---------------------------------------------------------------------------- along axes

REDUCTIONS = Vocabulary({
    ReduceOperation.SUM:  ("ReduceSum",  "ReduceSum",  "reduce_sum"),
    ReduceOperation.PROD: ("ReduceProd", "ReduceProd", "reduce_prod"),
    ReduceOperation.MAX:  ("ReduceMax",  "ReduceMax",  "reduce_max"),
    ReduceOperation.MIN:  ("ReduceMin",  "ReduceMin",  "reduce_min"),
    ReduceOperation.AVG:  ("ReduceMean", "ReduceMean"),
    ReduceOperation.NONE: (None,         None),
})
BOOL_REDUCTIONS = Vocabulary({
    ReduceOperation.MAX: (None, "ReduceLogicalOr",  "reduce_or"),
    ReduceOperation.MIN: (None, "ReduceLogicalAnd", "reduce_and"),
})
"""The reductions that OpenVINO and JAX have for bools."""

CUMULATIVE = Vocabulary({
    CumulativeOperation.SUM:  ("CumSum",  "CumSum", "cumsum"),
    CumulativeOperation.PROD: ("CumProd", None,     "cumprod"),
})
TOP_K = Vocabulary({
    TopKOperation.MAX: (None, "max", "argmax"),  # ONNX has an attribute largest, 1 or 0
    TopKOperation.MIN: (None, "min", "argmin"),
})
SCATTER_REDUCTIONS = Vocabulary({
    ReduceOperation.NONE: ("none", "none", "scatter"),
    ReduceOperation.SUM:  ("add",  "sum",  "scatter-add"),
    ReduceOperation.PROD: ("mul",  "prod", "scatter-mul"),
    ReduceOperation.MAX:  ("max",  "max",  "scatter-max"),
    ReduceOperation.MIN:  ("min",  "min",  "scatter-min"),
    ReduceOperation.AVG:  (None,   "mean"),
}, jax_aliases={"scatter-sub": ReduceOperation.SUM})  # of negated numbers

# ---------------------------------------------------------------------------- images and boxes

RESIZE_MODES = Vocabulary(
    same(InterpolationMode, "nearest linear cubic"),
    onnx_aliases={"bilinear": InterpolationMode.LINEAR, "bicubic": InterpolationMode.CUBIC},
    openvino_aliases={"linear_onnx": InterpolationMode.LINEAR},
)
COORDINATE_TRANSFORMATIONS = Vocabulary(
    same(ResizeCoordinateTransformation, "align_corners asymmetric half_pixel") | {
        ResizeCoordinateTransformation.HALF_PIXEL_SYMMETRIC: ("half_pixel_symmetric", None),
        ResizeCoordinateTransformation.CROP:                 ("tf_crop_and_resize",   None),
    },
    onnx_aliases={
        "pytorch_half_pixel":   ResizeCoordinateTransformation.HALF_PIXEL,  # with ResizeSelector.UPPER
        "tf_half_pixel_for_nn": ResizeCoordinateTransformation.HALF_PIXEL,  # with another rounding
    },
    openvino_aliases={"pytorch_half_pixel": ResizeCoordinateTransformation.HALF_PIXEL},
)
NEAREST_ROUNDINGS = Vocabulary(same(ResizeRoundMode, "floor ceil") | {
    ResizeRoundMode.HALF_DOWN: ("round_prefer_floor", "round_prefer_floor"),
    ResizeRoundMode.HALF_UP:   ("round_prefer_ceil",  "round_prefer_ceil"),
})
GRID_SAMPLE_MODES = Vocabulary(
    {
        InterpolationMode.NEAREST: ("nearest", "nearest"),
        InterpolationMode.LINEAR:  ("linear",  "bilinear"),
        InterpolationMode.CUBIC:   ("cubic",   "bicubic"),
    },
    onnx_aliases={"bilinear": InterpolationMode.LINEAR, "bicubic": InterpolationMode.CUBIC},
)
GRID_SAMPLE_PADDINGS = Vocabulary({
    SampleMode.FILL:    ("zeros",      "zeros"),
    SampleMode.CLAMP:   ("border",     "border"),
    SampleMode.REFLECT: ("reflection", "reflection"),
})
PAD_MODES = Vocabulary({
    SampleMode.FILL:          ("constant", "constant"),
    SampleMode.CLAMP:         ("edge",     "edge"),
    SampleMode.REFLECT:       ("reflect",  "reflect"),
    SampleMode.WRAP:          ("wrap",     None),
    SampleMode.STRICT_BOUNDS: (None,       None),
})
AUTO_PADS = Vocabulary(
    {
        PaddingMode.EXPLICIT_ROUND_DOWN: ("NOTSET",     "explicit"),
        PaddingMode.EXPLICIT_ROUND_UP:   (None,         None),  # of poolings: ceil_mode, rounding_type
        PaddingMode.SAME_UPPER:          ("SAME_UPPER", "same_upper"),
        PaddingMode.SAME_LOWER:          ("SAME_LOWER", "same_lower"),
    },
    onnx_aliases={"VALID": PaddingMode.EXPLICIT_ROUND_DOWN},
    openvino_aliases=dict.fromkeys(("notset", "valid"), PaddingMode.EXPLICIT_ROUND_DOWN),
)
BOX_FORMATS = Vocabulary({
    BoundingBoxFormat.CORNER_PAIRS: (None, "corner"),  # ONNX has an attribute center_point_box, 0 or 1
    BoundingBoxFormat.CENTER_SIZES: (None, "center"),
})

# ---------------------------------------------------------------------------- element types

ELEMENT_TYPES = Vocabulary(
    {
        DataType.DOUBLE: (None, "f64"),    DataType.FLOAT:    (None, "f32"),    DataType.HALF:     (None, "f16"),
        DataType.BF16:   (None, "bf16"),   DataType.FP8:      (None, "f8e4m3"), DataType.E5M2:     (None, "f8e5m2"),
        DataType.E8M0:   (None, "f8e8m0"), DataType.FP4:      (None, "f4e2m1"), DataType.INT64:    (None, "i64"),
        DataType.INT32:  (None, "i32"),    DataType.INT16:    (None, "i16"),    DataType.INT8:     (None, "i8"),
        DataType.INT4:   (None, "i4"),     DataType.INT2:     (None, "i2"),     DataType.UINT64:   (None, "u64"),
        DataType.UINT32: (None, "u32"),    DataType.UINT16:   (None, "u16"),    DataType.UINT8:    (None, "u8"),
        DataType.UINT4:  (None, "u4"),     DataType.UINT2:    (None, "u2"),     DataType.BOOL:     (None, "boolean"),
        DataType.E4M3FNUZ: (None, None),   DataType.E5M2FNUZ: (None, None),
    },
    openvino_aliases={"fp64": DataType.DOUBLE, "fp32": DataType.FLOAT, "fp16": DataType.HALF, "bool": DataType.BOOL},
)
"""The element types, which ONNX numbers and the onnx package names."""
# fmt: on

# fmt: off
PIXEL_FORMATS: Vocabulary[PixelFormat] = Vocabulary({
    PixelFormat.RGB:       ("RGB",       None),
    PixelFormat.BGR:       ("BGR",       None),
    PixelFormat.GRAYSCALE: ("Grayscale", None),
})
# fmt: on
