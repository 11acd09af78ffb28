"""Operators with maps against onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import netloop
from tests.support.onnx_models import of_node, session_gives

CODES = {int: TensorProto.INT64, str: TensorProto.STRING, float: TensorProto.FLOAT}


def map_model(op, given, code, **attributes):
    """A model of one node whose input is a map."""
    [(key, value)] = {(type(key), type(value)) for key, value in given.items()}
    declared = helper.make_map_type_proto(CODES[key], helper.make_tensor_type_proto(CODES[value], []))
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)], op,
        [helper.make_value_info("x", declared)], [helper.make_tensor_value_info("y", code, None)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def outputs(made, given):
    engine = netloop.compile(netloop.onnx.load(made))
    return [*engine(given).values()]


@pytest.mark.parametrize("labels", [{"classlabels_strings": ["b", "a"]}, {"classlabels_int64s": [5, -2]}], ids=str)
@pytest.mark.parametrize("x", [np.float32([[0.1, 0.2], [0.3, 0.4]]), np.float32([0.1, 0.2])], ids=["rows", "row"])
def test_zipped_maps_are_those_of_onnxruntime(x, labels):
    made, given = of_node("ZipMap", x, domain="ai.onnx.ml", opset=1, **labels)
    del made.graph.output[:]
    key = TensorProto.STRING if "classlabels_strings" in labels else TensorProto.INT64
    maps = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    made.graph.output.append(helper.make_value_info("y0", helper.make_sequence_type_proto(maps)))

    [found], [expected] = outputs(made, given), session_gives(made, given).values()

    assert [[*value.items()] for value in found] == [[*value.items()] for value in expected]


@pytest.mark.parametrize(
    ("given", "vocabulary", "expected"),
    [
        ({"a": 2.5, "z": 1.0}, {"string_vocabulary": ["z", "b", "a"]}, [[1.0, 0.0, 2.5]]),
        ({"a": 2, "z": 1}, {"string_vocabulary": ["z", "b", "a"]}, [[1, 0, 2]]),
        ({4: 2.5}, {"int64_vocabulary": [4, 5]}, [[2.5, 0.0]]),
        ({4: "four"}, {"int64_vocabulary": [4, 5]}, [["four", ""]]),
    ],
    ids=str,
)
def test_maps_become_rows(given, vocabulary, expected):
    """The example of ONNX's page of DictVectorizer, and others."""
    code = CODES[type(expected[0][0])]

    [found] = outputs(map_model("DictVectorizer", given, code, **vocabulary), {"x": given})

    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("given", "attributes", "expected"),
    [
        ({2: 1.5, 0: -2.5}, {}, [[-2.5, 1.5]]),
        ({2: 1.5, 0: -2.5}, {"cast_to": "TO_INT64"}, [[-2, 1]]),
        ({2: 1.5, 0: -2.5}, {"map_form": "SPARSE", "max_map": 4}, [[-2.5, 0.0, 1.5, 0.0]]),
        ({2: "1.5", 0: "2"}, {"map_form": "SPARSE", "max_map": 3}, [[2.0, 0.0, 1.5]]),
        ({2: "7", 1: "3"}, {"cast_to": "TO_INT64"}, [[3, 7]]),
        ({1: "x"}, {"cast_to": "TO_STRING", "map_form": "SPARSE", "max_map": 2}, [["0.f", "x"]]),
    ],
    ids=str,
)
def test_maps_are_cast(given, attributes, expected):
    """By the rules of ONNX's page of CastMap, and the text of onnxruntime for an index that is no key."""
    code = CODES[type(expected[0][0])]

    [found] = outputs(map_model("CastMap", given, code, **attributes), {"x": given})

    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("CastMap", {"map_form": "ROUND"}, "map_form is 'ROUND'"),
        ("CastMap", {"map_form": "SPARSE", "max_map": 0}, "max_map is 0"),
        ("CastMap", {"map_form": "SPARSE", "max_map": 1 << 40}, "max_map is 1099511627776"),
        ("DictVectorizer", {"string_vocabulary": ["a"]}, "the keys are string[1,1]"),
    ],
)
def test_maps_that_do_not_fit_are_refused(op, attributes, message):
    with pytest.raises(netloop.ModelError) as caught:
        netloop.onnx.load(map_model(op, {1: 1.0}, TensorProto.FLOAT, **attributes))

    assert message in caught.value.findings[0].what


def test_map_of_other_types_is_refused():
    made = map_model("CastMap", {1: 1.0}, TensorProto.FLOAT)
    made.graph.input[0].type.map_type.value_type.tensor_type.elem_type = onnx.TensorProto.BOOL

    with pytest.raises(netloop.ModelError, match="the declared type is a map from int64 to bool"):
        netloop.onnx.load(made)


def test_tensor_is_no_map():
    made, _ = of_node("DictVectorizer", np.float32([1]), domain="ai.onnx.ml", opset=1, int64_vocabulary=[1])

    with pytest.raises(netloop.ModelError, match="the input is float32"):
        netloop.onnx.load(made)
