"""Operators that netloop does not have: all are reported at once, and the caller may bring them along."""

import numpy as np
import onnx
import pytest

import netloop
import netloop as trt
from netloop import ModelError
from netloop.formats.onnx.importer.unknown_operators import FIXES
from tests.support.onnx_models import model


def refusal(made, **options):
    with pytest.raises(ModelError) as caught:
        netloop.onnx.load(made, **options)
    return caught.value.findings


def with_domain(text, *domains):
    made = model(text)
    for domain in domains:
        made.opset_import.add(domain=domain, version=1)
    return made


CHAIN = """g (bool c, float[2] x) => (float[2] y) {
  a = mine.First (x)
  b = com.microsoft.nchwc.Conv (a)
  d = If (c) <
    then_branch = t () => (e) { e = mine.Second (b) },
    else_branch = f () => (h) { h = mine.First (b) } >
  y = own.Function (d)
} <domain: "own", opset_import: ["" : 21, "mine" : 1]> Function (p) => (q) { r = mine.First (p) q = mine.Second (r) }"""


def test_all_unknown_operators_are_reported_at_once_with_the_number_of_their_nodes():
    found = refusal(with_domain(CHAIN, "mine", "own", "com.microsoft.nchwc"))

    assert [(finding.code, finding.what) for finding in found] == [
        ("NL744", "netloop has no operator mine::First-1, which 3 nodes have"),
        ("NL744", "netloop has no operator com.microsoft.nchwc::Conv-1"),
        ("NL744", "netloop has no operator mine::Second-1, which 2 nodes have"),
    ]
    assert found[0].where == "g, node 'First_0' (mine::First-1)"
    assert found[0].fix.startswith("pass operators={'mine::First': function}")
    assert "save at ORT_ENABLE_EXTENDED" in found[1].fix


@pytest.mark.parametrize(
    ("node", "fix"),
    [
        ("Softpluss (x)", "did you mean 'Softplus'?"),
        ("com.microsoft.DecoderAttention (x)", "if onnxruntime's tools made it, load the model before them"),
        ("Zzz (x)", "export the model without it; or pass operators={'Zzz': function}"),
    ],
)
def test_unknown_operator_has_a_way_out(node, fix):
    (found,) = refusal(with_domain(f"g (float[2] x) => (float[2] y) {{ y = {node} }}", "ai.onnx.preview.training"))

    assert found.fix.startswith(fix)


def test_operator_of_a_later_version_asks_for_a_later_package():
    made = model("g (float[2] x) => (float[2] y) { y = FromTheFuture (x) }")
    made.opset_import[0].version = 99

    assert refusal(made)[0].fix.startswith("upgrade the package onnx")


def test_unknown_operator_in_a_branch_that_is_never_taken_is_no_error():
    text = """g (float[2] x) => (float[2] y) {
      c = Constant <value = bool {0}> ()
      y = If (c) <
        then_branch = a () => (t) { t = mine.First (x) },
        else_branch = b () => (e) { e = Neg (x) } >
    }"""

    assert netloop.onnx.load(with_domain(text, "mine")).num_layers == 1


# ---------------------------------------------------------------------------- operators of the caller


SCALE = """g (float[2] x) => (float[2] y) {
  a = mine.Scale <by = 3.0> (x)
  y = Neg (a)
}"""


def scale(network, inputs, attributes):
    factor = network.add_constant((1,), np.float32([attributes["by"]])).get_output(0)
    return network.add_elementwise(inputs[0], factor, trt.ElementWiseOperation.PROD).get_output(0)


def test_function_of_the_caller_adds_the_layers_of_an_operator():
    network = netloop.onnx.load(with_domain(SCALE, "mine"), operators={"mine::Scale": scale})

    assert netloop.compile(network)({"x": np.float32([1, 2])})["y"].tolist() == [-3, -6]
    assert network[1].name == "Scale_0"


