"""Peers run networks as the reference does."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.tools import peers
from netloop.values import foreign_arrays
from tests.support import networks
from tests.support.foreign_arrays import CudaArray, CudaTensor

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


def negated(network):
    y = network.add_unary(network.add_input("x", trt.float32, (2,)), trt.UnaryOperation.NEG).get_output(0)
    network.mark_output(y)
    return y.name


@pytest.mark.parametrize("tensor", [CudaTensor, CudaArray, jnp.asarray])
def test_arrays_on_a_device_are_copied_to_the_host(name, network, monkeypatch, tensor):
    monkeypatch.setattr(foreign_arrays, "_has_platform", lambda name: name == "cuda")
    output = negated(network)

    assert peers.peer(name, network)({"x": tensor(np.float32([1, 2]))})[output].tolist() == [-1, -2]


def test_tensor_that_cannot_be_read_is_no_failure_of_the_runtime(name, network):
    negated(network)
    with pytest.raises(trt.InputError, match=r"the value of 'x' cannot be read here: it is a CudaTensor on cuda:0"):
        peers.peer(name, network)({"x": CudaTensor(np.float32([1, 2]), visible=False)})


def test_tensors_of_a_sequence_are_copied_to_the_host(network, monkeypatch):
    monkeypatch.setattr(foreign_arrays, "_has_platform", lambda name: name == "cuda")
    first = network.add_sequence_at(network.add_sequence_input("xs", trt.float32, (2,)), _zero(network)).get_output(0)
    network.mark_output(first)

    outputs = peers.peer("reference", network)({"xs": [CudaTensor(np.float32([1, 2]))]})
    assert outputs[first.name].tolist() == [1, 2]


def _zero(network):
    return network.add_constant((), np.array(0, np.int64)).get_output(0)


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
