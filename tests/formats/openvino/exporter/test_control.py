"""Loops and conditionals of saved models in OpenVINO, in several calls, against onnxruntime."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import onnx
import pytest
from onnx import helper

import netloop
from tests.support.onnx_models import model, session_gives
from tests.support.openvino_runtime import export, run_calls

TRIPS = (0, 1, 2, 5, 5, 2, 0, 1)
BATCHES = (3, 3, 7, 7, 2, 9, 9, 1)
TRUE = "t = Constant<value = bool {1}>()"
TYPES = {"float": 1, "uint8": 2, "int32": 6, "int64": 7}
"""The numbers of element types in ONNX."""

LISTED = np.array([1, -2, 3])
SAMPLES = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)


def check_calls(text, calls):
    """Check that each call of a saved model gives what onnxruntime gives for the model."""
    source = model(text)
    saved = export(netloop.onnx.load(source))
    for inputs, outputs in zip(calls, run_calls(saved, calls), strict=True):
        for name, meant in session_gives(source, inputs).items():
            assert (outputs[name].dtype, outputs[name].shape) == (meant.dtype, meant.shape)
            np.testing.assert_allclose(outputs[name], meant, rtol=1e-5, err_msg=f"{name} of {inputs}")


def of_trips(**others):
    return [{"n": np.array(trips), **others} for trips in TRIPS]


# ---------------------------------------------------------------------------- constants that bodies read


@pytest.mark.parametrize("type", ["int64", "int32", "uint8", "float"])
def test_states_that_start_at_one_constant_run_as_often_as_the_count_says(type):
    # the count is compared with the constant, which is int64 too, and both states start at it
    body = f"""b (int64 i, bool c, {type} s, {type} u) => (bool c, {type} s2, {type} u2, {type} r)
        {{ k = Cast<to = {TYPES[type]}>(i) s2 = Add(s, k) u2 = Add(u, s2) r = Add(s, u2) }}"""
    check_calls(
        f"""g (int64 n) => ({type} y, {type} v, {type}[K] rows)
        {{ {TRUE} z = Constant<value = {type} {{0}}>() y, v, rows = Loop(n, t, z, z) <body = {body}> }}""",
        of_trips(),
    )


def test_states_that_start_at_the_condition_run_as_often_as_the_count_says():
    body = """b (int64 i, bool c, bool s, bool u) => (bool u, bool s2, bool u2, bool r)
        { s2 = Not(s) u2 = Xor(u, s2) r = And(s2, u) }"""
    check_calls(
        f"g (int64 n) => (bool y, bool v, bool[K] rows) {{ {TRUE} y, v, rows = Loop(n, t, t, t) <body = {body}> }}",
        of_trips(),
    )


def test_constant_that_bodies_and_the_net_around_them_read():
    check_calls(
        f"""g (int64 n, int64[3] x) => (int64[3] y, int64[3] w)
        {{ {TRUE} k = Constant<value_ints=[1, 2, 3]>() z = Constant<value = int64 {{0}}>() q = Greater(n, z)
          y = Loop(n, t, x) <body = b (int64 i, bool c, int64[3] s) => (bool c, int64[3] s2)
             {{ s1 = Mul(s, k) s2 = Add(s1, z) }}>
          w = If(q) <then_branch = a () => (int64[3] p) {{ p = Add(k, x) }},
                     else_branch = e () => (int64[3] p) {{ p0 = Mul(k, x) p = Add(p0, z) }}> }}""",
        of_trips(x=LISTED),
    )


@pytest.mark.parametrize("condition", ["Identity(d)", "Less(u2, lim)"])
def test_loop_in_a_loop_that_starts_at_the_same_constant(condition):
    check_calls(
        f"""g (int64 n) => (int64 y, int64[K] rows)
        {{ {TRUE} z = Constant<value = int64 {{0}}>() lim = Constant<value = int64 {{7}}>()
          y, rows = Loop(n, t, z) <body = b (int64 i, bool c, int64 s) => (bool c, int64 s2, int64 q)
            {{ q = Loop(i, t, z) <body = b2 (int64 j, bool d, int64 u) => (bool d2, int64 u2)
                {{ u1 = Add(u, j) u2 = Add(u1, i) d2 = {condition} }}>
              s2 = Add(s, q) }}> }}""",
        of_trips(),
    )


def test_loops_in_branches_that_start_at_constants_of_the_condition():
    check_calls(
        f"""g (int64 n) => (int64 y)
        {{ {TRUE} z = Constant<value = int64 {{0}}>() two = Constant<value = int64 {{2}}>() q = Greater(n, two)
          y = If(q) <
            then_branch = a () => (int64 p) {{ p = Loop(n, t, z) <
              body = b (int64 i, bool c, int64 s) => (bool c, int64 s2) {{ s2 = Add(s, i) }}> }},
            else_branch = e () => (int64 p) {{ p = Loop(n, t, two) <
              body = b (int64 i, bool c, int64 s) => (bool c, int64 s2)
                {{ s1 = Add(s, i) s2 = Mul(s1, two) }}> }}> }}""",
        of_trips(),
    )


@pytest.mark.parametrize(("type", "add"), [("bool", "Xor"), ("int64", "Add")])
def test_computed_constant_that_is_a_state_and_is_read_by_the_body(type, add):
    # too large to be folded by netloop, so that OpenVINO folds it
    check_calls(
        f"""g (int64 n) => ({type}[5000] y)
        {{ {TRUE} l = Constant<value_ints=[5000]>() k = ConstantOfShape<value = {type}[1] {{1}}>(l)
          y = Loop(n, t, k) <body = b (int64 i, bool c, {type}[5000] s) => (bool c, {type}[5000] s2)
            {{ s2 = {add}(s, k) }}> }}""",
        of_trips(),
    )


def test_loop_until_a_comparison_of_converted_integers():
    check_calls(
        """g (float[B,4] x) => (float[4] y, float[K,4] rows)
        { l = Shape<start=0, end=1>(x) n = Squeeze(l) least = Cast<to=6>(n) z = Constant<value = int32 {0}>()
          zf = Cast<to=1>(z) nf = Cast<to=1>(least) c0 = Less(zf, nf) c1 = And(c0, c0)
          axis = Constant<value_ints=[0]>() h = ReduceSum<keepdims=0>(x, axis)
          k, y, rows = Loop(n, c1, z, h) <
            body = b (int64 i, bool c, int32 s, float[4] u) => (bool c5, int32 s2, float[4] u2, float[4] row)
            { one = Constant<value = int32 {1}>() s2 = Add(s, one) xt = Gather(x, s) u2 = Add(u, xt)
              row = Identity(u2) a = Cast<to=1>(s2) c3 = Less(a, nf) c4 = Less(s2, least) c5 = And(c3, c4) }> }""",
        [{"x": SAMPLES[:batch]} for batch in BATCHES],
    )


def test_constants_that_bodies_read_are_no_inputs_of_theirs():
    network = netloop.onnx.load(
        model(f"""g (int64 n, int64[3] x) => (int64[3] y)
        {{ {TRUE} k = Constant<value_ints=[1, 2, 3]>() y = Loop(n, t, k) <body = b (int64 i, bool c, int64[3] s)
          => (bool c, int64[3] s2) {{ s1 = Mul(s, x) s2 = Add(s1, k) }}> }}""")
    )
    document = ElementTree.fromstring(export(network)[0])
    (around,) = (element for element in document.iter("layer") if element.get("type") == "If")

    assert len(around.findall("input/port")) == 3  # the condition, the count and x


# ---------------------------------------------------------------------------- lengths that grow

LATER = """jm = Add(j, one) twelve = Constant<value = int32 {12}>() jj = Mod(jm, twelve)
    e0 = Gather(rows, jj) e1 = Tanh(e0)
    three = Constant<value_ints=[1, 3]>() e2 = Tile(e1, three) e3 = Exp(e2) a1 = Constant<value_ints=[1]>()
    e = ReduceMax<keepdims=1>(e3, a1)"""
"""Layers behind a tensor j, the last of which need more memory than j."""

SOURCES = {
    "conditional": """q = Less(i, o) j = If(q) <then_branch = a () => (int32[B] p) { p = Add(start, one) },
        else_branch = e () => (int32[B] p) { p = Identity(start) }>""",
    "loop in a conditional": """j = Loop(i, t, start) <
        body = b2 (int64 i2, bool c2, int32[B] p) => (bool c2, int32[B] p2) { p2 = Add(p, one) }>""",
}
PLACES = {
    "the net": "g (float[B,4] x, int64 i) => (float[B,1] e) { SETUP BODY }",
    "a loop": """g (float[B,4] x) => (float[B,1] y) { SETUP
        h = ReduceMax<keepdims=1>(x, o1) n = Constant<value = int64 {3}>() y = Loop(n, t, h) <
        body = b (int64 i, bool c, float[B,1] s) => (bool c, float[B,1] s2) { BODY s2 = Add(s, e) }> }""",
    "a branch": """g (float[B,4] x, int64 i) => (float[B,1] y) { SETUP g = Greater(i, z)
        y = If(g) <then_branch = th () => (float[B,1] e) { BODY },
                   else_branch = el () => (float[B,1] p) { p = ReduceMax<keepdims=1>(x, o1) }> }""",
}
SETUP = f"""{TRUE} z = Constant<value = int64 {{0}}>() o = Constant<value = int64 {{1}}>()
    one = Constant<value = int32 {{1}}>() o1 = Constant<value_ints=[1]>()
    b = Shape<start=0, end=1>(x) start = ConstantOfShape<value = int32[1] {{4}}>(b)
    rows = Constant<value = float[12,2] {{{", ".join(str(index / 10) for index in range(24))}}}>()"""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("source", SOURCES)
def test_output_of_a_conditional_is_not_lost_when_a_call_is_longer_than_the_ones_before(source, place):
    text = PLACES[place].replace("BODY", SOURCES[source] + LATER).replace("SETUP", SETUP)

    check_calls(
        text, [{"x": SAMPLES[:batch], **({} if place == "a loop" else {"i": np.array(1)})} for batch in BATCHES]
    )


def test_output_of_a_conditional_without_axes_is_not_broadcast():
    text = """g (int64 n) => (int64 y) { z = Constant<value = int64 {0}>() q = Greater(n, z)
        y = If(q) <then_branch = a () => (int64 p) { p = Add(n, n) },
                   else_branch = e () => (int64 p) { p = Neg(n) }> }"""

    assert b"Broadcast" not in export(netloop.onnx.load(model(text)))[0]
    check_calls(text, of_trips())


def test_forest_with_an_open_batch_adds_all_trees_in_the_first_call():
    trees, nodes = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    forest = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
        nodes_treeids=trees, nodes_nodeids=nodes, nodes_featureids=np.repeat([0, 1, 2], 3),
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 3, nodes_values=[0.1, 0, 0, -0.2, 0, 0, 0.3, 0, 0],
        nodes_truenodeids=np.tile([1, 0, 0], 3), nodes_falsenodeids=np.tile([2, 0, 0], 3),
        class_treeids=trees[nodes > 0], class_nodeids=nodes[nodes > 0], class_ids=[0, 1, 1, 2, 2, 0],
        class_weights=[1 / 3] * 6, classlabels_int64s=[0, 1, 2], post_transform="NONE",
    )  # fmt: skip
    values = [helper.make_tensor_value_info("x", 1, ["batch", 4])]
    results = [onnx.ValueInfoProto(name=name) for name in ("label", "scores")]
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    source = helper.make_model(helper.make_graph([forest], "g", values, results), opset_imports=domains, ir_version=10)
    calls = [{"x": SAMPLES[:batch]} for batch in BATCHES]

    for inputs, outputs in zip(calls, run_calls(export(netloop.onnx.load(source)), calls), strict=True):
        meant = session_gives(source, inputs)
        np.testing.assert_allclose(outputs["scores"], meant["scores"], rtol=1e-5)
        np.testing.assert_array_equal(outputs["label"], meant["label"])
