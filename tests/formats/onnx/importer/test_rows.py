"""Slices from a position to the next one, and parts of splits: rows of tensors whose lengths only a run knows."""

import numpy as np
import pytest

import netloop
from tests.support.onnx_models import check_like_onnxruntime, model

F = np.float32
ROWS = F(np.arange(24)).reshape(4, 2, 3)
CONSTANTS = """
one = Constant <value_int = 1> ()
zero = Constant <value_int = 0> ()
first = Constant <value_ints = [0]> ()
on = Constant <value = bool {1}> ()
lengths = Shape (x)
"""
NEXT = "{after} = Add ({at}, one) from = Unsqueeze ({at}, first) to = Unsqueeze ({after}, first)"


def graph(body, inputs="float[T, B, 3] x", outputs="float[B, 3] y"):
    return f"g ({inputs}) => ({outputs}) {{ {CONSTANTS} {body} }}"


def looped(count, row, before=""):
    """A model of one loop over ``x`` which sums rows; ``i`` is the number of the iteration."""
    row = NEXT.format(at="i", after="j") + row
    body = f"again = Identity (go) {row} next = Add (v, row)"
    start = "start = ReduceSum <keepdims = 0> (x, first)"
    declared = "(int64 i, bool go, float[B, 3] v) => (bool again, float[B, 3] next)"
    return graph(f"{before} {start} y = Loop ({count}, on, start) < body = b {declared} {{ {body} }} >")


def names(engine):
    return [strategy.name for strategy in engine.loop_strategies.values()]


SUMMED = "part = Slice (x, from, to, first) row = ReduceSum <keepdims = 0> (part, first)"
SQUEEZED = "part = Slice (x, from, to, first) row = Squeeze (part, first)"
LENGTH = "count = Gather (lengths, zero)"


@pytest.mark.parametrize("row", [SUMMED, SQUEEZED])
def test_row_of_a_loop_over_an_axis_is_in_a_program(row):
    engine = check_like_onnxruntime(looped("count", row, LENGTH), x=ROWS)

    assert names(engine) == ["scan"]
    empty = engine({"x": ROWS[:0]})
    assert np.asarray(empty["y"]).tolist() == np.zeros((2, 3)).tolist()


def test_removed_row_of_any_loop_is_in_a_program():
    engine = check_like_onnxruntime(looped("count", SQUEEZED, "count = Constant <value_int = 3> ()"), x=ROWS)

    assert names(engine) == ["scan"]


def test_row_that_may_be_outside_is_empty_there():
    before = "count = Constant <value_int = 6> ()"

    check_like_onnxruntime(looped("count", SUMMED, before), x=ROWS)


def test_row_of_another_axis_may_be_outside():
    x = ROWS.transpose(1, 0, 2)

    check_like_onnxruntime(looped("count", SUMMED, "count = Gather (lengths, one)"), x=np.tile(x, (2, 1, 1)))


@pytest.mark.parametrize("at", [0, 3, -2, -4])
def test_removed_row_at_a_position_of_the_call(at):
    text = graph(NEXT.format(at="at", after="j") + SQUEEZED + "y = Identity (row)", "float[T, B, 3] x, int64 at")

    engine = check_like_onnxruntime(text, x=ROWS, at=np.array(at))
    assert np.asarray(engine({"x": ROWS, "at": np.array(at)})["y"]).tolist() == ROWS[at].tolist()


@pytest.mark.parametrize("at", [4, -1, -5])
def test_removed_row_outside_is_an_error_of_the_reference(at):
    text = graph(NEXT.format(at="at", after="j") + SQUEEZED + "y = Identity (row)", "float[T, B, 3] x, int64 at")
    network = netloop.onnx.load(model(text))

    with pytest.raises(netloop.ExecutionError):
        netloop.evaluate(network, {"x": ROWS, "at": np.array(at)})


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("at", [0, 2, -1])
def test_part_of_a_split_at_a_constant_position(keep, at):
    body = f"""
        parts = SplitToSequence <axis = 0, keepdims = {keep}> (x)
        at = Constant <value_int = {at}> ()
        y = SequenceAt (parts, at)
    """
    engine = check_like_onnxruntime(graph(body, outputs="float[B, 3] y" if not keep else "float[A, B, 3] y"), x=ROWS)

    assert not any(layer.on_host for layer in engine.network.layers)


def test_position_outside_of_a_split_is_an_error():
    body = "s = SplitToSequence <keepdims = 0> (x) at = Constant <value_int = 9> () y = SequenceAt (s, at)"
    engine = netloop.compile(netloop.onnx.load(model(graph(body))))

    with pytest.raises(netloop.NetloopError, match="9"):
        engine({"x": ROWS})


def test_scripted_squeeze_of_a_known_length_is_no_branch():
    body = """
        u = Constant <value_ints = [-1]> ()
        column = Unsqueeze (x, u)
        shape = Shape (column)
        last = Constant <value_int = -1> ()
        length = Gather (shape, last)
        is_one = Equal (length, one)
        y = If (is_one) < then_branch = yes () => (a) { a = Squeeze (column, u) },
                          else_branch = no () => (b) { b = Identity (column) } >
        z = Exp (y)
    """
    check_like_onnxruntime(graph(body, outputs="float[T, B, 3] z"), x=ROWS)


@pytest.mark.parametrize("shape", [1, 3])
def test_expand_to_a_shape_of_the_call_without_an_axis_that_it_changes(shape):
    text = "g (float[3] x, int64[1] s) => (float[3] y) { y = Expand (x, s) }"

    check_like_onnxruntime(text, x=F([1, 2, 3]), s=np.array([shape]))
