"""Models that break the standard: what has one meaning is loaded with a warning, and gives onnxruntime's numbers."""

import warnings

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import netloop
from netloop import ModelError, ModelWarning
from tests.support.onnx_models import model, session_gives

X = {"x": np.float32([1, -2])}
NEG = "g (float[2] x) => (float[2] y) { y = Neg (x) }"
TWO_STEPS = "g (float[2] x) => (float[2] y) { a = Neg (x) y = Exp (a) }"
ADD = "g (float[2] x) => (float[2] y) { y = Add (x, w) }"
CHOICE = """g (bool c, float[2] x) => (float[2] y) {
  s = Neg (x)
  y = If (c) <
    then_branch = a () => (float[2] t) { u = Add (s, x) t = Exp (u) },
    else_branch = b () => (float[2] e) { e = Identity (x) } >
}"""


def changed(text, *changes):
    made = model(text)
    for change in changes:
        change(made)
    return made


def imports(*pairs):
    def change(made):
        del made.opset_import[:]
        made.opset_import.extend(helper.make_opsetid(*pair) for pair in pairs)

    return change


def initializer(name="w", numbers=(10, 20)):
    return lambda made: made.graph.initializer.append(numpy_helper.from_array(np.float32(numbers), name))


def declares(name, kind, dims):
    return lambda made: made.graph.value_info.append(helper.make_tensor_value_info(name, kind, dims))


