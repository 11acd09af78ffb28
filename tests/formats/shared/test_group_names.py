"""Names of imported loops and conditionals, and of the layers at their boundary."""

import jax
import numpy as np
import onnx
import pytest

import netloop
from tests.support.onnx_models import model

NESTED = """
    nested (int64 n, bool go, float x) => (float y, float[K] rows) {
        y, rows = Loop (n, go, x) <body = outer (int64 i, bool c, float s) => (bool c2, float s3, float row) {
            c2 = Identity (c)
            s2 = Loop (n, c, s) <body = inner (int64 j, bool d, float u) => (bool d2, float u2) {
                d2 = Identity (d)
                big = Less (u, x)
                u2 = If (big) <
                    then_branch = twice () => (float p) { p = Add (u, u) },
                    else_branch = negate () => (float q) { q = Neg (u) }
                >
            }>
            s3 = Loop (n, c, s2) <body = last (int64 j, bool d, float u) => (bool d2, float u2)
                { d2 = Identity (d)  u2 = Mul (u, x) }>
            row = Identity (s3)
        }>
    }
"""


def test_names_are_paths_of_nodes():
    network = netloop.onnx.load(model(NESTED))

    assert [loop.name for loop in network.loops] == ["Loop_0", "Loop_0/Loop_1", "Loop_0/Loop_2"]
    assert [conditional.name for conditional in network.conditionals] == ["Loop_0/Loop_1/If_2"]


def test_boundary_layers_have_the_names_of_values_in_the_body():
    network = netloop.onnx.load(model(NESTED))

    assert [[layer.name for layer in loop.layers] for loop in network.loops] == [
        ["Loop_0/s", "Loop_0/COUNT", "Loop_0/s3", "Loop_0/row"],
        ["Loop_0/Loop_1/u", "Loop_0/Loop_1/COUNT", "Loop_0/Loop_1/u2"],
        ["Loop_0/Loop_2/u", "Loop_0/Loop_2/COUNT", "Loop_0/Loop_2/u2"],
    ]


def test_bound_is_for_one_of_several_loops():
    network = netloop.onnx.load(model(NESTED))

    netloop.to_jax(network, bound={"Loop_0/Loop_2": 3})
    with pytest.raises(ValueError, match="no loop 'Loop_2' to bound"):
        netloop.to_jax(network, bound={"Loop_2": 3})


def test_scan_has_the_names_of_its_body():
    text = """
        g (float s, float[5] x) => (float t, float[5] sums) {
            t, sums = Scan <num_scan_inputs = 1, body = add (float before, float row) => (float after, float sum)
                { after = Add (before, row)  sum = Identity (after) }> (s, x)
        }
    """
    (loop,) = netloop.onnx.load(model(text)).loops

    names = [layer.name for layer in loop.layers]
    assert names == [f"Scan_0/{name}" for name in ("COUNT", "row", "before", "sum", "after")]


def test_second_loop_of_a_node_has_a_number():
    text = """
        g (float x) => (float[K] rows) {
            go = Constant <value = bool {1}> ()
            last, rows = Loop ("", go, x) <body = b (int64 i, bool c, float s) => (bool c2, float s2, float row) {
                s2 = Add (s, s)  row = Identity (s)  most = Constant <value = float {100}> ()  c2 = Less (s2, most)
            }>
        }
    """
    network = netloop.onnx.load(model(text))

    assert [loop.name for loop in network.loops] == ["Loop_1", "Loop_1#2"]
    assert [layer.name for layer in network.loops[1].layers] == ["Loop_1#2/s", "Loop_1#2/COUNT", "Loop_1#2/row"]


def test_traced_loops_are_named_after_their_primitives():
    def function(x):
        def body(_, s):
            return jax.lax.fori_loop(0, 3, lambda j, u: u + j, s)

        x = jax.lax.fori_loop(0, 4, body, x)
        return jax.lax.while_loop(lambda s: s < 100, lambda s: s * 2 + 1, x)

    network = netloop.from_jax(function, np.float32(1))

    assert [loop.name for loop in network.loops] == ["scan", "scan/scan", "while"]


WITH_FUNCTION = """
    <ir_version: 10, opset_import: ["" : 21, "my" : 1]>
    g (float[2] x, float[3] z) => (float[2] y, float[3] w) { [first] y = my.f (x)  [second] w = my.f (z) }
    <domain: "my", opset_import: ["" : 21]>
    f (a) => (b) { k = Constant <value = float[2] {1, 2}> ()  b = Add (a, k) }
"""


def findings(text):
    with pytest.raises(netloop.ModelError) as caught:
        netloop.onnx.load(onnx.parser.parse_model(text))
    return [(finding.code, finding.where) for finding in caught.value.findings]


def test_findings_in_a_function_name_its_call():
    assert findings(WITH_FUNCTION) == [("NL401", "g, node 'second/Add_1' (Add-14)")]


def test_equal_findings_of_a_function_are_reported_once():
    assert findings(WITH_FUNCTION.replace("float[2] x", "float[3] x")) == [("NL401", "g, node 'first/Add_1' (Add-14)")]
