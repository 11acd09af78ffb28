"""Damaged and malicious models: each is refused with a ModelError, in bounded time and memory."""

import contextlib
import os
import random
import time

import numpy as np
import pytest

import netloop
from netloop import ModelError
from tests.support.openvino_models import F, Loop, constant, document, ops, ov, parameter


def refused(xml, weights=None):
    """The findings of a model that is refused."""
    with pytest.raises(ModelError) as caught:
        netloop.openvino.load(xml, weights)
    return [(finding.code, finding.what) for finding in caught.value.findings]


@pytest.fixture(scope="module")
def sums():
    """A model of a loop and a constant, as OpenVINO writes it."""
    x, start = parameter("x", [3, 2]), constant(F([[10, 20]]))
    loop = Loop(3)
    row, total = loop.sliced(x, [1, 2]), loop.state(start)
    (last,) = loop.outputs([(total, after := ops.add(total, row))], [after])
    return document(ov.Model([ops.result(last)], [x]))


# ---------------------------------------------------------------------------- XML


@pytest.mark.parametrize(
    "xml",
    [
        b"",
        b"\0",
        b"PK\x03\x04",
        b"<net",
        b"<net><layers></net>",
        b"<net/><net/>",
        b"<net a='1' a='2'/>",
        b"<net>&unknown;</net>",
        b"<net name='\xff'/>",
    ],
)
def test_what_is_no_xml_is_refused(xml):
    ((code, what),) = refused(xml)

    assert (code, what[:31]) == ("NL751", "the document is not well-formed")


@pytest.mark.parametrize(
    "declared",
    [
        b"<!DOCTYPE net>",
        b'<!DOCTYPE net SYSTEM "file:///etc/passwd">',
        b'<!DOCTYPE net [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
    ],
)
def test_doctype_is_refused(declared):
    assert refused(declared + b"<net>&b;</net>") == [("NL751", "the document has a DOCTYPE")]


def test_elements_inside_each_other_without_end_are_refused():
    xml = b"<net>" + b"<a>" * 1_000_000

    assert refused(xml) == [("NL751", "elements are nested more than 256 deep")]


def test_model_is_a_net():
    assert refused(b"<html/>") == [("NL751", "the document is <html>, but must be <net>")]


def test_other_versions_are_refused():
    what = "the model is of version '7', and netloop reads 10 and 11"

    assert refused(b'<net version="7"><layers/></net>') == [("NL751", what)]


def test_model_without_layers_is_refused():
    assert refused(b'<net version="11"/>') == [("NL753", "<net> has no <layers>")]


@pytest.mark.parametrize("path", ["missing.xml", "", "\0", "."])
def test_document_that_cannot_be_read_is_refused(tmp_path, path):
    assert refused(str(tmp_path / path) if path != "\0" else path)[0][0] == "NL751"


def test_finding_names_the_line():
    with pytest.raises(ModelError, match=r"at the model:3"):
        netloop.openvino.load(b"<net>\n<layers>\n</net>")


# ---------------------------------------------------------------------------- weights


def test_missing_weights_are_one_finding(sums):
    assert refused(sums[0]) == [("NL752", "the model has no weights")]


def test_missing_file_of_weights_is_reported_by_its_name(sums, tmp_path):
    (tmp_path / "model.xml").write_bytes(sums[0])

    assert refused(tmp_path / "model.xml") == [("NL752", f"there is no file '{tmp_path / 'model.bin'}'")]
    assert refused(tmp_path / "model.xml", tmp_path / "other.bin")[0][0] == "NL752"


def test_weights_that_end_too_early_are_refused_with_the_layers(sums):
    findings = refused(sums[0], sums[1][:5])

    assert {code for code, _ in findings} == {"NL752"}
    assert "the constant is in bytes" in findings[0][1]


def test_pipe_is_refused_without_waiting(sums, tmp_path):
    os.mkfifo(tmp_path / "pipe")

    assert refused(sums[0], tmp_path / "pipe")[0][0] == "NL752"
    ((code, what),) = refused(tmp_path / "pipe")
    assert code == "NL751"
    assert what == f"the file cannot be read: [Errno 22] This is not a regular file: {str(tmp_path / 'pipe')!r}"


@pytest.mark.parametrize("offset", ["-1", "99999", str(2**63 - 1), str(2**63), "1e3", "0x10", "", "\u0661", "1_0"])
def test_constant_outside_of_the_weights_is_refused(sums, offset):
    xml, weights = sums
    assert b'offset="0"' in xml

    assert refused(xml.replace(b'offset="0"', f'offset="{offset}"'.encode(), 1), weights)


