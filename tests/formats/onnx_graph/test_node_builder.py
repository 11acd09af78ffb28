"""The builder of ONNX nodes: casts around operators without a kernel, and formulas."""

import inspect

import ml_dtypes
import numpy as np
import pytest

from netloop.formats.onnx_graph.graph import OnnxGraph, Value
from netloop.formats.onnx_graph.node_builder import BOOL, INT64, NodeBuilder
from netloop.formats.openvino.exporter.layer_builder import LayerBuilder
from netloop.model.formulas import FormulaBuilder
from netloop.values.types import TensorType

FLOAT, HALF, BF16 = (np.dtype(other) for other in (np.float32, np.float16, ml_dtypes.bfloat16))


@pytest.fixture
def make():
    return NodeBuilder(OnnxGraph("g"), {}, name="layer")


def ops(make):
    return [node.op for node in make.graph.nodes]


def test_operator_with_a_kernel_runs_as_it_is(make):
    made = make.op("Add", Value(FLOAT), Value(FLOAT))

    assert (ops(make), made.dtype) == (["Add"], FLOAT)
    assert make.graph.nodes[0].name == "layer/Add"


@pytest.mark.parametrize("dtype", [HALF, BF16])
def test_half_types_are_computed_in_float32(make, dtype):
    made = make.op("Add", Value(dtype), Value(dtype))

    assert (ops(make), made.dtype) == (["Cast", "Cast", "Add", "Cast"], dtype)
    assert [node.attributes.get("to") for node in make.graph.nodes] == [FLOAT, FLOAT, None, dtype]


def test_moving_operators_keep_half_types(make):
    make.op("Gather", Value(BF16), Value(INT64), axis=0)

    assert ops(make) == ["Gather"]


def test_choice_between_bools_is_logic(make):
    choice = make.where(Value(BOOL), Value(BOOL), Value(BOOL))

    assert (ops(make), choice.dtype) == (["And", "Not", "And", "Or"], BOOL)


def test_constants_of_one_element_are_cast_at_once(make):
    assert make.cast(make.number(3, np.int32), np.float32).array == np.float32(3)
    assert ops(make) == []


@pytest.mark.parametrize(
    ("shape", "zero_copies", "allowzero"), [((2, -1), False, None), ((0, 2), False, 1), ((0, -1), True, None)]
)
def test_zero_in_a_shape_is_a_length_unless_it_copies(make, shape, zero_copies, allowzero):
    make.reshape(Value(FLOAT), shape, zero_copies)
    (node,) = make.graph.nodes

    assert node.attributes.get("allowzero") == allowzero
    np.testing.assert_array_equal(node.inputs[1].array, shape)


def test_formulas_without_effect_add_no_node(make):
    x = Value(FLOAT)

    assert make.transpose(x, [0, 1]) is x
    assert make.expand_dims(x, []) is x
    assert make.concat([x], 0) is x
    assert make.cast(x, FLOAT) is x
    assert ops(make) == []


def test_known_lengths_are_constants(make):
    type = TensorType(FLOAT, (2, -1))

    np.testing.assert_array_equal(make.length(Value(FLOAT), type, 0).array, [2])
    assert make.length(Value(FLOAT), type, 1).array is None
    assert ops(make) == ["Shape"]


OTHER_PARAMETERS = {"length"}
"""Methods that differ: a value has no type of its own, so ``NodeBuilder`` is given one."""


@pytest.mark.parametrize("builder", [NodeBuilder, LayerBuilder])
def test_builders_have_the_parameters_of_the_formula_builder(builder):
    shared = {name for name in dir(builder) if not name.startswith("_") and hasattr(FormulaBuilder, name)}
    for name in shared - OTHER_PARAMETERS:
        own, other = (
            [parameter for parameter in inspect.signature(getattr(kind, name)).parameters if parameter != "self"]
            for kind in (builder, FormulaBuilder)
        )
        common = min(len(own), len(other))
        assert own[:common] == other[:common], name
    assert len(shared) >= 8
