"""Model files, and networks that the exporter refuses."""

import json
import os

import numpy as np
import onnx
import onnxruntime
import pytest

import netloop as trt
from netloop.formats.onnx_graph import exporter
from netloop.onnx import save, to_model
from netloop.values import types
from tests.support.networks import Op, asserted, chain, combine, constant, counted, counter, last, mark
from tests.support.onnx_runtime import export, run


def weighted(size=600):
    """y: x[size] and two large constants, and a small one."""
    network = trt.INetworkDefinition()
    y = network.add_input("x", trt.float32, (size,))
    for number in (1, 2):
        y = combine(network, y, constant(network, np.full(size, number, np.float32)))
    return mark(network, y=combine(network, y, 4))


def files(folder):
    return sorted(os.listdir(folder))


def by_onnxruntime(path, **inputs):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)[0]


def test_file_is_the_model(tmp_path):
    save(weighted(), tmp_path / "model.onnx")

    assert files(tmp_path) == ["model.onnx"]
    assert onnx.load(tmp_path / "model.onnx") == to_model(weighted())


def test_equal_networks_give_equal_bytes(tmp_path):
    for name in "ab":
        save(weighted(), str(tmp_path / name))

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_large_arrays_go_into_a_separate_file(tmp_path):
    save(weighted(), tmp_path / "model.onnx", external_above=100)
    name = next(file for file in files(tmp_path) if file != "model.onnx")

    assert name.startswith("model.onnx.")
    assert name.endswith(".data")
    np.testing.assert_array_equal(by_onnxruntime(tmp_path / "model.onnx", x=np.zeros(600, np.float32)), np.full(600, 7))


def test_small_arrays_stay_in_the_model(tmp_path):
    save(weighted(), tmp_path / "model.onnx", external_above=100_000)

    assert files(tmp_path) == ["model.onnx"]


def test_older_model_keeps_its_arrays(tmp_path):
    save(weighted(600), tmp_path / "model.onnx", external_above=100)
    older = (tmp_path / "model.onnx").read_bytes()
    save(weighted(700), tmp_path / "model.onnx", external_above=100)
    (tmp_path / "older.onnx").write_bytes(older)

    np.testing.assert_array_equal(by_onnxruntime(tmp_path / "older.onnx", x=np.zeros(600, np.float32)), np.full(600, 7))


def test_refused_network_leaves_the_file_as_it_was(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"before")
    with pytest.raises(trt.NetworkError):
        save(asserted(), tmp_path / "model.onnx")

    assert (tmp_path / "model.onnx").read_bytes() == b"before"
    assert files(tmp_path) == ["model.onnx"]


def test_all_reasons_are_reported_at_once():
    network = asserted()
    x = network.add_input("x", trt.float32, (32,))
    quantised = network.add_dynamic_quantize(x, 0, 32, trt.fp8, trt.e8m0)
    quantised.name = "powers"
    mark(network, q=quantised.get_output(0))
    with pytest.raises(trt.NetworkError) as caught:
        to_model(network)

    assert [finding.code for finding in caught.value.findings] == ["NL731", "NL731"]
    assert all(__file__ in finding.where or "networks.py" in finding.where for finding in caught.value.findings)
    assert "'powers'" in str(caught.value)


def test_assertion_in_a_loop_is_refused():
    with pytest.raises(trt.NetworkError, match="drop_assertions=True"):
        to_model(asserted())


def test_assertion_known_to_hold_is_left_out():
    network = chain(1)
    network.add_assertion(constant(network, True, np.bool_), "it is")

    assert [attribute.op_type for attribute in export(network).graph.node] == ["Neg"]


def test_layer_of_an_unknown_kind_is_refused():
    class Mine(trt.IIdentityLayer):
        pass

    network = trt.INetworkDefinition()
    mark(network, y=network.add(Mine(), [network.add_input("x", trt.float32, ())]).get_output(0))
    with pytest.raises(trt.NetworkError, match="there are no operators for its kind"):
        to_model(network)


def test_network_with_errors_is_refused_as_everywhere():
    network = trt.INetworkDefinition()
    network.add_loop().add_recurrence(network.add_input("x", trt.float32, ()))

    with pytest.raises(trt.NetworkError):
        to_model(network)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"opset": 20}, ValueError),
        ({"opset": 27}, ValueError),
        ({"opset": "21"}, TypeError),
        ({"drop_assertions": None}, TypeError),
        ({"external_above": -1}, ValueError),
        ({"external_above": 1.5}, TypeError),
    ],
)
def test_bad_options_are_refused(tmp_path, options, error):
    with pytest.raises(error, match=next(iter(options))):
        save(chain(1), tmp_path / "model.onnx", **options)

    assert files(tmp_path) == []