@pytest.mark.parametrize("size", ["0", "4", "-8", str(2**62)])
def test_constant_of_another_size_than_its_shape_is_refused(sums, size):
    xml, weights = sums

    assert refused(xml.replace(b'size="8"', f'size="{size}"'.encode(), 1), weights)


@pytest.mark.parametrize("shape", ["1000000000000", "1000000,1000000", "-3", "x", "1,,2", "9" * 500, "..."])
def test_constant_of_an_impossible_shape_is_refused(sums, shape):
    xml, weights = sums
    assert b'shape="1, 2"' in xml

    assert refused(xml.replace(b'shape="1, 2"', f'shape="{shape}"'.encode(), 1), weights)


@pytest.mark.parametrize("shape", ["1000000000000,1000000000000", "-3", "x", "9" * 500, "..."])
def test_input_of_an_impossible_shape_is_refused(sums, shape):
    xml, weights = sums
    assert b'shape="3,2"' in xml

    assert refused(xml.replace(b'shape="3,2"', f'shape="{shape}"'.encode(), 1), weights)


@pytest.mark.parametrize("type", ["string", "nf4", "undefined", "", "f31"])
def test_element_type_that_no_tensor_has_is_refused(sums, type):
    xml, weights = sums

    assert refused(xml.replace(b'element_type="f32"', f'element_type="{type}"'.encode(), 1), weights)[0][0] == "NL746"


# ---------------------------------------------------------------------------- layers and edges


TANH = """
<net version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
  <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="1" name="y" type="Tanh" version="opset1">
  <input><port id="0"/></input><output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="2" name="z" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
</edges></net>
"""


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ('<layer id="1"', '<layer id="0"', "layers 'x' and 'y' have one id, 0"),
        ('<port id="1" p', '<port id="0" p', "layer 'y' has two ports of number 0"),
        ('from-layer="1"', 'from-layer="7"', "an edge names output 1 of layer 7, which does not exist"),
        ('from-port="1"', 'from-port="5"', "an edge names output 5 of layer 1, which does not exist"),
        (
            'to-layer="2" to-port="0"',
            'to-layer="2" to-port="3"',
            "an edge names input 3 of layer 2, which does not exist",
        ),
        ('to-layer="2"', 'to-layer="1"', "two edges lead to input 0 of layer 'y'"),
        ('from-layer="0" ', "", "<edge> has no attribute 'from-layer'"),
        ('<layer id="1"', "<layer", "<layer> has no attribute 'id'"),
        ('<layer id="1"', '<layer id="one"', "id of <layer> is 'one', but must be an integer"),
        ("<dim>2</dim>", "<dim>two</dim>", "a length of <dim> is 'two', but must be an integer"),
        ('type="Tanh"', "", "layer 'y' has no type"),
        ('type="Tanh"', 'type="Add"', "the layer has 1 inputs, and Add-1 takes 2"),
        ('type="Tanh"', 'type="Const"', "layer 'y' has 1 inputs, and a Const has 0"),
        ('type="Tanh"', 'type="Parameter"', "layer 'y' has 1 inputs, and a Parameter has 0"),
        ('<input><port id="0"/></input></layer>', "</layer>", "layer 'z' has 0 inputs, and a Result has 1"),
        ('type="Tanh"', 'type="Tanner"', "netloop has no operator Tanner-1"),
        ('type="Tanh" version="opset1"', 'type="Tanh" version="opset99"', "netloop has no operator Tanh-99"),
        ('from-layer="0" from-port="0"', 'from-layer="1" from-port="1"', "layers read each other in a circle: y <- y"),
        ('<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>', "", "no edge leads to input 0"),
    ],
)
def test_damaged_graph_is_refused_with_what_is_wrong(before, after, what):
    assert before in TANH

    assert what in [name for _, name in refused(TANH.replace(before, after, 1).encode())]


def test_whole_graph_is_loaded():
    found = netloop.compile(netloop.openvino.load(TANH.encode()))({"x": F([0, 1])})

    np.testing.assert_allclose(found["z"], np.tanh(F([0, 1])), rtol=1e-6)


def test_layer_that_nothing_needs_may_be_anything():
    more = '<layer id="9" name="odd" type="Odd" version="extension"/></layers>'

    assert netloop.openvino.load(TANH.replace("</layers>", more).encode()).num_layers == 1


def test_number_of_findings_is_bounded():
    layers = "".join(f'<layer id="{n}" name="l"/>' for n in range(5000))

    assert len(refused(f"<net><layers>{layers}</layers></net>".encode())) == 1000


