"""The words of ONNX and OpenVINO for the members of netloop's enumerations.

All importers and exporters read these tables, so that a word that can be imported and not exported, or the reverse,
shows in one place: ``tests/formats/test_vocabulary.py`` lists what each format lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from netloop.enums import (
    ActivationType,
    BoundingBoxFormat,
    CumulativeOperation,
    DataType,
    ElementWiseOperation,
    InterpolationMode,
    PaddingMode,
    ReduceOperation,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    SampleMode,
    TopKOperation,
    UnaryOperation,
)
from netloop.layers.pointwise import SELU

E = TypeVar("E", bound=Enum)


class Words(Generic[E]):
    """The words of one format.

    Attributes:
        write: the word that an exporter writes for a member; members that the format lacks are not in it.
        read: the member for a word that an importer reads, other spellings included.
    """

    def __init__(self, words: Mapping[E, str | None], aliases: Mapping[str, E]) -> None:
        self.write: dict[E, str] = {member: word for member, word in words.items() if word is not None}
        self.read: dict[str, E] = {word: member for member, word in self.write.items()} | dict(aliases)


class Vocabulary(Generic[E]):
    """The words of both formats for the members of an enumeration.

    Args:
        rows: the word of ONNX and that of OpenVINO for each member; None where a format has none.
        onnx_aliases: other spellings that ONNX models may have.
        openvino_aliases: other spellings that OpenVINO models may have.
    """

    def __init__(
        self,
        rows: Mapping[E, tuple[str | None, str | None]],
        onnx_aliases: Mapping[str, E] | None = None,
        openvino_aliases: Mapping[str, E] | None = None,
    ) -> None:
        self.members = tuple(rows)
        self.onnx = Words({member: word for member, (word, _) in rows.items()}, onnx_aliases or {})
        self.openvino = Words({member: word for member, (_, word) in rows.items()}, openvino_aliases or {})

    @property
    def onnx_to_openvino(self) -> dict[str, str]:
        """The word of OpenVINO for each word of ONNX that it has a counterpart for."""
        read, write = self.onnx.read, self.openvino.write
        return {word: write[member] for word, member in read.items() if member in write}


# ---------------------------------------------------------------------------- functions of elements

# fmt: off
ACTIVATIONS = Vocabulary({
    ActivationType.RELU:             ("Relu",            "ReLU"),
    ActivationType.SIGMOID:          ("Sigmoid",         "Sigmoid"),
    ActivationType.TANH:             ("Tanh",            "Tanh"),
    ActivationType.LEAKY_RELU:       ("LeakyRelu",       None),
    ActivationType.ELU:              ("Elu",             "Elu"),
    ActivationType.SELU:             ("Selu",            "Selu"),
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

RECURRENT_ACTIVATIONS = Vocabulary({
    member: (word, word) for member, word in {
        ActivationType.RELU:             "relu",
        ActivationType.TANH:             "tanh",
        ActivationType.SIGMOID:          "sigmoid",
        ActivationType.SOFTSIGN:         "softsign",
        ActivationType.SOFTPLUS:         "softplus",
        ActivationType.LEAKY_RELU:       "leakyrelu",
        ActivationType.THRESHOLDED_RELU: "thresholdedrelu",
        ActivationType.ELU:              "elu",
        ActivationType.SCALED_TANH:      "scaledtanh",
        ActivationType.HARD_SIGMOID:     "hardsigmoid",
    }.items()
})
"""The activations of recurrent cells, in lower case. ``affine`` (alpha x + beta) is no activation of a layer."""

UNARY = Vocabulary({
    UnaryOperation.EXP:   ("Exp",        "Exp"),
    UnaryOperation.LOG:   ("Log",        "Log"),
    UnaryOperation.SQRT:  ("Sqrt",       "Sqrt"),
    UnaryOperation.RECIP: ("Reciprocal", None),
    UnaryOperation.ABS:   ("Abs",        "Abs"),
    UnaryOperation.NEG:   ("Neg",        "Negative"),
    UnaryOperation.SIN:   ("Sin",        "Sin"),
    UnaryOperation.COS:   ("Cos",        "Cos"),
    UnaryOperation.TAN:   ("Tan",        "Tan"),
    UnaryOperation.SINH:  ("Sinh",       "Sinh"),
    UnaryOperation.COSH:  ("Cosh",       "Cosh"),
    UnaryOperation.ASIN:  ("Asin",       "Asin"),
    UnaryOperation.ACOS:  ("Acos",       "Acos"),
    UnaryOperation.ATAN:  ("Atan",       "Atan"),
    UnaryOperation.ASINH: ("Asinh",      "Asinh"),
    UnaryOperation.ACOSH: ("Acosh",      "Acosh"),
    UnaryOperation.ATANH: ("Atanh",      "Atanh"),
    UnaryOperation.CEIL:  ("Ceil",       "Ceiling"),
    UnaryOperation.FLOOR: ("Floor",      "Floor"),
    UnaryOperation.ERF:   ("Erf",        "Erf"),
    UnaryOperation.NOT:   ("Not",        "LogicalNot"),  # of bools
    UnaryOperation.SIGN:  ("Sign",       "Sign"),
    UnaryOperation.ROUND: ("Round",      "Round"),
    UnaryOperation.ISINF: ("IsInf",      "IsInf"),
    UnaryOperation.ISNAN: ("IsNaN",      "IsNaN"),
})
UNARY_BITWISE = Vocabulary({UnaryOperation.NOT: ("BitwiseNot", "BitwiseNot")})
"""The operations on integers that have other names than those on bools."""

ELEMENTWISE = Vocabulary({
    ElementWiseOperation.SUM:         ("Add",     "Add"),
    ElementWiseOperation.PROD:        ("Mul",     "Multiply"),
    ElementWiseOperation.MAX:         ("Max",     "Maximum"),
    ElementWiseOperation.MIN:         ("Min",     "Minimum"),
    ElementWiseOperation.SUB:         ("Sub",     "Subtract"),
    ElementWiseOperation.DIV:         ("Div",     "Divide"),  # OpenVINO's is FLOOR_DIV unless m_pythondiv is false
    ElementWiseOperation.POW:         ("Pow",     "Power"),
    ElementWiseOperation.FLOOR_DIV:   (None,      None),
    ElementWiseOperation.AND:         ("And",     "LogicalAnd"),  # of bools
    ElementWiseOperation.OR:          ("Or",      "LogicalOr"),
    ElementWiseOperation.XOR:         ("Xor",     "LogicalXor"),
    ElementWiseOperation.EQUAL:       ("Equal",   "Equal"),
    ElementWiseOperation.GREATER:     ("Greater", "Greater"),
    ElementWiseOperation.LESS:        ("Less",    "Less"),
    ElementWiseOperation.MOD:         ("Mod",     "FloorMod"),
    ElementWiseOperation.FMOD:        (None,      "Mod"),  # ONNX's Mod with fmod=1
    ElementWiseOperation.SHIFT_LEFT:  (None,      "BitwiseLeftShift"),  # see SHIFT_DIRECTIONS
    ElementWiseOperation.SHIFT_RIGHT: (None,      "BitwiseRightShift"),
}, openvino_aliases={"Xor": ElementWiseOperation.XOR})
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
    ReduceOperation.SUM:  ("ReduceSum",  "ReduceSum"),
    ReduceOperation.PROD: ("ReduceProd", "ReduceProd"),
    ReduceOperation.MAX:  ("ReduceMax",  "ReduceMax"),
    ReduceOperation.MIN:  ("ReduceMin",  "ReduceMin"),
    ReduceOperation.AVG:  ("ReduceMean", "ReduceMean"),
    ReduceOperation.NONE: (None,         None),
})
BOOL_REDUCTIONS = Vocabulary({
    ReduceOperation.MAX: (None, "ReduceLogicalOr"),
    ReduceOperation.MIN: (None, "ReduceLogicalAnd"),
})
"""The reductions that OpenVINO has for bools."""

CUMULATIVE = Vocabulary({
    CumulativeOperation.SUM:  ("CumSum",  "CumSum"),
    CumulativeOperation.PROD: ("CumProd", None),
})
TOP_K = Vocabulary({
    TopKOperation.MAX: (None, "max"),  # ONNX has an attribute largest, 1 or 0
    TopKOperation.MIN: (None, "min"),
})
SCATTER_REDUCTIONS = Vocabulary({
    ReduceOperation.NONE: ("none", "none"),
    ReduceOperation.SUM:  ("add",  "sum"),
    ReduceOperation.PROD: ("mul",  "prod"),
    ReduceOperation.MAX:  ("max",  "max"),
    ReduceOperation.MIN:  ("min",  "min"),
    ReduceOperation.AVG:  (None,   "mean"),
})

# ---------------------------------------------------------------------------- images and boxes

RESIZE_MODES = Vocabulary(
    {
        InterpolationMode.NEAREST: ("nearest", "nearest"),
        InterpolationMode.LINEAR:  ("linear",  "linear"),
        InterpolationMode.CUBIC:   ("cubic",   "cubic"),
    },
    onnx_aliases={"bilinear": InterpolationMode.LINEAR, "bicubic": InterpolationMode.CUBIC},
    openvino_aliases={"linear_onnx": InterpolationMode.LINEAR},
)
COORDINATE_TRANSFORMATIONS = Vocabulary(
    {
        ResizeCoordinateTransformation.ALIGN_CORNERS:        ("align_corners",        "align_corners"),
        ResizeCoordinateTransformation.ASYMMETRIC:           ("asymmetric",           "asymmetric"),
        ResizeCoordinateTransformation.HALF_PIXEL:           ("half_pixel",           "half_pixel"),
        ResizeCoordinateTransformation.HALF_PIXEL_SYMMETRIC: ("half_pixel_symmetric", None),
        ResizeCoordinateTransformation.CROP:                 ("tf_crop_and_resize",   None),
    },
    onnx_aliases={
        "pytorch_half_pixel":   ResizeCoordinateTransformation.HALF_PIXEL,  # with ResizeSelector.UPPER
        "tf_half_pixel_for_nn": ResizeCoordinateTransformation.HALF_PIXEL,  # with another rounding
    },
    openvino_aliases={"pytorch_half_pixel": ResizeCoordinateTransformation.HALF_PIXEL},
)
NEAREST_ROUNDINGS = Vocabulary({
    ResizeRoundMode.HALF_DOWN: ("round_prefer_floor", "round_prefer_floor"),
    ResizeRoundMode.HALF_UP:   ("round_prefer_ceil",  "round_prefer_ceil"),
    ResizeRoundMode.FLOOR:     ("floor",              "floor"),
    ResizeRoundMode.CEIL:      ("ceil",               "ceil"),
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
    openvino_aliases={
        "notset": PaddingMode.EXPLICIT_ROUND_DOWN, "valid": PaddingMode.EXPLICIT_ROUND_DOWN,
    },
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
    openvino_aliases={
        "fp64": DataType.DOUBLE, "fp32": DataType.FLOAT, "fp16": DataType.HALF, "bool": DataType.BOOL,
    },
)
"""The element types, which ONNX numbers and the onnx package names."""
# fmt: on
