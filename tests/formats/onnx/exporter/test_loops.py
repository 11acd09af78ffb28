"""Loops and conditionals exported as Loop and If, in cases where the semantics could differ."""

import numpy as np
import pytest

import netloop as trt
from tests.support.findings import certain_errors_ignored
from tests.support.networks import (
    CONCATENATE,
    COUNT,
    REVERSE,
    WHILE,
    Op,
    both_limits,
    cast,
    combine,
    constant,
    counted,
    counter,
    deep,
    last,
    mark,
    running_sum,
    stacked,
)
from tests.support.onnx_runtime import export, run


def agree(network, inputs):
    meant, got = trt.evaluate(network, inputs), run(export(network), inputs)
    for name, wanted in meant.items():
        np.testing.assert_array_equal(got[name], wanted, strict=True)


def test_loop_is_one_node():
    model = export(running_sum())

    assert [attribute.op_type for attribute in model.graph.node] == ["Loop"]


def test_tensors_and_layers_keep_their_names():
    network = running_sum()
    network.loops[0].name = "sum the rows"
    (loop,) = export(network).graph.node

    assert (loop.name, list(loop.output)) == ("sum the rows/Loop", ["y"])


@pytest.mark.parametrize("trips", [-1, 0, 1, 5])
def test_stack_has_zeros_after_the_last_iteration(trips):
    for kind in (CONCATENATE, REVERSE):
        agree(running_sum(trips, kind, length=5), {"x": np.arange(15, dtype=np.float32).reshape(5, 3)})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stack_goes_along_any_axis(axis):
    agree(running_sum(2, REVERSE, axis, 3), {"x": np.ones((5, 3), np.float32)})


def test_too_short_a_stack_is_an_error():
    with certain_errors_ignored():
        model = export(running_sum(4, CONCATENATE, length=3))

    with pytest.raises(Exception, match="ConstantOfShape"):
        run(model, {"x": np.ones((5, 3), np.float32)})


def test_iterator_past_its_axis_is_an_error():
    with certain_errors_ignored():
        model = export(running_sum(6))

    with pytest.raises(Exception, match="out of data bounds"):
        run(model, {"x": np.ones((5, 3), np.float32)})


@pytest.mark.parametrize("n", [-1, 0, 1, 4, 5, 9])
def test_loop_ends_at_whichever_limit_comes_first(n):
    agree(both_limits(), {"n": np.int32(n)})


