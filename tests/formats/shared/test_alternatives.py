"""Models in which the rank of a value depends on the branch of an If, against onnxruntime."""

import numpy as np
import pytest

import netloop
from netloop import ExecutionError, ModelError
from tests.support.onnx_models import check_like_onnxruntime, model

F = np.float32
WIDE, NARROW = np.arange(12, dtype=F).reshape(2, 3, 2), np.arange(6, dtype=F).reshape(2, 3, 1)

SQUEEZED = """
  two = Constant <value_int = 2> ()
  axis = Constant <value_ints = [2]> ()
  one = Constant <value_int = 1> ()
  shape = Shape (x)
  length = Gather (shape, two)
  c = Equal (length, one)
  v = If (c) <then_branch = yes () => (a) { a = Squeeze (x, axis) }, else_branch = no () => (b) { b = Identity (x) }>
"""
"""``v``: x without its last axis if that has one element, as exporters of PyTorch write ``x.squeeze(2)``."""


def squeezed(rest, outputs="float[k] y"):
    return f"g (float[n, m, k] x) => ({outputs}) {{ {SQUEEZED} {rest} }}"


@pytest.mark.parametrize("x", [WIDE, NARROW])
def test_what_follows_a_squeeze_has_the_rank_of_its_branch(x):
    check_like_onnxruntime(squeezed("w = Neg (v) y = Exp (w)", "y"), x=x)


@pytest.mark.parametrize("x", [WIDE, NARROW])
def test_values_of_one_rank_again_are_an_output_of_one_conditional(x):
    text = squeezed("s = ReduceSum <keepdims = 0> (v) y = Add (s, x)", "float[n, m, k] y")

    engine = check_like_onnxruntime(text, x=x)

    assert [len(conditional.output_layers) for conditional in engine.network.conditionals] == [1]


@pytest.mark.parametrize("x", [WIDE, NARROW])
def test_rank_that_the_model_compares_is_known_in_each_branch(x):
    rest = """
      dims = Shape (v)
      rank = Size (dims)
      flat = Equal (rank, two)
      y = If (flat) <
        then_branch = matrix () => (p) { t = Transpose <perm = [1, 0]> (v) p = ReduceSum <keepdims = 0> (t) },
        else_branch = cube () => (q) { u = Transpose <perm = [2, 0, 1]> (v) q = ReduceMax <keepdims = 0> (u) } >
    """

    check_like_onnxruntime(squeezed(rest, "float y"), x=x)


@pytest.mark.parametrize("taken", [True, False])
def test_output_of_two_ranks_has_that_of_the_branch_taken(taken):
    text = """g (float[n, m] x, bool c) => (y) {
      y = If (c) <
        then_branch = yes () => (a) { a = Identity (x) },
        else_branch = no () => (b) { b = ReduceSum <keepdims = 0> (x) } >
    }"""

    check_like_onnxruntime(text, x=WIDE[0], c=np.bool_(taken))


def test_type_of_an_output_of_two_ranks_names_both():
    network = netloop.onnx.load(model(squeezed("y = Identity (v)", "y")))

    assert str(network.outputs[0].type) == "float32[-1,-1] or float32[-1,-1,-1]"


@pytest.mark.parametrize("x", [WIDE, NARROW])
@pytest.mark.parametrize("trips", [0, 2])
def test_loop_reads_a_value_of_two_ranks(x, trips):
    rest = f"""
      most = Constant <value_int = {trips}> ()
      go = Constant <value = bool {{1}}> ()
      zero = Constant <value = float {{0}}> ()
      y = Loop (most, go, zero) < body = trip (int64 i, bool on, float s) => (bool on2, float t) {{
        on2 = Identity (on) part = ReduceSum <keepdims = 0> (v) t = Add (s, part) }} >
    """

    check_like_onnxruntime(squeezed(rest, "float y"), x=x)


