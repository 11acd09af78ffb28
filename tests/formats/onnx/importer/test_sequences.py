"""Sequences and optional values against onnxruntime."""

import numpy as np
import pytest

import netloop
from netloop import ModelError
from netloop.formats.onnx.importer.graph import OnnxImporter
from tests.support.onnx_models import check_like_onnxruntime, engine_of, model

F = np.float32
X = np.arange(12, dtype=F).reshape(3, 4)
GIVEN = [F([1]), F([2, 3]), F([4, 5, 6])]


def graph(body, inputs, outputs):
    return f"g ({inputs}) => ({outputs}) {{ {body} }}"


def kinds(engine):
    return {type(layer).__name__ for layer in engine.network.layers}


def on_host(engine):
    return any(layer.on_host for layer in engine.network.layers)


# ---------------------------------------------------------------------------- sequences with data-dependent contents


def test_sequence_is_changed_and_read():
    text = graph(
        """
        one = Constant <value_int = 1> ()
        more = SequenceInsert (s, x, one)
        back = Constant <value_int = -2> ()
        less = SequenceErase (more, back)
        y = SequenceAt (more, back)
        n = SequenceLength (less)
        all = ConcatFromSequence <axis = 0> (less)
        """,
        "seq(float[k]) s, float[2] x",
        "seq(float[k]) more, seq(float[k]) less, float[m] y, int64 n, float[t] all",
    )

    check_like_onnxruntime(text, s=GIVEN, x=F([7, 8]))


@pytest.mark.parametrize(("keep", "lengths"), [(1, ""), (0, ""), (1, ", n"), (1, ", some")])
def test_axis_of_a_length_that_the_call_gives_is_split(keep, lengths):
    text = graph(
        f"some = Constant <value_ints = [1, 2]> () s = SplitToSequence <axis = 0, keepdims = {keep}> (x{lengths})",
        "float[k, 4] x, int64 n",
        "seq(float) s",
    )

    check_like_onnxruntime(text, x=X, n=np.int64(2))


GROWS = """
    none = SequenceEmpty ()
    true = Constant <value = bool {1}> ()
    s = Loop (n, true, none) < body = trip (int64 i, bool go, seq(float) before) => (bool again, seq(float) after) {
        again = Identity (go)
        one = Constant <value_ints = [1]> ()
        zero = Constant <value_ints = [0]> ()
        end = Reshape (i, one)
        part = Slice (x, zero, end)
        after = SequenceInsert (before, part)
    } >
"""


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_loop_grows_a_sequence(trips):
    check_like_onnxruntime(graph(GROWS, "float[3, 4] x, int64 n", "seq(float[k, 4]) s"), x=X, n=np.int64(trips))


def test_sequence_that_a_loop_grew_is_concatenated():
    text = graph(GROWS + "y = ConcatFromSequence <axis = 0> (s)", "float[3, 4] x, int64 n", "float[k, 4] y")

    check_like_onnxruntime(text, x=X, n=np.int64(3))


READS = """
    none = SequenceEmpty ()
    true = Constant <value = bool {{1}}> ()
    s = Loop (n, true, none) <
        body = trip (int64 i, bool go, seq(float{declared}) before) => (bool on, seq(float) after) {{
        on = Identity (go)
        zero = Constant <value_int = 0> ()
        begins = Equal (i, zero)
        h = If (begins) <
            then_branch = yes () => (a) {{ a = Identity (x) }},
            else_branch = no () => (b) {{
                end = Constant <value_int = -1> ()
                h_1 = SequenceAt (before, end)
                b = {step}
            }} >
        after = SequenceInsert (before, h)
    }} >
"""