def guarded(trips):
    """y: the sum of the leading positive elements of x[4], at most ``trips`` of them."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    x = loop.add_iterator(network.add_input("x", trt.int32, (4,))).get_output(0)
    total = loop.add_recurrence(constant(network, 0, np.int32))
    total.set_input(1, combine(network, total.get_output(0), x))
    loop.add_trip_limit(combine(network, x, 0, Op.GREATER), WHILE)
    return mark(network, y=last(loop, total.get_output(0)), n=last(loop, counter(network, loop)))


@pytest.mark.parametrize("trips", [0, 2, 4])
@pytest.mark.parametrize("x", [[1, 2, 3, 4], [1, -2, 3, 4], [-1, 2, 3, 4]])
def test_condition_is_not_evaluated_once_the_count_is_reached(trips, x):
    agree(guarded(trips), {"x": np.int32(x)})


def below(limit, count):
    """A loop of at most so many iterations, while its number is below a limit; the count "n" is an input."""
    network = trt.INetworkDefinition()
    x, n = network.add_input("x", trt.float32, (-1, 2)), network.add_input("n", trt.int32, ())
    loop = network.add_loop() if count is None else counted(network, n if count == "n" else count)
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, limit, Op.LESS), WHILE)
    rows = stacked(loop, x, constant(network, 2, np.int32), REVERSE)
    return mark(network, rows=rows, trips=last(loop, now), count=cast(network, n, trt.int64))


BELOW = [(0, None), (2, None), (0, 3), (2, 0), (2, 1), (2, -1), (0, "n")]


@pytest.mark.parametrize(("limit", "count"), BELOW)
def test_first_condition_of_constants_is_computed_when_the_model_is_saved(limit, count):
    network = below(limit, count)

    assert not {"Less", "And", "If"}.intersection(node.op_type for node in export(network).graph.node)
    for trips, length in ((2, 3), (0, 0), (1, 2)):
        agree(network, {"x": np.ones((length, 2), np.float32), "n": np.int32(trips)})


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_last_value_of_any_tensor_is_past_the_last_iteration(flag, reverse):
    network = trt.INetworkDefinition()
    loop = counted(network, network.add_input("n", trt.int64, ()))
    now = counter(network, loop)
    if flag:
        loop.add_trip_limit(combine(network, now, 2, Op.LESS), WHILE)
    x = loop.add_iterator(network.add_input("x", trt.float32, (5,)), 0, reverse).get_output(0)
    mark(network, y=last(loop, combine(network, x, cast(network, now, trt.float32))), z=last(loop, x))
    inputs = {"n": np.int64(4), "x": np.float32([1, 2, 4, 8, 16])}

    if reverse and not flag:
        with pytest.raises(trt.ExecutionError):
            trt.evaluate(network, inputs)
        with pytest.raises(Exception, match="out of data bounds"):
            run(export(network), inputs)
    else:
        agree(network, inputs)


def test_last_value_of_an_iterator_needs_no_loop():
    network = trt.INetworkDefinition()
    loop = counted(network, network.add_input("n", trt.int32, ()))
    x = loop.add_iterator(network.add_input("x", trt.float32, (3,))).get_output(0)
    mark(network, y=last(loop, x))

    agree(network, {"n": np.int32(-2), "x": np.float32([5, 6, 7])})


@pytest.mark.parametrize("trips", [0, 2])
def test_rows_of_no_iteration_have_their_lengths(trips):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 3, -1))
    w = network.add_input("w", trt.float32, (-1, 4))
    loop = counted(network, trips)
    state = loop.add_recurrence(x)
    state.set_input(1, combine(network, state.get_output(0), 1))
    product = network.add_matrix_multiply(
        network.add_reduce(state.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0),
        trt.MatrixOperation.NONE,
        w,
        trt.MatrixOperation.NONE,
    ).get_output(0)
    column = loop.add_iterator(x, 1).get_output(0)
    outer = network.add_shuffle(column)
    outer.first_transpose = (1, 0)
    rows = [product, outer.get_output(0), combine(network, column, column)]
    length = constant(network, 2, np.int32)
    mark(network, **{f"y{n}": stacked(loop, row, length) for n, row in enumerate(rows)})

    agree(network, {"x": np.ones((2, 3, 5), np.float32), "w": np.ones((5, 4), np.float32)})


def test_condition_with_a_loop_in_it():
    network = trt.INetworkDefinition()
    outer = network.add_loop()
    number = counter(network, outer, 1)
    inner = counted(network, number)
    total = inner.add_recurrence(constant(network, 0, np.int32))
    total.set_input(1, combine(network, total.get_output(0), counter(network, inner, 1)))
    triangle = last(inner, total.get_output(0))
    outer.add_trip_limit(combine(network, triangle, network.add_input("n", trt.int32, ()), Op.LESS), WHILE)
    mark(network, y=last(outer, triangle), trips=last(outer, number))

    agree(network, {"n": np.int32(20)})


def test_branch_not_taken_is_not_computed():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1,))
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    third = network.add_gather(x, constant(network, 2, np.int32), 0).get_output(0)
    first = network.add_gather(x, constant(network, 0, np.int32), 0).get_output(0)
    mark(network, y=choice.add_output(third, first).get_output(0))

    agree(network, {"x": np.float32([7]), "c": np.bool_(False)})


def test_branches_that_give_one_tensor_twice():
    network = trt.INetworkDefinition()
    x, z = (network.add_input(name, trt.float32, (2,)) for name in "xz")
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    twice = combine(network, x, x)
    outputs = [choice.add_output(twice, z).get_output(0), choice.add_output(twice, x).get_output(0)]
    mark(network, a=outputs[0], b=outputs[1])

    for flag in (False, True):
        agree(network, {"x": np.float32([1, 2]), "z": np.float32([3, 4]), "c": np.bool_(flag)})


def test_known_condition_exports_only_the_branch_taken():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    choice = network.add_if_conditional()
    choice.set_condition(constant(network, True, np.bool_))
    mark(network, y=choice.add_output(combine(network, x, x), x).get_output(0))

    assert [attribute.op_type for attribute in export(network).graph.node] == ["Add"]


def test_loops_nested_too_deep_are_refused():
    with pytest.raises(trt.NetworkError, match="nested more than 24 deep"):
        export(deep(90))


def test_loops_nested_as_deep_as_allowed():
    agree(deep(24, 1), {"x": np.int64(3)})


def test_loop_that_counts_beyond_int32():
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 2**62, np.int64), COUNT)
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, 3, Op.LESS), WHILE)

    agree(mark(network, y=last(loop, now)), {})
