"""Names in files are cut and escaped in messages, in every place where a file can have one."""

import re

import onnx
import onnx.parser
import pytest

import netloop as trt
from netloop import wts
from netloop.values.diagnostics import LayerError
from tests.fuzz.onnx_models import messages

NAME = "x\nNL101: a line that looks like a finding\r\x1b[2J\u202e" + "y" * 400_000

ONNX = """
<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2, "length"] x) => (float[2] y)
<float[2] w = {1, 2}>
{
   a = Slice (x)
   b = Relu <direction = "word", axis: int = @axis> (missing)
   [n] c = own.function <alpha = 1.0> (x, x, x)
   d = If (x) <then_branch = t () => (float e) { e = Odd (x, f) }>
   y = LSTM <direction = "sideways"> (x, w, w)
   z = Cast <to = 99> (x)
}
<domain: "own", opset_import: ["" : 21]> function <alpha> (p) => (q) { q = Elu <alpha: float = @alpha> (p) }
"""
"""A model with an error in nearly every node."""

OPENVINO = """
<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
  <output><port id="0" precision="FP32" names="x,z"><dim>2</dim></port></output></layer>
<layer id="1" name="a" type="Odd" version="opset1"><data mode="word"/>
  <input><port id="0"/></input><output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="2" name="b" type="Result" version="opset1"><input><port id="0"/></input></layer>
<layer id="3" name="c" type="Const" version="opset1"><data element_type="f31" shape="2" offset="0" size="8"/>
  <output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="4" name="d" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
</edges></net>
"""
KNOWN = OPENVINO.replace("Odd", "Softmax").replace('mode="word"', 'axis="word"')


def texts_of(model):
    """The places of texts in a model, each as a function that puts another one there."""
    for message in messages(model):
        for field, value in message.ListFields():
            if field.type in (field.TYPE_STRING, field.TYPE_BYTES) and field.name != "raw_data":
                for number in range(len(value)) if not isinstance(value, str | bytes) else [None]:
                    yield message, field, number


def models_with_a_huge_name():
    for place in range(len(list(texts_of(onnx.parser.parse_model(ONNX))))):
        model = onnx.parser.parse_model(ONNX)
        message, field, number = list(texts_of(model))[place]
        name = NAME.encode() if field.type == field.TYPE_BYTES else NAME
        if number is None:
            setattr(message, field.name, name)
        else:
            getattr(message, field.name)[number] = name
        yield model.SerializeToString()


def check_text(error):
    """Each finding is short, and has no line and no control character of the name."""
    for finding in error.findings:
        text = str(finding)
        assert len(text) < 5000
        assert all(line.isprintable() for line in text.split("\n"))
        assert not re.search("^NL101: a line", text, re.MULTILINE)


def test_names_of_an_onnx_model_are_cut():
    found = 0
    for model in models_with_a_huge_name():
        with pytest.raises(trt.ModelError) as caught:
            trt.onnx.load(model)
        check_text(caught.value)
        found += "yyyy" in str(caught.value)

    assert found > 20


@pytest.mark.parametrize("document", [OPENVINO, KNOWN], ids=["unknown operator", "known operator"])
def test_names_of_an_openvino_model_are_cut(document):
    found = 0
    for place in re.finditer(r'(?<=")[^"<>=]+(?=")|(?<=<dim>)2', document):
        name = NAME.replace("\n", "&#10;").replace("\r", "").replace("\x1b", "")
        with pytest.raises(trt.ModelError) as caught:
            trt.openvino.load((document[: place.start()] + name + document[place.end() :]).encode(), bytes(8))
        check_text(caught.value)
        found += "yyyy" in str(caught.value)

    assert found > 10


@pytest.mark.parametrize(
    "data",
    [b"1\n%b 99 (1) ", b"1\n%b 0 (1) \0", b"2\n%b 0 1 0\n%b 0 1 0\n", b"1\na 0 1 %b\n", b"%b"],
    ids=["type", "elements", "twice", "element", "start"],
)
def test_names_of_a_weight_file_are_cut(tmp_path, data):
    (tmp_path / "net.wts").write_bytes(data.replace(b"%b", b"\x1b\xe2\x80\xae" + b"y" * 4000))

    with pytest.raises(trt.FileFormatError) as caught:
        wts.load(tmp_path / "net.wts")
    check_text(caught.value)


def test_layer_of_a_huge_name_is_cut():
    network = trt.INetworkDefinition()
    layer = network.add_identity(network.add_input("x", trt.float32, (2,)))
    layer.name = NAME

    check_text(trt.NetworkError(layer.finding_of(LayerError("its input is wrong"))))
    layer.set_input(0, network.add_sequence_input("s", trt.float32))
    network.mark_output(layer.get_output(0))
    check_text(trt.NetworkError(*trt.check(network)))
