"""Maps as ONNX, by the operators of ai.onnx.ml."""

import numpy as np
import pytest

import netloop as trt
from netloop.values.string_arrays import string_array
from tests.support.networks import mark
from tests.support.onnx_runtime import export, run


def keys_of(network, keys):
    array = string_array(keys) if isinstance(keys[0], str) else np.array(keys, np.int64)
    return network.add_constant(array.shape, array).get_output(0)


@pytest.mark.parametrize("keys", [["ant", "bee"], [7, -3]])
def test_maps_of_rows_are_zip_map(keys):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 2))
    mark(network, y=network.add_map(keys_of(network, keys), x).get_output(0))
    model = export(network)

    for rows in (np.float32([[1, 2], [3, 4]]), np.zeros((0, 2), np.float32)):
        assert run(model, {"x": rows})["y"] == trt.evaluate(network, {"x": rows})["y"]
    assert {opset.domain for opset in model.opset_import} == {"", "ai.onnx.ml"}


def looked_up(key, value, keys=None, default=0):
    network = trt.INetworkDefinition()
    x = network.add_map_input("x", key, value)
    given = []
    if keys is not None:
        array = string_array(str(default)) if value is trt.string else np.array(default, trt.nptype(value))
        given = [keys_of(network, keys), network.add_constant((), array).get_output(0)]
    return mark(network, y=network.add_map_lookup(x, *given).get_output(0))


def test_values_at_words_are_dict_vectorizer():
    model = export(looked_up(trt.string, trt.float32, ["ant", "bee", "cat"]))

    assert run(model, {"x": {"bee": 2.5, "ant": 1.0, "dog": 5.0}})["y"].tolist() == [1, 2.5, 0]


@pytest.mark.parametrize("value", [trt.float64, trt.int64])
def test_values_at_words_that_python_cannot_pass_to_onnxruntime_are_valid(value):
    export(looked_up(trt.string, value, ["ant", "bee", "cat"]))


def test_all_values_of_a_map_from_integers_are_cast_map():
    network = looked_up(trt.int64, trt.float32)

    np.testing.assert_array_equal(run(export(network), {"x": {5: 1.5, -2: 2.5}})["y"], np.float32([2.5, 1.5]))


REFUSED = {
    "has the default 3": lambda: looked_up(trt.string, trt.int64, ["a"], 3),
    "reads all values of a map from StringDType": lambda: looked_up(trt.string, trt.float32),
    "reads a map from int64 to int64": lambda: looked_up(trt.int64, trt.int64, [1]),
}


@pytest.mark.parametrize(("message", "make"), REFUSED.items(), ids=REFUSED)
def test_maps_that_onnx_does_not_read_are_refused(message, make):
    with pytest.raises(trt.NetworkError, match="NL731") as caught:
        export(make())
    assert message in str(caught.value)


def test_maps_that_onnx_does_not_make_are_refused():
    network = trt.INetworkDefinition()
    x, one = network.add_input("x", trt.float64, (-1, 2)), network.add_input("one", trt.float32, (2,))
    k, twice = network.add_input("k", trt.int64, (2,)), network.add_input("twice", trt.float32, (-1, 2))
    keys = keys_of(network, [1, 2])
    maps = [
        network.add_map(*entry) for entry in ((keys, x), (keys, one), (k, twice), (keys_of(network, [1, 1]), twice))
    ]
    mark(network, **{f"y{position}": map_.get_output(0) for position, map_ in enumerate(maps)})

    with pytest.raises(trt.NetworkError) as caught:
        export(network)
    messages = [finding.what for finding in caught.value.findings]
    assert ["float64" in messages[0], "float32" in messages[1]] == [True, True]
    assert ["computed" in messages[2], "a key twice" in messages[3]] == [True, True]
