"""Inputs of a model that the caller fixes to values."""

import numpy as np
import openvino as ov
import pytest
from onnx import numpy_helper

import netloop
from netloop import InputError
from tests.support.onnx_models import model, session_gives
from tests.support.openvino_models import document

RATE = """g (float[n] x, int64 sr) => (float[n] y) {
  rate = Cast <to = 1> (sr)
  y = Mul (x, rate)
}"""
X = np.float32([1, 2, 3])


def load_onnx(**inputs):
    return netloop.onnx.load(model(RATE), inputs=inputs)


def load_openvino(**inputs):
    x = ov.opset16.parameter([-1], ov.Type.f32, name="x")
    rate = ov.opset16.parameter([], ov.Type.i64, name="sr")
    y = ov.opset16.multiply(x, ov.opset16.convert(rate, "f32"))
    xml, weights = document(ov.Model([ov.opset16.result(y, name="y")], [x, rate]))
    return netloop.openvino.load(xml, weights, inputs=inputs)


@pytest.mark.parametrize("load", [load_onnx, load_openvino])
@pytest.mark.parametrize("value", [16, np.int64(16), np.array(16)])
def test_fixed_input_is_a_constant_and_no_input(load, value):
    network = load(sr=value)

    assert [tensor.name for tensor in network.inputs] == ["x"]
    (found,) = netloop.compile(network)({"x": X}).values()
    assert np.asarray(found).tolist() == [16, 32, 48]


@pytest.mark.parametrize("load", [load_onnx, load_openvino])
@pytest.mark.parametrize(
    ("inputs", "code", "what"),
    [
        ({"rate": 16}, "NL602", "the model has no input 'rate'; it has 'sr', 'x'"),
        ({"sr": 16.5}, "NL603", "input 'sr' is int64[], and its value is float64[]"),
        ({"sr": np.int32(16)}, "NL603", "input 'sr' is int64[], and its value is int32[]"),
        ({"sr": [16]}, "NL603", "input 'sr' is int64[], and its value is int64[1]"),
        ({"sr": "fast"}, "NL603", "input 'sr' is int64[], and its value is <U4"),
        ({"sr": True}, "NL603", "input 'sr' is int64[], and its value is bool[]"),
        ({"sr": 1 << 70}, "NL603", "input 'sr' is int64[], and its value is object"),
        ({"x": [[1.0]]}, "NL603", "input 'x' is float32[-1], and its value is float32[1,1]"),
        ({"x": [[1.0], [1.0, 2.0]]}, "NL603", "the value for input 'x' is list, not an array"),
    ],
)
def test_value_that_does_not_fit_is_refused(load, inputs, code, what):
    with pytest.raises(InputError) as caught:
        load(**inputs)

    (found,) = caught.value.findings
    assert (found.code, found.what) == (code, what)


@pytest.mark.parametrize(("kind", "value"), [("bool", 1), ("bool", 0.0), ("int8", 300), ("uint8", -1), ("int8", 1.0)])
def test_number_that_the_element_type_lacks_is_refused(kind, value):
    text = f"g (float[2] x, {kind} n) => (float[2] y, {kind} m) {{ y = Neg (x) m = Identity (n) }}"

    with pytest.raises(InputError, match=f"input 'n' is {kind}"):
        netloop.onnx.load(model(text), inputs={"n": value})


@pytest.mark.parametrize("inputs", [[16], {3: 16}, "sr"])
def test_what_is_no_dict_from_names_is_a_type_error(inputs):
    with pytest.raises(TypeError, match="inputs are a dict from names to values"):
        netloop.onnx.load(model(RATE), inputs=inputs)


def test_integers_fix_an_input_of_floats():
    network = load_onnx(x=[1, 2, 3])

    assert [tensor.name for tensor in network.inputs] == ["sr"]
    assert netloop.evaluate(network, {"sr": np.int64(2)})["y"].tolist() == [2, 4, 6]


def test_fixed_value_decides_what_the_importer_must_know():
    text = "g (float[1, 3] x, int64[n] axes) => (float[m] y) { y = Squeeze (x, axes) }"

    network = netloop.onnx.load(model(text), inputs={"axes": [0]})

    assert network.outputs[0].shape == (3,)
    inputs = {"x": X[None], "axes": np.int64([0])}
    expected = session_gives(model(text), inputs)["y"]
    np.testing.assert_array_equal(netloop.evaluate(network, {"x": X[None]})["y"], expected)


def test_fixed_value_replaces_an_initializer():
    made = model("g (float[2] x, float[2] w) => (float[2] y) { y = Add (x, w) }")
    made.graph.initializer.append(numpy_helper.from_array(np.float32([10, 20]), "w"))

    network = netloop.onnx.load(made, inputs={"w": [1.0, 2.0]})

    assert netloop.evaluate(network, {"x": np.float32([5, 5])})["y"].tolist() == [6, 7]


def test_input_of_unknown_rank_takes_the_shape_of_its_value():
    made = model("g (float[2] x, float[1] w) => (float[2, 2] y) { y = Add (x, w) }")
    made.graph.input[1].type.tensor_type.ClearField("shape")

    assert netloop.onnx.load(made, inputs={"w": [[1.0], [2.0]]}).outputs[0].shape == (2, 2)


def test_sequence_cannot_be_fixed():
    text = "g (seq(float[2]) s, int64 i) => (float[2] y) { y = SequenceAt (s, i) }"

    with pytest.raises(netloop.ModelError, match="input 's' is not a tensor, and cannot be fixed"):
        netloop.onnx.load(model(text), inputs={"s": [np.float32([1, 2])]})


def test_fixed_input_may_be_an_output():
    network = netloop.onnx.load(
        model("g (float[2] x, int64 n) => (float[2] y, int64 n) { y = Neg (x) }"), inputs={"n": 3}
    )

    assert netloop.evaluate(network, {"x": np.float32([1, 2])})["n"] == 3
