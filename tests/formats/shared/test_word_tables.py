"""The vocabulary names every member of an enumeration, or this file names those that a format lacks."""

from typing import Any

import pytest

from netloop.formats.from_jax.rules import TABLE as RULES
from netloop.formats.shared import word_tables
from netloop.formats.shared.word_tables import ACTIVATION_PARAMETERS, ACTIVATIONS, OPENVINO_OPSETS, Vocabulary
from netloop.values.enums import (
    ActivationType,
    CumulativeOperation,
    DataType,
    ElementWiseOperation,
    PaddingMode,
    ReduceOperation,
    ResizeCoordinateTransformation,
    SampleMode,
    UnaryOperation,
)

TABLES = {name: attribute for name, attribute in vars(word_tables).items() if isinstance(attribute, Vocabulary)}

PARTIAL: dict[str, set[Any]] = {
    "ELEMENT_TYPES": set(DataType) - {DataType.STRING},
    "GELU_APPROXIMATIONS": {ActivationType.GELU_ERF, ActivationType.GELU_TANH},
    "RECURRENT_ACTIVATIONS": set(ActivationType)
    - {ActivationType.SELU, ActivationType.CLIP, ActivationType.GELU_ERF, ActivationType.GELU_TANH},
    "UNARY_BITWISE": {UnaryOperation.NOT},
    "ELEMENTWISE_BITWISE": {ElementWiseOperation.AND, ElementWiseOperation.OR, ElementWiseOperation.XOR},
    "SHIFT_DIRECTIONS": {ElementWiseOperation.SHIFT_LEFT, ElementWiseOperation.SHIFT_RIGHT},
    "BOOL_REDUCTIONS": {ReduceOperation.MAX, ReduceOperation.MIN},
    "GRID_SAMPLE_PADDINGS": {SampleMode.FILL, SampleMode.CLAMP, SampleMode.REFLECT},
}
"""Tables about some members only: the layer takes no others, or they have another word in another table."""

NO_ONNX: dict[str, set[Any]] = {
    "ACTIVATIONS": {ActivationType.SCALED_TANH, ActivationType.GELU_ERF, ActivationType.GELU_TANH},
    "ELEMENTWISE": {
        ElementWiseOperation.FLOOR_DIV,
        ElementWiseOperation.FMOD,
        ElementWiseOperation.SHIFT_LEFT,
        ElementWiseOperation.SHIFT_RIGHT,
    },
    "REDUCTIONS": {ReduceOperation.NONE},
    "SCATTER_REDUCTIONS": {ReduceOperation.AVG},
    "PAD_MODES": {SampleMode.STRICT_BOUNDS},
    "AUTO_PADS": {PaddingMode.EXPLICIT_ROUND_UP},
}
"""Members without a word in ONNX."""

NO_OPENVINO: dict[str, set[Any]] = {
    "ACTIVATIONS": {
        *NO_ONNX["ACTIVATIONS"],
        ActivationType.LEAKY_RELU,
        ActivationType.THRESHOLDED_RELU,
    },
    "UNARY": {UnaryOperation.RECIP},
    "ELEMENTWISE": {ElementWiseOperation.FLOOR_DIV},
    "REDUCTIONS": {ReduceOperation.NONE},
    "CUMULATIVE": {CumulativeOperation.PROD},
    "COORDINATE_TRANSFORMATIONS": {
        ResizeCoordinateTransformation.HALF_PIXEL_SYMMETRIC,
        ResizeCoordinateTransformation.CROP,
    },
    "PAD_MODES": {SampleMode.WRAP, SampleMode.STRICT_BOUNDS},
    "AUTO_PADS": {PaddingMode.EXPLICIT_ROUND_UP},
    "ELEMENT_TYPES": {DataType.E4M3FNUZ, DataType.E5M2FNUZ},
}
"""Members without a word in OpenVINO."""

NO_JAX: dict[str, set[Any]] = {
    "ACTIVATIONS": set(ActivationType) - {ActivationType.SIGMOID, ActivationType.TANH},
    "UNARY": {UnaryOperation.RECIP, UnaryOperation.ISINF, UnaryOperation.ISNAN},
    "ELEMENTWISE": {ElementWiseOperation.FLOOR_DIV, ElementWiseOperation.MOD, ElementWiseOperation.SHIFT_RIGHT},
    "REDUCTIONS": {ReduceOperation.AVG, ReduceOperation.NONE},
    "SCATTER_REDUCTIONS": {ReduceOperation.AVG},
}
"""Members without a primitive in JAX."""

IN_JAX = {*NO_JAX, "BOOL_REDUCTIONS", "CUMULATIVE", "TOP_K"}

OTHER_FORMAT_ONLY = {
    "onnx": {"BOOL_REDUCTIONS", "TOP_K", "BOX_FORMATS", "ELEMENT_TYPES"},
    "openvino": {"SHIFT_DIRECTIONS", "PIXEL_FORMATS"},
    "jax": {*TABLES} - IN_JAX,
}
"""Tables of attributes and operators that a format does not have."""

each_table = pytest.mark.parametrize("name", TABLES)


@each_table
def test_every_member_has_a_row(name: str) -> None:
    table = TABLES[name]
    kind: Any = type(table.members[0])
    assert set(table.members) == PARTIAL.get(name, set(kind))


@each_table
@pytest.mark.parametrize(("format", "lacking"), [("onnx", NO_ONNX), ("openvino", NO_OPENVINO), ("jax", NO_JAX)])
def test_members_without_a_word_are_listed(name: str, format: str, lacking: dict[str, set[Any]]) -> None:
    table = TABLES[name]
    absent = set(table.members) - set(getattr(table, format).write)
    assert absent == (set(table.members) if name in OTHER_FORMAT_ONLY[format] else lacking.get(name, set()))


@each_table
@pytest.mark.parametrize("format", ["onnx", "openvino", "jax"])
def test_what_is_written_is_read_as_the_same_member(name: str, format: str) -> None:
    words = getattr(TABLES[name], format)
    assert all(words.read[word] is member for member, word in words.write.items())
    assert set(words.read.values()) <= set(words.write)


def test_translation_to_openvino() -> None:
    assert word_tables.UNARY.onnx_to_openvino["Ceil"] == "Ceiling"
    assert "Reciprocal" not in word_tables.UNARY.onnx_to_openvino
    assert word_tables.AUTO_PADS.onnx_to_openvino["VALID"] == "explicit"


def test_words_of_jax_are_primitives_with_rules() -> None:
    words = {word for table in TABLES.values() for word in table.jax.read}
    assert words - {*RULES} == set()


def test_parameters_are_of_activations_and_opsets_of_operators() -> None:
    operators = {word for table in TABLES.values() for word in table.openvino.write.values()}
    assert set(ACTIVATION_PARAMETERS) <= set(ACTIVATIONS.members)
    assert set(OPENVINO_OPSETS) <= operators
