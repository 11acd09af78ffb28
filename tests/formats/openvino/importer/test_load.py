"""Loading of models: files, names, and errors, which are reported at once."""

import re

import numpy as np
import pytest

import netloop
from netloop import ModelError
from tests.support.openvino_models import F, check, constant, document, load, ops, ov, parameter

X = F([[1, 2], [3, 4]])


def sum_model():
    x = parameter("x", [2, 2])
    total = ops.add(x, constant(F([10, 20])), name="total")
    return ov.Model([ops.result(total)], [x], "sums")


def test_model_is_loaded_from_a_path_with_the_weights_next_to_it(tmp_path):
    ov.serialize(sum_model(), tmp_path / "model.xml")

    check(netloop.openvino.load(tmp_path / "model.xml"), {"x": X}, X + F([10, 20]))


@pytest.mark.parametrize("convert", [str, lambda path: path, lambda path: path.read_bytes()])
def test_weights_may_be_elsewhere(tmp_path, convert):
    ov.serialize(sum_model(), tmp_path / "model.xml", tmp_path / "numbers")

    check(netloop.openvino.load(tmp_path / "model.xml", convert(tmp_path / "numbers")), {"x": X}, X + F([10, 20]))


@pytest.mark.parametrize("version", ["IR_V10", "IR_V11"])
def test_both_versions_of_the_format_are_read(tmp_path, version):
    ov.serialize(sum_model(), tmp_path / "model.xml", version=version)

    check(netloop.openvino.load(str(tmp_path / "model.xml")), {"x": X}, X + F([10, 20]))


def test_weights_of_half_precision_are_widened(tmp_path):
    ov.save_model(sum_model(), tmp_path / "model.xml")

    check(netloop.openvino.load(tmp_path / "model.xml"), {"x": X}, X + F([10, 20]))


def test_inputs_keep_their_names_in_their_order():
    x, y = parameter("first", [2]), parameter("second", [2])
    network = load(ov.Model([ops.result(ops.subtract(y, x))], [x, y]))

    assert [tensor.name for tensor in network.inputs] == ["first", "second"]


def test_outputs_are_called_as_their_tensors():
    x = parameter("x", [2])
    y = ops.tanh(x)
    y.output(0).set_names({"squashed"})
    network = load(ov.Model([ops.result(y), ops.result(x, name="same")], [x]))

    assert [tensor.name for tensor in network.outputs] == ["squashed", "same"]


def test_output_without_names_is_called_as_its_result_or_what_older_models_call_it():
    xml, weights = document(sum_model())
    bare = re.sub(rb' (output_)?names="[^"]*"', b"", xml)
    old = re.sub(rb'name="Result_\d+"', b'name="total/sink_port_0"', bare)

    assert load_names(bare, weights)[0].startswith("Result_")
    assert load_names(old, weights) == ["total"]


def load_names(xml, weights):
    return [tensor.name for tensor in netloop.openvino.load(xml, weights).outputs]


def test_one_tensor_may_be_two_outputs():
    x = parameter("x", [2])
    y = ops.tanh(x)

    check(load(ov.Model([ops.result(y), ops.result(y)], [x])), {"x": X[0]}, np.tanh(X[0]), np.tanh(X[0]))


def test_open_lengths_are_given_by_the_call():
    x = parameter("x", [-1, 2])
    network = load(ov.Model([ops.result(ops.add(x, constant(F([10, 20]))))], [x]))

    assert network.get_input(0).type.shape == (-1, 2)
    check(network, {"x": X}, X + F([10, 20]))


def test_unknown_number_of_axes_is_refused():
    x = ops.parameter(ov.PartialShape.dynamic(), np.float32, name="x")

    with pytest.raises(ModelError, match="the model does not declare the rank of 'x'"):
        load(ov.Model([ops.result(ops.tanh(x))], [x]))


def test_all_unknown_operators_are_reported_at_once():
    xml, weights = document(sum_model())
    xml = xml.replace(b'type="Add" version="opset1"', b'type="Adding" version="opset1"')
    xml = xml.replace(b'type="Const" version="opset1"', b'type="Const" version="extension"')

    with pytest.raises(ModelError) as caught:
        netloop.openvino.load(xml, weights)
    assert sorted((finding.code, finding.what) for finding in caught.value.findings) == [
        ("NL744", "netloop has no operator Adding-1"),
        ("NL744", "netloop has no operator Const-extension"),
    ]
    assert all("layer" in finding.where and "line" in finding.where for finding in caught.value.findings)


def test_unknown_operator_has_the_number_of_its_layers_and_a_way_out():
    x = parameter("x", [2])
    xml, weights = document(ov.Model([ops.result(ops.tanh(ops.tanh(x)))], [x]))
    xml = xml.replace(b'type="Tanh" version="opset1"', b'type="Tanner" version="mine"')

    with pytest.raises(ModelError) as caught:
        netloop.openvino.load(xml, weights)
    (found,) = caught.value.findings
    assert found.what == "netloop has no operator Tanner-mine, which 2 layers have"
    assert found.fix.startswith("pass operators={'Tanner': function}")


def test_function_of_the_caller_adds_the_layers_of_an_operator():
    x = parameter("x", [2])
    xml, weights = document(ov.Model([ops.result(ops.elu(x, 0.5))], [x]))
    xml = xml.replace(b'type="Elu" version="opset1"', b'type="Scale" version="mine"')

    def scale(network, inputs, attributes):
        factor = network.add_constant((1,), F([float(attributes["alpha"])])).get_output(0)
        return network.add_elementwise(inputs[0], factor, netloop.ElementWiseOperation.PROD).get_output(0)

    network = netloop.openvino.load(xml, weights, operators={"Scale": scale})

    check(network, {"x": F([2, -4])}, F([1, -2]))


def test_later_version_of_an_operator_is_not_read_as_an_earlier_one():
    assert netloop.openvino.supports("LSTMCell", "opset17") is False
    assert netloop.openvino.supports("Add", "opset13") is True
    assert netloop.openvino.supports("Nonsense") is False


def test_finding_of_a_layer_has_its_name():
    xml, weights = document(sum_model())
    xml = xml.replace(b'shape="2,2"', b'shape="2,3"')

    with pytest.raises(ModelError, match="'total'"):
        netloop.openvino.load(xml, weights)


@pytest.mark.parametrize("wrong", [None, 3, {"x": 1}])
def test_wrong_python_type_is_a_type_error(wrong):
    with pytest.raises(TypeError, match="model is a path or bytes"):
        netloop.openvino.load(wrong)
