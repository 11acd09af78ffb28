"""Loading of models: names, shapes, and errors."""

import numpy as np
import onnx
import pytest

import netloop
from netloop import ModelError
from tests.support.onnx_models import engine_of, model

DOUBLE = "double (float[n, 2] x) => (float[n, 2] y) { y = Add (x, x) }"


def findings(given):
    with pytest.raises(ModelError) as caught:
        netloop.onnx.load(given)
    return [(finding.code, finding.what) for finding in caught.value.findings]


def test_inputs_and_outputs_keep_their_names_and_open_lengths():
    network = netloop.onnx.load(model(DOUBLE))

    assert (network.inputs[0].name, network.inputs[0].shape) == ("x", (-1, 2))
    assert (network.outputs[0].name, network.outputs[0].shape) == ("y", (-1, 2))
    assert network.inputs[0].get_dimension_name(0) == "n"


def test_layers_are_named_after_their_nodes():
    made = model(DOUBLE)
    made.graph.node[0].name = "twice"

    assert [layer.name for layer in netloop.onnx.load(made)] == ["twice"]


def test_model_is_read_from_a_file_and_from_bytes(tmp_path):
    onnx.save(model(DOUBLE), tmp_path / "double.onnx")

    for given in (tmp_path / "double.onnx", str(tmp_path / "double.onnx"), model(DOUBLE).SerializeToString()):
        assert netloop.onnx.load(given).num_layers == 1


def test_open_lengths_can_be_given():
    network = netloop.onnx.load(model(DOUBLE), input_shapes={"x": (3, 2)})

    assert network.outputs[0].shape == (3, 2)


def test_all_errors_are_reported_at_once():
    text = "g (float[2] x) => (float[2] y) { a = Missing (x) b = Add (x, z) c = Add (b, b) y = Concat (x, x) }"

    assert findings(model(text)) == [
        ("NL744", "netloop has no operator Missing-21"),
        ("NL745", "node 'Add_1' reads 'z', which is not defined before it"),
        ("NL401", "Concat-13 needs the attributes ['axis']"),
    ]


def test_bytes_that_are_no_model_are_refused():
    ((code, _),) = findings(b"\xff\xff not a model")

    assert code == "NL741"


def test_outputs_may_be_inputs_and_listed_twice():
    outputs = engine_of("g (float[2] x) => (float[2] x, float[2] y, float[2] z) { y = Neg (x) z = Identity (y) }")(
        {"x": np.float32([1, 2])}
    )

    assert {name: tensor.tolist() for name, tensor in outputs.items()} == {"x": [1, 2], "y": [-1, -2], "z": [-1, -2]}


def test_functions_of_the_model_and_of_the_standard_are_expanded():
    text = """
    g (float[2] x) => (float[2] y) { twice = my.domain.Twice <by = 3.0> (x) y = Softplus (twice) }
    <domain: "my.domain", opset_import: ["" : 21]>
    Twice <by> (a) => (b) { factor = Constant <value_float: float = @by> () b = Mul (a, factor) }
    """
    made = model(text)
    made.opset_import.add(domain="my.domain", version=1)

    found = netloop.compile(netloop.onnx.load(made))({"x": np.float32([1, 2])})["y"]

    np.testing.assert_allclose(found, np.log1p(np.exp([3, 6])), rtol=1e-6)


@pytest.mark.parametrize(
    ("node", "what"),
    [
        ('Gelu <approximate="fast"> (x)', "approximate is 'fast'"),
        ('MaxPool <auto_pad="SAME_LEFT", kernel_shape=[2, 2]> (x)', "auto_pad is 'SAME_LEFT'"),
    ],
)
def test_unknown_word_of_an_attribute_is_refused(node, what):
    (found,) = findings(model(f"g (float[1,1,4,4] x) => (float y) {{ y = {node} }}"))

    assert what in found[1]
