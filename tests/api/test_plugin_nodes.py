"""Nodes of ONNX models that are plugins."""

import numpy as np
import onnx
import pytest

import netloop as trt
from tests.support.log import Log
from tests.support.onnx_models import model


class Creator(trt.IPluginCreatorV3One):
    """The creator of plugins that call a function of the inputs and of the fields, by name."""

    def __init__(self, name, function, fields=(), version="1"):
        super().__init__()
        self.name, self.plugin_version, self.plugin_namespace = name, version, ""
        self.field_names = trt.PluginFieldCollection([trt.PluginField(field) for field in fields])
        self.function = function

    def create_plugin(self, name, field_collection, phase):
        assert phase is trt.TensorRTPhase.BUILD
        self.fields = {field.name: (field.type.name, field.data.tolist()) for field in field_collection}
        return trt.JaxPlugin(lambda *arrays: self.function(*arrays))


@pytest.fixture
def register():
    registry, creators = trt.get_plugin_registry(), []

    def register(*arguments, **named):
        creators.append(Creator(*arguments, **named))
        assert registry.register_creator(creators[-1])
        return creators[-1]

    yield register
    for creator in creators:
        registry.deregister_creator(creator)


@pytest.fixture
def parser(network):
    return trt.OnnxParser(network, Log())


def of_node(text, **attributes):
    proto = model(f"g (float[2] x) => (float[n] y) {{ {text} }}")
    proto.opset_import.add(domain="own", version=1)
    proto.graph.node[-1].attribute.extend(onnx.helper.make_attribute(*entry) for entry in attributes.items())
    return proto.SerializeToString()


def result(network):
    return trt.compile(network)({"x": np.float32([1, 2])})["y"].tolist()


@pytest.mark.parametrize("operator", ["Twice", "own.Twice"])
def test_operator_that_is_the_name_of_a_creator_is_its_plugin(register, network, parser, operator):
    register("Twice", lambda x: 2 * x)

    assert parser.parse(of_node(f"y = {operator} (x)"))
    assert parser.supports_model_v2(of_node(f"y = {operator} (x)"))
    assert result(network) == [2, 4]


def test_fields_are_the_attributes_that_the_creator_names(register, parser):
    creator = register("Own", lambda x: x, ["a", "b", "c", "d", "e", "f", "missing"])
    table = onnx.numpy_helper.from_array(np.int64([[1, 2]]))

    assert parser.parse(of_node("y = Own (x)", a=3, b=[4, 5], c=0.5, d=[1.5], e="text", f=table, other=7))
    assert creator.fields == {
        "a": ("INT32", [3]),
        "b": ("INT32", [4, 5]),
        "c": ("FLOAT32", [0.5]),
        "d": ("FLOAT32", [1.5]),
        "e": ("CHAR", list(b"text")),
        "f": ("INT64", [[1, 2]]),
    }


def test_attributes_are_those_of_a_function_of_jax(network, parser):
    @trt.jax_plugin("Scaled", namespace="own")
    def scaled(x, *, factor, shifts=()):
        return x * factor + sum(shifts)

    assert parser.parse(of_node("y = Scaled (x)", factor=3, shifts=[1, 2], plugin_namespace="own"))
    assert result(network) == [6, 9]
    assert not trt.OnnxParser(network, Log()).parse(of_node("y = Scaled (x)", other=3, plugin_namespace="own"))


def test_version_and_namespace_are_attributes_of_the_node(register, network, parser):
    register("Own", lambda x: x + 1)
    register("Own", lambda x: x + 2, version="2")

    assert parser.parse(of_node("y = Own (x)", plugin_version="2", plugin_namespace=""))
    assert result(network) == [3, 4]


def test_plugin_takes_the_place_of_a_function_of_the_model(register, network, parser):
    register("Own", lambda x: x + 1)
    proto = onnx.load_from_string(of_node("y = own.Own (x)"))
    text = '<domain: "own", opset_import: ["" : 21]> Own (a) => (b) { b = Neg (a) }'
    proto.functions.append(onnx.parser.parse_function(text))

    assert parser.parse(proto.SerializeToString())
    assert result(network) == [2, 3]


@pytest.mark.parametrize(
    ("flags", "expected"), [((), [-1, -2]), ((trt.OnnxParserFlag.ENABLE_PLUGIN_OVERRIDE,), [1, 1])]
)
def test_operator_of_onnx_is_a_plugin_with_a_flag_only(register, network, parser, flags, expected):
    register("Neg", lambda x: x * 0 + 1)
    for flag in flags:
        parser.set_flag(flag)

    assert parser.parse(of_node("y = Neg (x)"))
    assert result(network) == expected


def test_shape_inputs_are_those_that_the_node_names(register, network, parser):
    register("Cut", lambda x, length: x[: int(length[0])])

    text = "length = Constant <value = int64[1] {1}> () y = Cut <tensorrt_plugin_shape_input_indices = [1]> (x, length)"
    assert parser.parse(of_node(text))
    (layer,) = (layer for layer in network if layer.type == trt.LayerType.PLUGIN_V3)
    assert layer.num_shape_inputs == 1
    assert result(network) == [1]


def test_weights_of_a_model_with_a_plugin_are_refitted(register, network, parser):
    register("Twice", lambda x: 2 * x)
    proto = onnx.load_from_string(of_node("h = Add (x, w) y = Twice (h)"))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([1, 1]), "w"))
    assert parser.parse(proto.SerializeToString())
    engine = trt.compile(network)
    refitter = trt.Refitter(engine, Log())
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.float32([5, 5]), "w"))

    assert trt.OnnxParserRefitter(refitter, Log()).refit_from_bytes(proto.SerializeToString())
    assert refitter.refit_cuda_engine()
    assert engine({"x": np.float32([1, 2])})["y"].tolist() == [12, 14]


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"plugin_version": "3"}, "no plugin 'Own' of version '3' is registered in the namespace ''"),
        ({"a": ["one", "two"]}, "attribute 'a' is no field of a plugin"),
    ],
)
def test_node_that_cannot_be_a_plugin_is_an_error_at_the_node(register, parser, attributes, says):
    register("Own", lambda x: x, ["a"])

    assert not parser.parse(of_node("y = Own (x)", **attributes))
    assert parser.get_error(0).node_operator() == "Own"
    assert says in parser.get_error(0).desc()


def test_creator_that_fails_is_an_error_at_the_node(register, parser):
    creator = register("Own", lambda x: x)
    creator.create_plugin = lambda *arguments: {}["own"]

    assert not parser.parse(of_node("y = Own (x)"))
    assert "raised KeyError: 'own'" in parser.get_error(0).desc()
    assert parser.get_error(0).node() == 0


def test_unknown_operator_says_that_it_may_be_a_plugin(parser):
    assert not parser.parse(of_node("y = own.Missing (x)"))
    assert "or register a plugin of this name" in parser.get_error(0).desc()