@pytest.mark.parametrize("is_declared", [True, False])
@pytest.mark.parametrize(
    ("step", "x"),
    [
        ("Add (h_1, x)", F(2)),
        ("Add (h_1, x)", F([[1, 2], [3, 4]])),
        ("MatMul (h_1, x)", F([[1, 2], [3, 4]])),
        ("Concat <axis = 0> (h_1, x)", F([1, 2])),
    ],
    ids=["numbers", "sums", "products", "longer and longer"],
)
def test_loop_reads_the_list_that_it_grows(is_declared, step, x):
    dims = ["", "[k]", "[k, l]"][x.ndim]
    body = READS.format(declared=dims if is_declared else "[]", step=step)
    text = graph(body, f"float{list(x.shape) or ''} x, int64 n", f"seq(float{dims}) s")

    check_like_onnxruntime(text, n=np.int64(3), x=x)


def test_error_in_a_loop_with_an_empty_list_is_reported_once():
    text = graph(READS.format(declared="", step="Add (h_1, n)"), "float x, int64 n", "seq(float) s")

    with pytest.raises(ModelError) as raised:
        netloop.onnx.load(model(text))
    assert [finding.at.op for finding in raised.value.findings] == ["SequenceAt"]


def nested_loops_with_empty_lists(depth):
    """The node of a loop around others that each begin with an empty list, with an unknown operator in the last."""
    name = f"l{depth}"
    inner = f"none = SequenceEmpty () {nested_loops_with_empty_lists(depth - 1)}" if depth else "z = Nothing (x)"
    return f"""{name} = Loop (n, true, none) <body = b{depth} (int64 i, bool go, seq(float) before)
        => (bool on, seq(float) after) {{ on = Identity (go) {inner} after = SequenceInsert (before, x) }}>"""


def test_attempts_of_loops_in_others_do_not_multiply(monkeypatch):
    nodes = []
    monkeypatch.setattr(OnnxImporter, "_count_node", lambda self: nodes.append(self))
    text = "true = Constant <value = bool {1}> () none = SequenceEmpty () " + nested_loops_with_empty_lists(5)

    with pytest.raises(ModelError, match="no operator Nothing"):
        netloop.onnx.load(model(graph(text, "float x, int64 n", "seq(float) l5")))
    assert len(nodes) < 5000


def test_function_is_mapped_over_sequences():
    text = graph(
        """
        y, z = SequenceMap (s, x) < body = each (float[k] a, float[1] b) => (float[k] c, float[k] d) {
            c = Add (a, b)
            d = Mul (a, b)
        } >
        """,
        "seq(float[k]) s, float[1] x",
        "seq(float[k]) y, seq(float[k]) z",
    )

    check_like_onnxruntime(text, s=GIVEN, x=F([2]))


def test_mapped_graph_has_the_version_and_the_names_around_it():
    text = graph(
        """
        axes = Constant <value_ints = [0]> ()
        y = SequenceMap (s) < body = one (float[k] a) => (float c) {
            sum = ReduceMax <keepdims = 0> (a, axes)
            c = Add (sum, x)
        } >
        """,
        "seq(float[k]) s, float x",
        "seq(float) y",
    )

    check_like_onnxruntime(text, s=GIVEN, x=np.float32(2))


@pytest.mark.parametrize("condition", [False, True])
def test_branches_give_sequences(condition):
    text = graph(
        """
        y = If (c) <
            then_branch = yes () => (a) { a = SequenceConstruct (x, x) },
            else_branch = no () => (b) { b = Identity (s) } >
        """,
        "bool c, float[2] x, seq(float[k]) s",
        "seq(float[k]) y",
    )

    check_like_onnxruntime(text, c=np.bool_(condition), x=F([8, 9]), s=GIVEN)


# ---------------------------------------------------------------------------- sequences of known tensors

PLACE = "at = Constant <value_int = {}> ()"


@pytest.mark.parametrize("place", [0, 1, -1])
def test_parts_of_known_number_are_read_in_one_program(place):
    text = graph(
        f"{PLACE.format(place)} s = SplitToSequence <axis = 1, keepdims = 0> (x) y = SequenceAt (s, at)",
        "float[3, 4] x",
        "float[3] y",
    )

    assert not on_host(check_like_onnxruntime(text, x=X))


