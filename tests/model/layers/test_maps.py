"""Maps, against Python's dicts, in the reference, in engines, in plans and in scripts."""

import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.maps import IMapLayer, IMapLookupLayer
from netloop.values import diagnostics
from netloop.values.map_types import Map, MapType
from netloop.values.string_arrays import STRING, string_array
from netloop.values.types import SequenceType, TensorType
from tests.support.laws import refuses
from tests.support.networks import constant, mark

F, D, L, S = trt.float32, trt.DataType.DOUBLE, trt.int64, trt.DataType.STRING
INT64, FLOAT32 = np.dtype(np.int64), np.dtype(np.float32)


def plain(value):
    if isinstance(value, list):
        return [plain(element) for element in value]
    return value if isinstance(value, dict) else np.asarray(value).tolist()


def run(network, **given):
    """The outputs of the reference, after comparing those of an engine and of one from a plan with them."""
    expected = {name: plain(value) for name, value in trt.evaluate(network, given).items()}
    engine = trt.compile(network)
    again = trt.Runtime(trt.Logger()).deserialize_cuda_engine(engine.serialize())
    for other in (engine, again):
        assert {name: plain(value) for name, value in other(given).items()} == expected
    return expected


def texts(network, *given):
    return network.add_constant((len(given),), string_array(given)).get_output(0)


@pytest.mark.parametrize(("dtype", "values"), [(F, [0.5, 1.5]), (D, [0.5, 1.5]), (L, [7, 8]), (S, ["a", "b"])])
def test_map_is_a_dict_in_the_order_of_its_keys(dtype, values):
    network = trt.INetworkDefinition()
    x = network.add_input("x", dtype, (2,))
    mark(network, y=network.add_map(texts(network, "b", "a"), x).get_output(0))

    found = run(network, x=np.array(values, {F: np.float32, S: object}.get(dtype)))["y"]

    assert [*found.items()] == [("a", values[1]), ("b", values[0])]


def test_each_row_becomes_a_map():
    network = trt.INetworkDefinition()
    x = network.add_input("x", F, (-1, 2))
    mark(network, y=network.add_map(constant(network, np.array([7, -1])), x).get_output(0))

    assert run(network, x=np.float32([[1, 2], [3, 4]]))["y"] == [{-1: 2.0, 7: 1.0}, {-1: 4.0, 7: 3.0}]
    assert run(network, x=np.zeros((0, 2), np.float32))["y"] == []


def test_last_of_equal_keys_counts():
    network = trt.INetworkDefinition()
    x = network.add_input("x", F, (2,))
    mark(network, y=network.add_map(constant(network, np.array([7, 7])), x).get_output(0))

    assert run(network, x=np.float32([1, 2]))["y"] == {7: 2.0}


@pytest.mark.parametrize(("key", "made"), [(L, {3: 0.5, 1: 2}), (S, {"c": 0.5, "a": 2})])
def test_values_are_read_at_keys(key, made):
    network = trt.INetworkDefinition()
    x = network.add_map_input("x", key, F)
    keys = constant(network, np.array([[1, 2, 3]])) if key == L else texts(network, "a", "b", "c")
    default = network.add_constant((), np.array(-1, np.float32)).get_output(0)
    mark(network, y=network.add_map_lookup(x, keys, default).get_output(0))
    mark(network, z=network.add_map_lookup(x).get_output(0))

    found = run(network, x=made)

    assert (np.ravel(found["y"]).tolist(), found["z"]) == ([2.0, -1.0, 0.5], [2.0, 0.5])


def test_map_that_is_an_input_may_be_an_output():
    network = trt.INetworkDefinition()
    mark(network, y=network.add_identity(network.add_map_input("x", L, S)).get_output(0))

    assert run(network, x={2: "b", 1: "é"})["y"] == {1: "é", 2: "b"}
    assert run(network, x={})["y"] == {}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([1.0], "a map must be a dict, not list"),
        ({"a": 1.0}, "int64 stands for integral numbers, not str"),
        ({1.5: 1.0}, "int64 stands for integral numbers, not float"),
        ({True: 1.0}, "int64 stands for integral numbers, not bool"),
        ({1: "a"}, "float32 stands for real numbers, not str"),
        ({1: None}, "float32 stands for real numbers, not NoneType"),
        ({1 << 70: 1.0}, "Python int"),
    ],
)
def test_values_that_are_no_maps_are_refused(given, why):
    network = trt.INetworkDefinition()
    mark(network, y=network.add_identity(network.add_map_input("x", L, F)).get_output(0))

    with pytest.raises(trt.InputError) as caught:
        trt.compile(network)({"x": given})

    assert caught.value.findings[0].code == "NL603"
    assert why in caught.value.findings[0].why


def test_map_of_strings_takes_no_numbers():
    network = trt.INetworkDefinition()
    mark(network, y=network.add_identity(network.add_map_input("x", L, S)).get_output(0))

    with pytest.raises(trt.InputError, match="not every element is a str"):
        trt.evaluate(network, {"x": {1: 2}})


def test_inputs_have_keys_and_values_that_maps_have():
    network = trt.INetworkDefinition()

    with pytest.raises(ValueError, match="there is no map from float32 to float32"):
        network.add_map_input("x", F, F)
    with pytest.raises(ValueError, match="there is no map from int64 to bool"):
        network.add_map_input("x", L, trt.bool)


KEYS, TEXTS = TensorType(INT64, (2,)), TensorType(STRING, (2,))
VALUES, MAP = TensorType(FLOAT32, (2,)), MapType(FLOAT32)


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ([VALUES, VALUES], "the keys are float32"),
        ([TensorType(INT64, (1, 2)), VALUES], "must be 1-D"),
        ([KEYS, TensorType(np.dtype(np.int32), (2,))], "the values are int32"),
        ([KEYS, TensorType(FLOAT32, (3,))], "must be [key] or [row, key]"),
        ([KEYS, SequenceType(FLOAT32)], "the values are sequence"),
    ],
)
def test_maps_of_other_tensors_are_refused(inputs, match):
    refuses(IMapLayer(), *inputs, match=match)


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ([VALUES], "input 0 is float32"),
        ([MapType(FLOAT32, is_sequence=True)], "input 0 is sequence of map from int64 to float32"),
        ([MAP, TEXTS, TensorType(FLOAT32)], "the keys are string"),
        ([MAP, KEYS], "the default is None"),
        ([MAP, KEYS, VALUES], "the default is float32"),
    ],
)
def test_lookups_in_other_values_are_refused(inputs, match):
    refuses(IMapLookupLayer(), *inputs, match=match)


def test_number_of_keys_is_that_of_values():
    with pytest.raises(diagnostics.LayerError, match="there are 2 keys, and 3 values"):
        IMapLayer().evaluate(np.array([1, 2]), np.float32([1, 2, 3]))


def test_map_of_no_keys_is_empty():
    made = Map.of(np.array([], np.int64), np.array([], np.float32))

    assert (made.as_dict(), made.values.dtype) == ({}, FLOAT32)