@pytest.mark.parametrize("x", [WIDE, NARROW])
def test_ifs_one_after_the_other_do_not_double_what_follows(x):
    parts = [
        f"""
        v{i} = If (c) <
          then_branch = yes () => (a) {{ a = Squeeze (u{i}, axis) }},
          else_branch = no () => (b) {{ b = Identity (u{i}) }} >
        s{i} = ReduceMean <keepdims = 0> (v{i})
        u{i + 1} = Mul (s{i}, x)
        """
        for i in range(12)
    ]
    text = squeezed(f"u0 = Identity (x) {' '.join(parts)} y = Identity (u12)", "float[n, m, k] y")

    engine = check_like_onnxruntime(text, x=x / 10)

    assert len(engine.network.layers) < 200


def test_node_that_one_branch_does_not_allow_requires_the_other():
    network = netloop.onnx.load(model(squeezed("y = Transpose <perm = [0, 2, 1]> (v)", "y")))

    with pytest.raises(ExecutionError, match="perm"):
        netloop.compile(network)({"x": NARROW})
    assert netloop.compile(network)({"x": WIDE})["y"].shape == (2, 2, 3)


def test_node_that_no_branch_allows_is_an_error_of_the_model():
    with pytest.raises(ModelError, match="perm"):
        netloop.onnx.load(model(squeezed("y = Transpose <perm = [0]> (v)", "y")))


def test_loop_that_one_branch_does_not_allow_requires_the_other():
    rest = """
      most = Constant <value_int = 2> ()
      go = Constant <value = bool {1}> ()
      y = Loop (most, go, x) < body = trip (i, on, s) => (on2, t) { on2 = Identity (on) t = Identity (v) } >
    """
    engine = netloop.compile(netloop.onnx.load(model(squeezed(rest, "y"))))

    assert engine({"x": WIDE})["y"].tolist() == WIDE.tolist()
    with pytest.raises(ExecutionError, match="float32"):
        engine({"x": NARROW})


@pytest.mark.parametrize("taken", [True, False])
def test_branch_that_the_shapes_of_a_call_do_not_allow_counts_only_if_it_is_taken(taken):
    text = """g (float[n, m] x, float[k] w, bool c) => (float[j, m] y) {
      y = If (c) <
        then_branch = yes () => (a) { a = Add (x, w) },
        else_branch = no () => (b) { b = Neg (x) } >
    }"""
    network = netloop.onnx.load(model(text))
    given = {"x": np.ones((2, 3), F), "w": np.ones(2, F), "c": np.bool_(taken)}

    for run in (netloop.compile(network), lambda inputs: netloop.evaluate(network, inputs)):
        if taken:
            with pytest.raises(ExecutionError, match="axis 1 has 3 and 2 elements"):
                run(given)
        else:
            assert run(given)["y"].tolist() == [[-1, -1, -1], [-1, -1, -1]]


@pytest.mark.parametrize("x", [WIDE, NARROW])
def test_axis_that_follows_from_a_rank_is_known_in_each_branch(x):
    rest = """
      dims = Shape (v)
      rank = Size (dims)
      last = Sub (rank, one)
      axes = Reshape (last, axis_of_a_list)
      y = ReduceSum <keepdims = 0> (x, axes)
    """
    listed = "axis_of_a_list = Constant <value_ints = [1]> ()"

    check_like_onnxruntime(squeezed(listed + rest, "float[p, q] y"), x=x)


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("length", [1, 3])
def test_what_one_branch_does_not_allow_in_another_is_required_only_there(length, taken):
    """``v`` has rank 2 if the length is 1, else 3; ``w`` has one axis less if taken, and must have rank 2."""
    rest = """
      middle = Constant <value_ints = [1]> ()
      w = If (taken) <
        then_branch = yes () => (a) { a = Squeeze (v, middle) },
        else_branch = no () => (b) { b = Identity (v) } >
      y = Transpose <perm = [1, 0]> (w)
    """
    text = squeezed(rest, "y").replace("x) =>", "x, bool taken) =>")
    given = {"x": np.arange(2 * length, dtype=F).reshape(2, 1, length), "taken": np.bool_(taken)}

    if (length == 1) is taken:
        for run in (
            netloop.compile(netloop.onnx.load(model(text))),
            lambda inputs: netloop.evaluate(netloop.onnx.load(model(text)), inputs),
        ):
            with pytest.raises(ExecutionError, match="perm"):
                run(given)
    else:
        check_like_onnxruntime(text, **given)


