"""Findings about a loaded model name its file and node, those about a script its line."""

from linecache import getline

import numpy as np
import pytest

import netloop
import netloop.onnx
import netloop.openvino
from tests.support.networks import nested
from tests.support.onnx_models import model


@pytest.mark.parametrize("format", [netloop.onnx, netloop.openvino], ids=["onnx", "openvino"])
def test_layers_of_a_model_have_its_file_and_their_node(format, tmp_path):
    path = tmp_path / f"model.{'onnx' if format is netloop.onnx else 'xml'}"
    format.save(nested(), path)

    network = format.load(path)

    for layer in (*network.layers, *network.loops):
        location = layer.source_location
        assert (location.file, location.line) == (str(path), 0)
        assert location.node.startswith(("node '", "initializer '", "layer ", "output '"))
        assert str(location) == f"{path}, {location.node}"


def failure_of(function):
    with pytest.raises(netloop.NetloopError) as caught:
        function()
    return caught.value.findings[0]


GATHER = "g (float[3] x, int64 i) => (float y) { y = Gather (x, i) }"
LOOP = """g (float[3] x, int64 n, bool go) => (float[3] y) {
  y = Loop (n, go, x) <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t) { d = Identity (c) t = Neg (s) }>
}"""
SEQUENCE = (
    "g (float[3] x, int64 i) => (float[3] y) { s = SequenceEmpty () t = SequenceInsert (s, x) "
    "e = SequenceErase (t, i) u = SequenceInsert (e, x) y = SequenceAt (u, i) }"
)


def test_failure_of_a_run_names_the_node():
    network = netloop.onnx.load(model(GATHER))
    inputs = {"x": np.zeros(3, np.float32), "i": np.int64(7)}

    found = failure_of(lambda: netloop.evaluate(network, inputs))

    assert (found.code, found.where) == ("NL601", "g, node 'Gather_0' (Gather-13), IGatherLayer 'Gather_0'")


def test_failure_of_an_engine_names_the_node():
    engine = netloop.compile(netloop.onnx.load(model(LOOP)), max_trips=5)
    inputs = {"x": np.zeros(3, np.float32), "n": np.int64(7), "go": np.bool_(True)}

    found = failure_of(lambda: engine(inputs))

    assert (found.code, found.where) == ("NL609", "g, node 'Loop_0' (Loop-21), ILoop 'Loop_0'")


def test_what_a_pure_function_refuses_names_the_node():
    network = netloop.onnx.load(model(SEQUENCE))

    found = failure_of(lambda: netloop.to_jax(network)[0]({}, {"x": np.zeros(3, np.float32), "i": np.int64(0)}))

    assert found.code == "NL675"
    assert found.where.startswith("g, node 'Sequence")


def test_location_of_a_node_is_saved_in_plans():
    network = netloop.onnx.load(model(GATHER))

    again = netloop.plan.loads(netloop.plan.dumps(network))

    assert again[0].source_location == network[0].source_location
    assert again[0].source_location.node == "node 'Gather_0' (Gather-13)"


def test_finding_about_a_node_has_no_line_in_json():
    network = netloop.onnx.load(model(GATHER))

    found = network[0].finding("NL401", "wrong")

    assert found.as_json()["where"] == {"file": "g", "line": None, "layer": "Gather_0"}


def test_conditional_of_two_ranks_has_the_location_of_its_node():
    text = """g (float[n, 3] x, bool c) => (float[k] y) {
      flat = Constant <value_ints = [-1]> ()
      rows = If (c) <
        then_branch = a () => (t) { zero = Constant <value_ints = [0]> () t = ReduceSum <keepdims = 0> (x, zero) },
        else_branch = b () => (e) { e = Neg (x) } >
      y = Reshape (rows, flat)
    }"""

    network = netloop.onnx.load(model(text))

    (conditional,) = network.conditionals
    assert conditional.source_location.node == "node 'If_1' (If-21)"
    assert {layer.source_location.file for layer in network} == {"g"}


def test_layers_that_a_script_adds_to_a_model_have_its_line():
    network = netloop.onnx.load(model(GATHER))

    assert network.add_identity(network[0].get_output(0)).source_location.file == __file__


def add(network, x):
    return network.add_identity(x).get_output(0)


def add_twice(network, x):
    return add(network, add(network, x))


def test_location_has_the_lines_that_called_the_helper():
    network = netloop.Builder(netloop.Logger()).create_network()

    add_twice(network, network.add_input("x", netloop.float32, (3,)))

    location = network[0].source_location
    lines = [getline(caller.file, caller.line).strip() for caller in (location, *location.callers)]
    assert lines == [
        "return network.add_identity(x).get_output(0)",
        "return add(network, add(network, x))",
        'add_twice(network, network.add_input("x", netloop.float32, (3,)))',
    ]


def test_location_has_at_most_three_callers():
    network = netloop.Builder(netloop.Logger()).create_network()
    x = network.add_input("x", netloop.float32, (3,))

    def a():
        b()

    def b():
        c()

    def c():
        add_twice(network, x)

    a()

    callers = network[0].source_location.callers
    assert [getline(caller.file, caller.line).strip() for caller in callers[1:]] == ["add_twice(network, x)", "c()"]


def test_callers_are_in_the_text_of_a_finding():
    network = netloop.Builder(netloop.Logger()).create_network()
    made = add(network, network.add_input("x", netloop.float32, (3,)))

    lines = str(made.producer.finding("NL401", "wrong")).splitlines()

    first, caller = made.producer.source_location, made.producer.source_location.callers[0]
    assert lines[1].startswith(f"  at {first.file}:{first.line}, IIdentityLayer")
    assert lines[2] == f"  called from {caller.file}:{caller.line}"


def test_network_without_output_has_the_line_that_made_it():
    network = netloop.Builder(netloop.Logger()).create_network()

    (found,) = netloop.check(network)

    assert getline(__file__, found.as_json()["where"]["line"]).strip() == (
        "network = netloop.Builder(netloop.Logger()).create_network()"
    )
