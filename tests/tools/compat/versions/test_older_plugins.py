"""Plugins that derive from IPluginV2DynamicExt."""

import ctypes
import json

import numpy as np
import pytest

import netloop
from netloop.tools.compat.versions import module_of
from tests.support.log import Log
from tests.support.onnx_models import model

trt = module_of(10)


def array(address, description):
    count = int(np.prod(description.dims))
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)).reshape(description.dims)


class Rows(trt.IPluginV2DynamicExt):
    """Each row ``count`` times, one behind the other."""

    plugin_type, plugin_version, num_outputs = "Rows", "1", 1

    def __init__(self, count):
        super().__init__()
        self.count = count
        self.is_ready = False

    def initialize(self):
        self.is_ready = True

    def clone(self):
        return type(self)(self.count)

    def get_output_data_type(self, index, input_types):
        return input_types[0]

    def get_output_dimensions(self, output_index, inputs, expr_builder):
        lengths = trt.DimsExprs(inputs[0])
        lengths[0] = expr_builder.operation(
            trt.DimensionOperation.PROD, inputs[0][0], expr_builder.constant(self.count)
        )
        return lengths

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].type == trt.float32 and in_out[pos].format == trt.TensorFormat.LINEAR

    def serialize(self):
        return bytes([self.count])

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        assert self.is_ready
        array(outputs[0], output_desc[0])[...] = np.repeat(array(inputs[0], input_desc[0]), self.count, 0)
        return 0


class Creator(trt.IPluginCreator):
    name, plugin_version, field_names = "Rows", "1", ()

    def create_plugin(self, name, field_collection):
        return Rows(*(int(field.data[0]) for field in field_collection))

    def deserialize_plugin(self, name, serialized_plugin):
        return Rows(serialized_plugin[0])


@pytest.fixture
def registry():
    result, creator = trt.get_plugin_registry(), Creator()
    assert result.register_creator(creator)
    yield result
    assert result.deregister_creator(creator)
    assert not result.deregister_creator(creator)


def test_plan_has_a_plugin_that_its_creator_makes_again(registry):
    creator = registry.get_plugin_creator("Rows", "1")
    field = trt.PluginField("count", np.int32([2]), trt.PluginFieldType.INT32)
    plugin = creator.create_plugin("rows", trt.PluginFieldCollection([field]))
    builder = trt.Builder(Log())
    network = builder.create_network()
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (-1, 2))], plugin)
    network.mark_output(layer.get_output(0))
    layer.get_output(0).name = "y"
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 2), (2, 2), (4, 2))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(Log()).deserialize_cuda_engine(builder.build_serialized_network(network, config))

    assert type(creator) is Creator
    assert creator in registry.plugin_creator_list
    y = engine({"x": np.float32([[1, 2], [3, 4]])})["y"]
    np.testing.assert_array_equal(y, np.float32([[1, 2], [1, 2], [3, 4], [3, 4]]))


class Text(Rows):
    """As ``Rows``, with a text as its serialized form, as NVIDIA's samples have it."""

    def serialize(self):
        return f'{{"count": {self.count}}}'


class CreatorOfText(trt.IPluginCreator):
    name, plugin_version, field_names = "Text", "1", (trt.PluginField("count"),)

    def create_plugin(self, name, field_collection):
        return Text(int(field_collection[0].data[0]))

    def deserialize_plugin(self, name, serialized_plugin):
        return Text(json.loads(serialized_plugin.decode())["count"])


def test_node_of_a_model_is_an_older_plugin_whose_serialized_form_is_a_text(monkeypatch):
    monkeypatch.setattr(Text, "plugin_type", "Text")
    registry, creator = trt.get_plugin_registry(), CreatorOfText()
    registry.register_creator(creator)
    network = trt.Builder(Log()).create_network()
    parser = trt.OnnxParser(network, Log())
    assert parser.parse(model("g (float[1] x) => (float[n] y) { y = Text <count = 3> (x) }").SerializeToString())
    builder = trt.Builder(Log())
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = trt.Runtime(Log()).deserialize_cuda_engine(plan)
    registry.deregister_creator(creator)

    assert engine({"x": np.float32([5])})["y"].tolist() == [5, 5, 5]


def test_plugin_of_version_3_can_be_added_as_an_older_one():
    network = trt.Builder(Log()).create_network()
    x = network.add_input("x", trt.float32, (2,))
    layer = network.add_plugin_v2([x], netloop.JaxPlugin(lambda x: x + 1))

    assert layer.get_output(0).shape == (2,)


def test_other_plugins_and_version_11_are_refused():
    network = trt.Builder(Log()).create_network()
    x = network.add_input("x", trt.float32, (2,))

    with pytest.raises(netloop.NetloopError, match="NL421: add_plugin_v2"):
        network.add_plugin_v2([x], object())
    with pytest.raises(netloop.NetloopError, match="NL421: netloop has no IPluginV2DynamicExt"):
        netloop.IPluginV2DynamicExt()


@pytest.mark.parametrize("method", ["clone", "get_output_data_type"])
def test_method_that_a_plugin_lacks_is_named(method):
    class Without(Rows):
        pass

    setattr(Without, method, getattr(trt.IPluginV2DynamicExt, method))
    network = trt.Builder(Log()).create_network()

    with pytest.raises(netloop.NetloopError, match=f"Without must override {method}"):
        assert network.add_plugin_v2([network.add_input("x", trt.float32, (2, 2))], Without(2)).get_output(0).shape