# ---------------------------------------------------------------------------- bodies


STATE = b'external_port_id="3" internal_layer_id="1"'


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (
            b'external_port_id="3" internal_layer_id="1"',
            b'external_port_id="2" internal_layer_id="1"',
            "maps port 2 twice",
        ),
        (
            b'external_port_id="3" internal_layer_id="1"',
            b'external_port_id="3" internal_layer_id="0"',
            "of its body twice",
        ),
        (STATE, b'external_port_id="8" internal_layer_id="1"', "reads port 8"),
        (
            b'external_port_id="3" internal_layer_id="1"',
            b'external_port_id="3" internal_layer_id="2"',
            "is not a Parameter",
        ),
        (b'to-layer="1" />\n\t\t\t</back_edges>', b'to-layer="2" />\n\t\t\t</back_edges>', "which is not a Parameter"),
        (b'to-layer="1" />\n\t\t\t</back_edges>', b'to-layer="99" />\n\t\t\t</back_edges>', "which is not a Parameter"),
        (
            b'to-layer="1" />\n\t\t\t</back_edges>',
            b'to-layer="0" />\n\t\t\t</back_edges>',
            "sliced and loop-carried",
        ),
        (b'<input external_port_id="3" internal_layer_id="1" />', b"", "has no initial value"),
        (b"</body>", b"</body><body/>", "has more than one <body>"),
        (b'<output external_port_id="4"', b'<output external_port_id="9"', "no result of the body is output 4"),
    ],
)
def test_damaged_wiring_of_a_body_is_refused(sums, before, after, what):
    xml, weights = sums
    assert before in xml

    findings = refused(xml.replace(before, after, 1), weights)
    assert any(what in name for _, name in findings), findings


def test_two_back_edges_to_one_parameter_are_refused(sums):
    xml, weights = sums
    start = xml.index(b"<back_edges>") + len(b"<back_edges>")
    edge = xml[start : xml.index(b"</back_edges>")]

    what = refused(xml[:start] + edge + xml[start:], weights)[0][1]
    assert "has two back edges to layer 1 of its body" in what


def test_bodies_inside_each_other_are_bounded():
    inner = '<layers><layer id="0" name="r" type="Result" version="opset1"/></layers>'
    for _ in range(60):
        loop = f'<layer id="0" name="l" type="TensorIterator" version="opset1"><body>{inner}</body></layer>'
        inner = f'<layers>{loop}<layer id="1" name="r" type="Result" version="opset1"/></layers>'

    assert refused(f"<net>{inner}</net>".encode())


# ---------------------------------------------------------------------------- random changes


@pytest.mark.parametrize("seed", range(4))
def test_random_damage_ends_in_a_network_or_a_model_error(sums, seed):
    xml, weights = sums
    chance = random.Random(seed)
    words = [*b'0123456789-"<>/ ', *range(97, 105)]
    for _ in range(60):
        damaged = bytearray(xml)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(damaged))
            if chance.random() < 0.3:
                del damaged[place : place + chance.randint(1, 40)]
            else:
                damaged[place] = chance.choice(words)
        with contextlib.suppress(ModelError):
            netloop.openvino.load(bytes(damaged), weights)


# ---------------------------------------------------------------------------- large numbers of small things


def test_too_many_outputs_are_refused():
    more = "".join(
        f'<layer id="{n}" name="r{n}" type="Result" version="opset1"><input><port id="0"/></input></layer>'
        for n in range(3, 10_003)
    )
    edges = "".join(f'<edge from-layer="1" from-port="1" to-layer="{n}" to-port="0"/>' for n in range(3, 10_003))
    xml = TANH.replace("</layers>", f"{more}</layers>").replace("</edges>", f"{edges}</edges>")

    assert refused(xml.encode()) == [("NL753", "the model has 1 inputs and 10001 outputs, and may have 10000 of each")]


def test_bodies_of_a_layer_are_read_in_linear_time():
    bodies = "<body/>" * 50_000
    xml = f'<net version="11"><layers><layer id="0" name="l" type="Loop">{bodies}</layer></layers></net>'
    before = time.process_time()

    assert refused(xml.encode()) == [
        ("NL753", "layer 'l' has more than one <body>"),
        ("NL753", "<body> has no <layers>"),
    ]
    assert time.process_time() - before < 10


# ---------------------------------------------------------------------------- computed lists


