"""Plugins in plans: known by name, and made again by the creators of the reader."""

import numpy as np
import pytest

import netloop as trt
from netloop.model import plan
from netloop.model.plan import npy_arrays
from tests.support import plan_forge as forge
from tests.support.networks import mark
from tests.support.plugin_examples import CircularPad, CircularPadCreator, Plugin, circular_pad

X = np.arange(6, dtype=np.float32).reshape(2, 3)
PADS = np.int32([3, 1, 1, 2])
WANTED = np.pad(X, ((1, 2), (3, 1)), "wrap")


@pytest.fixture
def creator():
    made = CircularPadCreator()
    trt.get_plugin_registry().register_creator(made)
    yield made
    trt.get_plugin_registry().deregister_creator(made)


def network_of(plugin):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 3))
    return mark(network, y=network.add_plugin_v3([x], [], plugin).get_output(0))


def test_plugin_is_made_again_by_its_creator(creator):
    data = plan.dumps(network_of(CircularPad(pads=PADS)))

    loaded = plan.loads(data)

    assert creator.phases == [trt.TensorRTPhase.RUNTIME]
    assert loaded.get_layer(0).plugin.pads.tolist() == PADS.tolist()
    assert plan.dumps(loaded) == data
    np.testing.assert_array_equal(trt.compile(loaded)({"x": X})["y"], WANTED)


def test_function_is_found_by_its_name():
    loaded = plan.loads(plan.dumps(network_of(circular_pad(pads=[[1, 2], (3, 1)]))))

    assert loaded.get_layer(0).plugin.attributes == {"pads": ((1, 2), (3, 1))}
    np.testing.assert_array_equal(trt.compile(loaded)({"x": X})["y"], WANTED)


@pytest.mark.parametrize("value", [True, 3, 2.5, float("inf"), "é", None, (), ((1, "a"), None)])
def test_attribute_is_kept_as_it_was(value):
    loaded = plan.loads(plan.dumps(network_of(circular_pad(pads=value))))

    assert loaded.get_layer(0).plugin.attributes == {"pads": value}
    assert type(loaded.get_layer(0).plugin.attributes["pads"]) is type(value)


def test_engine_with_a_plugin_is_deserialized(creator):
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    data = builder.build_serialized_network(network_of(CircularPad(pads=PADS)), builder.create_builder_config())

    engine = trt.Runtime(logger).deserialize_cuda_engine(data)

    np.testing.assert_array_equal(engine({"x": X})["y"], WANTED)


def test_function_without_a_name_cannot_be_saved():
    network = network_of(trt.JaxPlugin(lambda x: x))

    with pytest.raises(trt.NetworkError, match="NL714") as caught:
        plan.dumps(network)

    assert "with netloop.jax_plugin(name) before the function" in str(caught.value)
    assert __file__ in str(caught.value)


def nothing(*_):
    raise RuntimeError("no fields")


