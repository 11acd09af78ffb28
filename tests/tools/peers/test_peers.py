"""Peers run networks as the reference does."""

from pathlib import Path

import numpy as np
import pytest

import netloop as trt
from netloop.tools import peers
from tests.support import networks

NAMES = ["onnxruntime", "openvino", "reference"]


@pytest.fixture(params=NAMES)
def name(request):
    pytest.importorskip("openvino")
    return request.param


def test_outputs_of_an_example(name):
    made, inputs, outputs = networks.EXAMPLES["both limits, WHILE first"]
    found = peers.peer(name, made())(inputs)

    assert found.keys() == outputs.keys()
    for tensor in outputs:
        np.testing.assert_array_equal(found[tensor], outputs[tensor])


def test_numbers_bools_and_several_inputs(name, network):
    flag, x = network.add_input("flag", trt.bool, ()), network.add_input("x", trt.int32, ())
    y = network.add_input("y", trt.int32, (-1,))
    one = network.add_shuffle(x)
    one.reshape_dims = (1,)
    made = network.add_select(_row(network, flag), one.get_output(0), y).get_output(0)
    made.name = "made"
    network.mark_output(made)
    given = {"flag": np.array(True), "x": np.array(7, np.int32), "y": np.array([1, 2], np.int32)}

    assert peers.peer(name, network)(given)["made"].tolist() == [7, 7]


def _row(network, tensor):
    layer = network.add_shuffle(tensor)
    layer.reshape_dims = (1,)
    return layer.get_output(0)


def test_input_that_nothing_reads_is_no_failure(name, network):
    x = network.add_input("x", trt.float32, (2,))
    network.add_input("unread", trt.float32, (2,))
    y = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
    network.mark_output(y)
    given = {"x": np.float32([1, 2]), "unread": np.float32([0, 0])}

    assert peers.peer(name, network)(given)[y.name].tolist() == [-1, -2]


def test_file_is_run_as_it_is(tmp_path, network):
    """The network is another one than that in the file."""
    for factor, kind in ((1, trt.UnaryOperation.NEG), (2, trt.UnaryOperation.ABS)):
        made = trt.INetworkDefinition()
        y = made.add_unary(made.add_input("x", trt.float32, (1,)), kind).get_output(0)
        y.name = "y"
        made.mark_output(y)
        trt.onnx.save(made, tmp_path / f"{factor}.onnx")
    given = {"x": np.float32([3])}

    assert peers.peer("onnxruntime", made)(given)["y"].tolist() == [3]
    assert peers.peer("onnxruntime", made, tmp_path / "1.onnx")(given)["y"].tolist() == [-3]
    assert peers.peer("onnxruntime", made, Path("model.plan"))(given)["y"].tolist() == [3]


def test_strings_in_onnxruntime(network):
    x = network.add_input("x", trt.string, (2,))
    y = network.add_string_concatenation(x, x).get_output(0)
    network.mark_output(y)

    assert peers.peer("onnxruntime", network)({"x": np.array(["a", "b"])})[y.name].tolist() == ["aa", "bb"]


def test_runtime_that_refuses_a_model_has_a_finding(tmp_path, network):
    (tmp_path / "broken.onnx").write_bytes(b"broken")

    with pytest.raises(trt.ExecutionError, match="NL613: onnxruntime refuses the model: "):
        peers.peer("onnxruntime", network, tmp_path / "broken.onnx")


def test_names_are_checked(network, monkeypatch):
    with pytest.raises(ValueError, match="there is no peer 'onnxruntme'; did you mean 'onnxruntime'"):
        peers.peer("onnxruntme", network)
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install onnxruntime"):
        peers.peer("onnxruntime", network)


def test_assertions_are_for_netloop_alone(name, network):
    x = network.add_input("x", trt.bool, ())
    network.add_assertion(x, "x is true")
    y = network.add_unary(x, trt.UnaryOperation.NOT).get_output(0)
    network.mark_output(y)

    assert peers.peer(name, network)({"x": np.array(True)})[y.name] == np.array(False)