def layer(id, type, version="opset1", data="", inputs=(), outputs=1):
    """A layer as XML, with ports of unknown dims."""
    ends = "".join(f'<port id="{port}"/>' for port in range(inputs))
    made = "".join(f'<port id="{inputs + port}" precision="FP32"/>' for port in range(outputs))
    return (
        f'<layer id="{id}" name="l{id}" type="{type}" version="{version}"><data {data}/>'
        f"<input>{ends}</input><output>{made}</output></layer>"
    )


def of_long_list(type, version, data, ends, outputs=1):
    """A layer that reads float32[2] ``x`` or float32[1,4,6] ``t``, and a list ``e`` of 10^10 elements or axis ``a``."""
    sources = {"x": 0, "t": 1, "e": 5, "a": 3}
    layers = [
        layer(0, "Parameter", data='shape="2" element_type="f32"', inputs=0),
        layer(1, "Parameter", data='shape="1,4,6" element_type="f32"', inputs=0),
        layer(2, "Parameter", data='shape="1" element_type="i64"', inputs=0),
        layer(3, "Const", data='element_type="i64" shape="1" offset="0" size="8"', inputs=0),
        layer(4, "Const", data='element_type="i64" shape="1" offset="8" size="8"', inputs=0),
        layer(5, "Broadcast", "opset3", 'mode="numpy"', 2),
        layer(6, type, version, data, len(ends), outputs),
        layer(7, "Result", inputs=1, outputs=0),
    ]
    wires = [(2, 0, 5, 0), (4, 0, 5, 1), (6, len(ends), 7, 0)]
    wires += [(sources[end], 2 if end == "e" else 0, 6, port) for port, end in enumerate(ends)]
    edges = "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in wires)
    return f'<net name="g" version="11"><layers>{"".join(layers)}</layers><edges>{edges}</edges></net>'


@pytest.mark.parametrize(
    ("type", "version", "data", "ends"),
    [
        ("Broadcast", "opset3", 'mode="bidirectional"', "xe"),
        ("Broadcast", "opset3", 'mode="numpy"', "xe"),
        ("Broadcast", "opset3", 'mode="explicit"', "xea"),
        ("Broadcast", "opset1", 'mode="pdpd"', "xe"),
        ("Reshape", "opset1", 'special_zero="true"', "xe"),
        ("Tile", "opset1", "", "xe"),
        ("Unsqueeze", "opset1", "", "xe"),
        ("Squeeze", "opset1", "", "xe"),
        ("ReduceSum", "opset1", 'keep_dims="false"', "xe"),
        ("StridedSlice", "opset1", 'begin_mask="" end_mask=""', "xee"),
        ("Slice", "opset8", "", "xeee"),
        ("Pad", "opset1", 'pad_mode="constant"', "xee"),
        ("VariadicSplit", "opset1", "", "xae"),
        ("Transpose", "opset1", "", "xe"),
        ("Roll", "opset7", "", "xee"),
        ("Col2Im", "opset15", 'strides="1,1" dilations="1,1" pads_begin="0,0" pads_end="0,0"', "tee"),
        ("AdaptiveMaxPool", "opset8", "", "te"),
        ("BatchToSpace", "opset2", "", "teee"),
        ("Interpolate", "opset11", 'mode="nearest" shape_calculation_mode="sizes"', "te"),
        ("RandomUniform", "opset8", 'output_type="f32" op_seed="1" global_seed="2"', "exx"),
        ("NormalizeL2", "opset1", 'eps="1" eps_mode="add"', "te"),
        ("ReverseSequence", "opset1", 'batch_axis="0" seq_axis="1"', "te"),
    ],
)
def test_lists_that_are_computed_and_too_long_are_refused_at_once(type, version, data, ends):
    """The list has 10^10 elements, and its bytes are in no file: nothing may be made for each of them."""
    xml, before = of_long_list(type, version, data, ends), time.process_time()

    assert refused(xml.encode(), np.array([0, 10**10]).tobytes())
    assert time.process_time() - before < 2


@pytest.mark.parametrize("count", [1, 3, 10**10])
def test_parts_that_are_no_outputs_are_refused(count):
    xml = of_long_list("Split", "opset1", f'num_splits="{count}"', "xa", 2)

    (finding,) = refused(xml.encode(), np.array([0, 2]).tobytes())
    assert finding[1] == f"the axis is split into {count} parts, and the layer has 2 outputs"


def test_windows_beyond_memory_are_refused():
    xml = of_long_list("AdaptiveMaxPool", "opset8", 'index_element_type="i64"', "ta").replace(
        ' shape="1,4,6"', ' shape="1,4,600000"'
    )

    ((_, what),) = refused(xml.encode(), np.array([10**10, 2]).tobytes())
    assert what == "the windows have 10000000000 elements or more, but may have 67108864"