@pytest.mark.parametrize("new_axis", [0, 1])
def test_known_tensors_are_joined_in_one_program(new_axis):
    text = graph(
        f"""
        {PLACE.format(1)}
        none = SequenceEmpty ()
        s = SequenceConstruct (x, x)
        more = SequenceInsert (s, b, at)
        less = SequenceErase (more)
        grown = SequenceInsert (none, x)
        first = SequenceErase (grown)
        y = ConcatFromSequence <axis = -1, new_axis = {new_axis}> (less)
        n = SequenceLength (more)
        m = SequenceLength (first)
        """,
        "float[3, 4] x, float[3, 4] b",
        "float y, int64 n, int64 m",
    ).replace("float y", "float[3, 8] y" if not new_axis else "float[3, 4, 2] y")

    assert not on_host(check_like_onnxruntime(text, x=X, b=-X))


def test_lengths_of_parts_may_be_known():
    text = graph(
        f"""
        {PLACE.format(1)}
        size = Constant <value_int = 3> ()
        sizes = Constant <value_ints = [1, 0, 3]> ()
        even = SplitToSequence <axis = 1> (x, size)
        other = SplitToSequence <axis = 1> (x, sizes)
        y = SequenceAt (even, at)
        z = SequenceAt (other, at)
        """,
        "float[3, 4] x",
        "float[3, 1] y, float[3, 0] z",
    )

    assert not on_host(check_like_onnxruntime(text, x=X))


def test_parts_that_do_not_make_up_the_axis_are_reported_when_loaded():
    text = graph(
        "sizes = Constant <value_ints = [1, 1]> () s = SplitToSequence (x, sizes)", "float[3, 4] x", "seq(float) s"
    )

    with pytest.raises(ModelError, match=r"the lengths \[1, 1\] do not make up the 3 elements"):
        netloop.onnx.load(model(text))


# ---------------------------------------------------------------------------- optional values

ASKED = """
    there = OptionalHasElement (o)
    y = If (there) <
        then_branch = yes () => (a) { a = OptionalGetElement (o) },
        else_branch = no () => (b) { b = Identity (x) } >
"""


@pytest.mark.parametrize("value", [None, F([4, 5])])
def test_optional_input_is_asked_for(value):
    engine = engine_of(graph(ASKED, "optional(float[2]) o, float[2] x", "bool there, float[2] y"))
    found = engine({"o": value, "x": F([1, 2])})

    assert bool(found["there"]) is (value is not None)
    assert found["y"].tolist() == ([1, 2] if value is None else [4, 5])


@pytest.mark.parametrize("condition", [False, True])
def test_branches_give_optional_values(condition):
    body = """
        o = If (c) <
            then_branch = yes () => (a) { a = Optional (x) },
            else_branch = no () => (b) { b = Optional <type = float[2]> () } >
        there = OptionalHasElement (o)
    """
    text = graph(body, "bool c, float[2] x", "optional(float[2]) o, bool there")
    found = engine_of(text)({"c": np.bool_(condition), "x": F([1, 2])})

    assert bool(found["there"]) is condition
    assert found["o"] is None or found["o"].tolist() == [1, 2]


def test_what_is_no_optional_value_is_always_there():
    text = graph("there = OptionalHasElement (x) y = OptionalGetElement (x)", "float[2] x", "bool there, float[2] y")

    assert not on_host(check_like_onnxruntime(text, x=F([1, 2])))


# ---------------------------------------------------------------------------- inputs


def test_shape_of_the_tensors_of_an_input_may_be_given():
    text = graph(f"{PLACE.format(0)} y = SequenceAt (s, at)", "seq(float) s", "float[k] y")

    with pytest.raises(ModelError, match="the rank of the tensors of a sequence of float32"):
        netloop.onnx.load(model(text))
    network = netloop.onnx.load(model(text), input_shapes={"s": (-1,)})
    assert netloop.evaluate(network, {"s": GIVEN})["y"].tolist() == [1]


def test_sequence_where_a_tensor_belongs_is_refused():
    with pytest.raises(ModelError, match="takes a tensor, not a sequence of float32"):
        netloop.onnx.load(model(graph("y = Exp (s)", "seq(float[k]) s", "float y")))