def backwards(made):
    nodes = [*made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend(reversed(nodes))


def branch_defines(name):
    def change(made):
        branch = made.graph.node[1].attribute[0].g
        branch.initializer.append(numpy_helper.from_array(np.float32([3, 4]), name))

    return change


def input_length(length):
    def change(made):
        made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = length

    return change


def loaded(made):
    """The network of a model, and what the warnings say."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        network = netloop.onnx.load(made)
    assert {message.category for message in found} <= {ModelWarning}
    return network, [message.message.finding for message in found]


def refusal(made):
    with pytest.raises(ModelError) as caught:
        netloop.onnx.load(made)
    return [(finding.code, finding.what) for finding in caught.value.findings]


FORGIVEN = {
    "imported twice": (changed(NEG, imports(("", 21), ("", 21))), "operators of 'ai.onnx' more than once"),
    "imported by both names": (changed(NEG, imports(("", 21), ("ai.onnx", 21))), "operators of 'ai.onnx' more than"),
    "skl2onnx": (changed(NEG, imports(("", 21), ("ai.onnx.ml", 1), ("ai.onnx.ml", 1))), "'ai.onnx.ml' more than once"),
    "nodes backwards": (changed(TWO_STEPS, backwards), "the nodes 'Exp_0' before nodes whose outputs they read"),
    "branch before its value": (changed(CHOICE, backwards), "the nodes 'If_0' before nodes"),
    "IR version 0": (changed(NEG, lambda made: setattr(made, "ir_version", 0)), "lacks 'ir_version'"),
    "initializer twice": (changed(ADD, initializer(), initializer()), "initializers 'w' more than once"),
    "branch hides a name": (changed(CHOICE, branch_defines("s")), "define 's' although the graph around them does"),
    "output of other length": (model(NEG.replace("float[2] y", "float[5] y")), "other types or shapes for 'y'"),
    "output of other rank": (model(NEG.replace("float[2] y", "float[2, 1] y")), "other types or shapes for 'y'"),
    "value of other length": (changed(TWO_STEPS, declares("a", 1, [7])), "other types or shapes for 'a'"),
    "value declared twice": (
        changed(TWO_STEPS, declares("a", 1, [2]), declares("a", 1, [3])),
        "other types or shapes for 'a'",
    ),
    "length below -1": (changed(NEG, input_length(-5)), "inputs 'x' have lengths below -1"),
    "domain not imported": (
        model("g (float[2] x) => (float[2] y) { y = com.microsoft.QuickGelu (x) }"),
        "operators of 'com.microsoft' without importing",
    ),
}


@pytest.mark.parametrize("case", FORGIVEN)
def test_model_with_one_meaning_is_loaded_with_a_warning_and_computes_like_onnxruntime(case):
    made, what = FORGIVEN[case]
    inputs = {"c": np.array(True), **X} if len(made.graph.input) == 2 else X

    network, (finding,) = loaded(made)
    found = netloop.evaluate(network, inputs)["y"]

    assert finding.code == "NL749"
    assert what in finding.what
    np.testing.assert_allclose(found, session_gives(made, inputs)["y"], rtol=1e-6)


@pytest.mark.parametrize(
    "made",
    [
        changed(NEG, imports(("", 21), ("never.heard.of", 7))),
        changed(ADD, initializer(), initializer("unused")),
        changed(ADD, initializer(), lambda made: made.graph.initializer.add(name="unused", data_type=1, dims=[3])),
        changed(ADD, initializer(), lambda made: made.graph.initializer.add(name="text", data_type=8, dims=[3])),
        changed("g (float[2] x, float[2] w) => (float[2] y) { y = Add (x, w) }", initializer()),
        changed(TWO_STEPS, declares("never_made", 7, [1])),
        changed(NEG, lambda made: made.graph.output[0].ClearField("type")),
        changed(NEG, lambda made: setattr(made.graph.node[0], "domain", "ai.onnx")),
        changed("g (float[2] x) => (float[2] w, float[2] y) { y = Neg (x) }", initializer()),
        model("g (float[2] x) => (float[2] x, float[2] y) { y = Neg (x) }"),
        model("g (float[2] x) => (float[2] y) { low = Constant <value = float {-1}> () y = Clip (x, low, ) }"),
    ],
)
def test_model_that_keeps_the_standard_is_loaded_silently(made):
    network, findings = loaded(made)

    assert not findings
    for name, expected in session_gives(made, X).items():
        np.testing.assert_allclose(netloop.evaluate(network, X)[name], expected, rtol=1e-6)


def test_float16_numbers_in_int32_data_are_their_bits():
    made = model("g (float16[2] x) => (float16[2] y) { y = Add (x, w) }")
    bits = np.float16([10, -20]).view(np.uint16).tolist()
    made.graph.initializer.add(name="w", data_type=10, dims=[2], int32_data=bits)
    inputs = {"x": np.float16([1, 2])}

    network, findings = loaded(made)

    assert not findings
    np.testing.assert_array_equal(netloop.evaluate(network, inputs)["y"], session_gives(made, inputs)["y"])


@pytest.mark.parametrize(
    ("made", "code", "what"),
    [
        (changed(NEG, imports(("", 13), ("ai.onnx", 21))), "NL745", "'ai.onnx' in the versions 13 and 21"),
        (changed(NEG, imports(("ai.onnx.ml", 3))), "NL745", "does not import the operators of 'ai.onnx'"),
        (changed(NEG, imports()), "NL745", "does not import the operators of 'ai.onnx'"),
        (changed(NEG, imports(("", 0))), "NL742", "imports version 0"),
        (changed(ADD, initializer(), initializer(numbers=(1, 2))), "NL745", "2 initializers of this name, with diff"),
        (model("g (float[2] x) => (float[2] y) { a = Add (x, y) y = Exp (a) }"), "NL745", "circle: 'Add_0' -> 'Exp_1'"),
        (
            model(CHOICE.replace("u = Add (s, x) t = Exp (u)", "u = Add (s, x) s = Exp (u) t = Neg (s)")),
            "NL745",
            "node 'Add_0' reads 's', and a later node defines it again",
        ),
    ],
)  # fmt: skip
def test_model_with_two_meanings_is_refused(made, code, what):
    ((found, says),) = refusal(made)

    assert found == code
    assert what in says


def test_each_kind_of_fault_is_named_once():
    lines = " ".join(f"v{number} = Neg (v{number - 1})" for number in range(1, 30))
    made = changed(f"g (float[2] v0) => (float[2] v29) {{ {lines} }}", backwards, imports(("", 21), ("", 21)))

    _, findings = loaded(made)

    assert len(findings) == 2
    assert "and 20 more" in findings[1].what


def test_warning_names_the_file_and_points_at_the_line_that_loads_it(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(changed(TWO_STEPS, backwards), path)

    with pytest.warns(ModelWarning, match=r"at .*model\.onnx") as found:
        netloop.onnx.load(path)

    assert found[0].filename == __file__


def test_nodes_in_functions_and_branches_are_sorted_too():
    text = """g (bool c, float[2] x) => (float[2] y) {
      y = If (c) <
        then_branch = a () => (float[2] t) { t = own.F (u) u = Neg (x) },
        else_branch = b () => (float[2] e) { e = Identity (x) } >
    } <domain: "own", opset_import: ["" : 21]> F (p) => (q) { q = Exp (r) r = Neg (p) }"""
    made = changed(text, imports(("", 21), ("own", 1)))

    network, (finding,) = loaded(made)

    assert "'F_0', 'Exp_0'" in finding.what
    found = netloop.evaluate(network, {"c": True, **X})["y"]
    np.testing.assert_allclose(found, np.exp(X["x"]), rtol=1e-6)


def test_name_that_only_a_branch_defines_does_not_order_the_nodes_around_it():
    text = """g (bool c, float[2] x) => (float[2] z) {
      y = If (c) <
        then_branch = a () => (float[2] t) { s = Neg (x) t = Exp (s) },
        else_branch = b () => (float[2] e) { e = Identity (x) } >
      s = Exp (y) z = Neg (s)
    }"""
    inputs = {"c": np.array(True), **X}

    network, findings = loaded(model(text))

    assert not findings
    found = netloop.evaluate(network, inputs)["z"]
    np.testing.assert_allclose(found, session_gives(model(text), inputs)["z"], rtol=1e-6)


def test_operators_newer_than_the_package_onnx_are_read_as_its_newest():
    network, (finding,) = loaded(changed(NEG, imports(("", 99))))

    assert "'ai.onnx 99', which are newer than the package onnx" in finding.what
    assert netloop.evaluate(network, X)["y"].tolist() == [-1, 2]


def test_operator_of_one_version_that_is_not_the_first_needs_no_import():
    made = model("""g (float[1, 1] x) => (float[1, 1] y) {
      y = ai.onnx.ml.TreeEnsemble <n_targets = 1, aggregate_function = 1, post_transform = 0, tree_roots = [0],
        nodes_modes = uint8[1] {0}, nodes_featureids = [0], nodes_splits = float[1] {0.5},
        nodes_truenodeids = [0], nodes_falsenodeids = [1], nodes_trueleafs = [1], nodes_falseleafs = [1],
        leaf_targetids = [0, 0], leaf_weights = float[2] {3, 4}> (x)
    }""")
    inputs = {"x": np.float32([[0.25]])}

    network, (finding,) = loaded(made)

    assert "without importing their version" in finding.what
    np.testing.assert_array_equal(netloop.evaluate(network, inputs)["y"], session_gives(made, inputs)["y"])


def test_parser_logs_what_it_forgives(network):
    class Log(netloop.ILogger):
        lines = []

        def log(self, severity, msg):
            self.lines.append((severity, msg))

    parser = netloop.OnnxParser(network, Log())

    assert parser.parse(changed(TWO_STEPS, backwards).SerializeToString())
    ((severity, message),) = Log.lines
    assert severity == netloop.ILogger.WARNING
    assert message.startswith("NL749 (warning): ")