@pytest.mark.parametrize("c", [True, False])
def test_branch_of_two_ranks_that_a_node_does_not_allow_counts_only_if_it_is_taken(c):
    text = f"""g (float[n, m, k] x, bool c0) => (y) {{
      y = If (c0) <
        then_branch = outer () => (p) {{ {SQUEEZED} p = Transpose <perm = [0, 2, 1]> (v) }},
        else_branch = other () => (q) {{ q = Neg (x) }} >
    }}"""
    network = netloop.onnx.load(model(text))
    given = {"x": NARROW, "c0": np.bool_(c)}

    if c:
        with pytest.raises(ExecutionError, match="perm"):
            netloop.compile(network)(given)
    else:
        check_like_onnxruntime(text, **given)


def test_ranks_that_many_conditions_decide_are_refused_at_once():
    names = range(30)
    inputs = ", ".join(f"bool c{i}" for i in names)
    ifs = " ".join(
        f"""v{i} = If (c{i}) <
          then_branch = yes () => (a) {{ a = Identity (x) }},
          else_branch = no () => (b) {{ b = ReduceSum <keepdims = 0> (x) }} >"""
        for i in names
    )
    text = f"g (float[2] x, {inputs}) => (y) {{ {ifs} y = Sum ({', '.join(f'v{i}' for i in names)}) }}"

    with pytest.raises(ModelError, match="depend on more than 6 conditions"):
        netloop.onnx.load(model(text))


@pytest.mark.parametrize("c", [True, False])
def test_shape_that_follows_from_a_rank_is_known_in_each_branch(c):
    text = """g (float[2, 3, 1] x, float[6] row, bool c) => (y) {
      axis = Constant <value_ints = [2]> ()
      v = If (c) <
        then_branch = yes () => (a) { a = Squeeze (x, axis) },
        else_branch = no () => (b) { b = Identity (x) } >
      shape = Shape (v)
      y = Reshape (row, shape)
    }"""

    check_like_onnxruntime(text, x=NARROW, row=np.arange(6, dtype=F), c=np.bool_(c))


# ---------------------------------------------------------------------------- squeezes of all axes


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (2, 1), (1, 1)])
def test_squeeze_of_all_axes_has_the_rank_that_the_lengths_give(shape):
    x = np.arange(np.prod(shape), dtype=F).reshape(shape[0], 1, shape[1])

    check_like_onnxruntime("g (float[n, 1, m] x) => (y) { v = Squeeze (x) y = Exp (v) }", x=x)


def test_lengths_that_a_reader_of_the_squeezed_value_excludes_are_asserted():
    engine = check_like_onnxruntime(
        "g (float[n, 1, 3] x) => (float[m, n] y) { v = Squeeze (x) y = Transpose <perm = [1, 0]> (v) }",
        x=np.arange(6, dtype=F).reshape(2, 1, 3),
    )

    with pytest.raises(ExecutionError, match="otherwise"):
        engine({"x": np.zeros((1, 1, 3), F)})


def test_squeeze_of_more_open_axes_needs_their_lengths():
    with pytest.raises(ModelError, match="input_shapes"):
        netloop.onnx.load(model("g (float[a, b, c, d] x) => (y) { y = Squeeze (x) }"))


def test_broadcast_keeps_the_lengths_that_are_known():
    network = netloop.onnx.load(model("g (float[2, 1, 3] x, int64[3] s) => (y) { y = Expand (x, s) }"))

    assert network.outputs[0].type.shape == (2, -1, 3)