@pytest.mark.parametrize("network", [None, "model", 3])
def test_other_objects_than_networks_are_refused(network):
    with pytest.raises(TypeError, match="network"):
        to_model(network)


def test_type_newer_than_the_opset_is_refused():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (16,))
    mark(network, y=network.add_cast(x, trt.fp4).get_output(0))

    assert to_model(network).opset_import[0].version == 23
    with pytest.raises(trt.NetworkError, match="opset=23"):
        to_model(network, opset=22)


def test_inner_names_give_way_to_those_of_inputs_and_outputs():
    network = trt.INetworkDefinition()
    x = network.add_input("iteration", trt.float32, (3,))
    loop = counted(network, 3)
    now = counter(network, loop)
    now.name = "y"
    total = loop.add_recurrence(constant(network, 0, np.float32))
    total.get_output(0).name = "iteration"
    total.set_input(1, combine(network, total.get_output(0), loop.add_iterator(x).get_output(0)))
    for kind in (total.get_output(0), now):
        network.mark_output(loop.add_loop_output(kind, trt.LoopOutput.LAST_VALUE).get_output(0))
    network.outputs[0].name, network.outputs[1].name = "y", "constant"

    assert run(export(network), {"iteration": np.float32([1, 2, 3])}) == {"y": 6, "constant": 3}


def test_constant_can_be_an_output():
    network = trt.INetworkDefinition()
    mark(network, y=constant(network, [1, 2], np.int64))

    np.testing.assert_array_equal(run(export(network), {})["y"], [1, 2])


def test_input_can_be_an_output():
    network = trt.INetworkDefinition()
    network.mark_output(network.add_input("x", trt.float32, (2,)))

    np.testing.assert_array_equal(run(export(network), {"x": np.float32([1, 2])})["x"], [1, 2])


def test_unknown_lengths_stay_open():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 2))
    model = export(mark(network, y=combine(network, x, x)))

    for info in (*model.graph.input, *model.graph.output):
        assert [dim.HasField("dim_value") for dim in info.type.tensor_type.shape.dim] == [False, True]


def test_four_bit_constants_are_packed():
    network = trt.INetworkDefinition()
    x = np.array([1, -2, 7], types.NUMPY_TYPES[trt.int4])
    weights = network.add_constant((3,), x).get_output(0)
    scale = constant(network, 0.5, np.float32)
    mark(network, y=network.add_dequantize(weights, scale, trt.float32).get_output(0))
    model = to_model(network)

    np.testing.assert_array_equal(run(model, {})["y"], [0.5, -1, 3.5])


def test_input_without_a_name_is_refused():
    network = trt.INetworkDefinition()
    x = network.add_input("", trt.float32, (2,))

    with pytest.raises(trt.NetworkError, match="has no name"):
        to_model(mark(network, y=combine(network, x, x)))


def nested_conditions(depth):
    """Nested loops, each in the condition of the outer one."""
    network = trt.INetworkDefinition()
    states = []
    for _ in range(depth):
        first = states[-1].get_output(0) if states else constant(network, 0, np.int32)
        states.append(network.add_loop().add_recurrence(first))
    tensor = states[-1].get_output(0)
    for state in reversed(states):
        state.set_input(1, combine(network, state.get_output(0), 1))
        state.loop.add_trip_limit(combine(network, tensor, 3, Op.LESS), trt.TripLimit.WHILE)
        tensor = last(state.loop, state.get_output(0))
    return mark(network, y=tensor)


def test_conditions_in_conditions_can_be_too_many(monkeypatch):
    monkeypatch.setattr(exporter, "MOST_COPIES", 100)
    assert run(export(nested_conditions(3)), {}) == trt.evaluate(nested_conditions(3), {})
    with pytest.raises(trt.NetworkError, match="copies of its layers"):
        to_model(nested_conditions(8))


def test_reasons_are_json():
    with pytest.raises(trt.NetworkError) as caught:
        to_model(asserted())

    assert "NL731" in json.dumps([finding.as_json() for finding in caught.value.findings])