UNWRITABLE = {
    "without a name": ({"plugin_name": ""}, "has no name, by which it could be found again"),
    "with a number as name": ({"plugin_name": 3}, "which must be strings"),
    "that fails": ({"get_fields_to_serialize": nothing}, "get_fields_to_serialize of Plugin raised RuntimeError"),
    "without fields": ({"get_fields_to_serialize": lambda: None}, "get_fields_to_serialize of Plugin raised TypeError"),
    "with other fields": ({"get_fields_to_serialize": lambda: [3]}, "fields must be PluginField, not int"),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_plugin_cannot_be_saved(name):
    own, match = UNWRITABLE[name]
    network = network_of(Plugin(**own))

    with pytest.raises(trt.NetworkError, match=match):
        plan.dumps(network)


def test_plan_of_a_plugin_that_is_not_registered_is_refused():
    data = plan.dumps(network_of(CircularPad(pads=PADS)))

    with pytest.raises(trt.FileFormatError) as caught:
        plan.loads(data)

    (found,) = caught.value.findings
    assert found.code == "NL715"
    assert found.what.startswith("the plan has the plugin 'CircularPad' of version '1' in namespace ''")
    assert found.where == "network.json: layers[0].attributes.plugin"


def test_runtime_tells_of_a_plugin_that_is_not_registered(capsys):
    data = plan.dumps(network_of(CircularPad(pads=PADS)))

    assert trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(data) is None
    assert "NL715: the plan has the plugin 'CircularPad'" in capsys.readouterr().err


def test_creator_that_fails_is_told(creator):
    data = plan.dumps(network_of(CircularPad(pads=PADS)))
    creator.create_plugin = nothing

    with pytest.raises(
        trt.FileFormatError, match=r"create_plugin of CircularPadCreator .* raised RuntimeError"
    ) as caught:
        plan.loads(data)

    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("made", "match"),
    [(None, "returned None, which is not an IPluginV3"), (Plugin(num_outputs=0), "num_outputs of Plugin is 0")],
)
def test_creator_of_no_plugin_is_told(creator, made, match):
    data = plan.dumps(network_of(CircularPad(pads=PADS)))
    creator.create_plugin = lambda *_: made

    with pytest.raises(trt.FileFormatError, match=match):
        plan.loads(data)


# ---------------------------------------------------------------------------- plans that netloop would not write


DOCUMENT, FILES = forge.taken_apart(plan.dumps(network_of(circular_pad(pads=((1, 2), (3, 1))))))
PLUGIN = DOCUMENT["layers"][0]["attributes"]["plugin"]

CHANGES = {
    "no fields": ({"fields": None}, "expected a list"),
    "no name": ({"name": 3}, "expected a string"),
    "another plugin": ({"name": "circular_pads"}, "and no creator is registered for it"),
    "a type that is none": ({"fields": [{"name": "a", "type": "FLOAT", "data": 0}]}, "the name of a PluginFieldType"),
    "an array that is none": ({"fields": [{"name": "a", "type": "CHAR", "data": 9}]}, "the index of an array"),
    "a part of an element": ({"fields": [{"name": "a", "type": "INT64", "data": 0}]}, "does not fit its type"),
    "more than fields": ({"code": "1"}, "has unknown keys 'code'"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_hostile_plugin_is_refused(name):
    change, match = CHANGES[name]
    document = {**DOCUMENT, "layers": [with_plugin(change)]}

    assert match in forge.refused(forge.put_together(document, FILES)).what


def with_plugin(change):
    layer = DOCUMENT["layers"][0]
    return {**layer, "attributes": {**layer["attributes"], "plugin": {**PLUGIN, **change}}}


@pytest.mark.parametrize("text", [b"[]", b"{", b'{"pad": 1}', b'{"pads": {}}', b"\xff", b"[" * 100_000])
def test_hostile_attributes_are_refused(text):
    arrays = [{"dtype": "UINT8", "shape": [len(text)]}]
    file = b"".join([npy_arrays.header(trt.uint8, (len(text),)), text])

    found = forge.refused(forge.put_together({**DOCUMENT, "arrays": arrays}, [file]))

    assert found.what.startswith("create_plugin of JaxPluginCreator 'circular_pad' raised ")


def test_number_of_shape_inputs_is_checked():
    layer = DOCUMENT["layers"][0]
    hostile = {**layer, "attributes": {**layer["attributes"], "num_shape_inputs": 10**12}}

    loaded = plan.loads(forge.put_together({**DOCUMENT, "layers": [hostile]}, FILES))

    found = next(finding for finding in trt.check(loaded) if finding.severity is trt.Severity.ERROR)
    assert found.what == "1000000000000 of 1 inputs are to be shape inputs"


def test_input_that_is_missing_is_told():
    loaded = plan.loads(
        forge.put_together({**DOCUMENT, "layers": [{**DOCUMENT["layers"][0], "inputs": [None]}]}, FILES)
    )

    found = next(finding for finding in trt.check(loaded) if finding.severity is trt.Severity.ERROR)
    assert found.code == "NL101"
    assert found.what.startswith("input 0 of ")