def test_function_of_the_caller_can_add_a_plugin():
    def add(network, inputs, attributes):
        plugin = netloop.JaxPlugin(lambda x: attributes["by"] * x)
        return network.add_plugin_v3(inputs[:1], [], plugin).get_output(0)

    network = netloop.onnx.load(with_domain(SCALE, "mine"), operators={"mine::Scale": add})

    assert netloop.compile(network)({"x": np.float32([1, 2])})["y"].tolist() == [-3, -6]


@pytest.mark.parametrize("name", ["Neg", "ai.onnx::Neg"])
def test_function_of_the_caller_replaces_one_of_netloop(name):
    def absolute(network, inputs, attributes):
        return network.add_unary(inputs[0], trt.UnaryOperation.ABS).get_output(0)

    network = netloop.onnx.load(model("g (float[2] x) => (float[2] y) { y = Neg (x) }"), operators={name: absolute})

    assert netloop.evaluate(network, {"x": np.float32([1, -2])})["y"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("function", "code", "what"),
    [
        (lambda network, inputs, attributes: 1 / 0, "NL411", "the function for 'Scale' raised ZeroDivisionError"),
        (lambda network, inputs, attributes: [3], "NL401", "the function for 'Scale' returned int"),
        (lambda network, inputs, attributes: [], "NL401", "the node has 1 outputs, and mine::Scale-1 has 0"),
        (
            lambda network, inputs, attributes: network.add_unary(inputs[0], trt.UnaryOperation.NOT).get_output(0),
            "NL401",
            "NOT",
        ),
    ],
)
def test_fault_of_a_function_of_the_caller_is_a_finding(function, code, what):
    (found,) = refusal(with_domain(SCALE, "mine"), operators={"mine::Scale": function})

    assert found.code == code
    assert found.what.startswith(what)
    assert found.where == "g, node 'Scale_0' (mine::Scale-1)"
    assert (code == "NL411") == isinstance(found.cause, ZeroDivisionError)


@pytest.mark.parametrize("operators", [[scale], {"mine::Scale": 3}, {3: scale}])
def test_operators_of_another_type_are_refused(operators):
    with pytest.raises(TypeError, match="operators are a dict from names to functions"):
        netloop.onnx.load(with_domain(SCALE, "mine"), operators=operators)


# ---------------------------------------------------------------------------- what the owner of a model can do


def test_error_of_a_layer_says_what_the_owner_of_the_model_can_do():
    (found,) = refusal(model("g (float[2] x, int64[2] n) => (float[2] y) { y = Add (x, n) }"))

    assert found.what.startswith("SUM takes two inputs of the same element type")
    assert "add_cast" not in str(found)
    assert "export the model again" in found.fix


def test_error_in_a_node_is_about_operators_not_layers():
    (found,) = refusal(model("g (float[2] x) => (float[2] y) { y = Transpose <perm = 3> (x) }"))

    assert found.why == "an operator is defined only for inputs and attributes of certain types and shapes"
    assert found.fix


def test_attribute_of_a_later_version_says_so():
    made = model("g (float[2] x) => (int32[2] y) { y = Cast <to = 6, saturate = 1> (x) }")
    made.opset_import[0].version = 13

    (found,) = refusal(made)

    assert found.what == "Cast-13 has no attribute 'saturate'"
    assert found.fix.startswith("a later version of Cast has it")


def test_layouts_of_one_machine_are_what_onnxruntime_saves_at_the_highest_level(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    text = "g (float[1, 32, 8, 8] x, float[32, 32, 3, 3] w) => (float[1, 32, 6, 6] y) { y = Conv (x, w) }"
    made = model(text)
    del made.graph.input[1]
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((32, 32, 3, 3), np.float32), "w"))
    domains = {}
    for level in ("ALL", "EXTENDED"):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        options.optimized_model_filepath = str(tmp_path / f"{level}.onnx")
        onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
        saved = onnx.load(tmp_path / f"{level}.onnx")
        domains[level] = {attribute.domain for attribute in saved.graph.node}

    assert domains["EXTENDED"] == {""}
    assert domains["ALL"] <= {"", *FIXES}
