"""The iterations of each loop are counted as they are made."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution import trip_counts as module
from netloop.compiler.execution.trip_counts import trip_counts
from tests.support.networks import (
    EXAMPLES,
    F,
    both_limits,
    combine,
    constant,
    count_is_an_input,
    counted,
    counter,
    last,
    mark,
    table,
)

Op = trt.ElementWiseOperation


def counts(network, inputs, max_trips=None):
    return [count.iterations for count in trip_counts(network, inputs, max_trips)]


@pytest.fixture
def no_run(monkeypatch):
    monkeypatch.setattr(module, "Executable", lambda *_: pytest.fail("it ran"))


def total(value):
    return sum(map(total, value)) if isinstance(value, list) else int(value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_counts_are_those_of_the_reference(name):
    network, inputs = EXAMPLES[name].make(), EXAMPLES[name].inputs
    trace = trt.trace(network, inputs)

    for count in trip_counts(network, inputs):
        if "conditional" not in name and "branch" not in name:
            assert count.iterations == total(trace.trips(count.loop))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_count_that_is_an_input_takes_no_run(no_run, n):
    assert counts(count_is_an_input(), {"n": np.int32(n)}) == [n]


def test_count_that_is_computed_of_an_input_takes_no_run(no_run, network):
    count = combine(network, network.add_input("n", trt.int32, ()), 3, Op.PROD)
    loop = counted(network, count)
    mark(network, y=last(loop, counter(network, loop)))

    assert counts(network, {"n": np.int32(5)}, max_trips=2) == [15]


def test_nested_loops_of_known_length_take_no_run(no_run):
    network = table()
    outer, inner = network.loops[0], network.loops[1]
    found = trip_counts(network, {"x": F([1, 2]), "z": F([3, 4, 5])})

    assert sorted((count.iterations, count.inside) for count in found) == [(2, ()), (6, (outer.name,))]
    assert {count.loop for count in found} == {outer, inner}


@pytest.mark.parametrize(("n", "made"), [(2, 2), (100, 5)])
def test_iterations_of_a_while_loop_are_counted(n, made):
    # 1, 2, 4, 8, 16 are below 20
    assert counts(both_limits(), {"n": np.int32(n)}) == [made]


def triangle(network):
    """A loop of n iterations around one that makes as many as the index of the iteration; y: 0 + 1 + ... + n - 1."""
    outer = counted(network, network.add_input("n", trt.int32, ()))
    index = counter(network, outer)
    inner = counted(network, index)
    made = inner.add_recurrence(combine(network, index, 0, Op.PROD))
    made.set_input(1, combine(network, made.get_output(0), 1))
    sum_of = outer.add_recurrence(constant(network, 0, np.int32))
    sum_of.set_input(1, combine(network, sum_of.get_output(0), last(inner, made.get_output(0))))
    return mark(network, y=last(outer, sum_of.get_output(0)))


def test_iterations_of_an_inner_loop_are_those_of_all_iterations_around_it(network):
    found = trip_counts(triangle(network), {"n": np.int32(5)})

    assert {count.iterations: len(count.inside) for count in found} == {5: 0, 10: 1}


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("in_first", [True, False])
def test_loop_in_a_branch_counts_only_if_the_branch_is_taken(network, taken, in_first):
    n = network.add_input("n", trt.int32, ())
    loop = counted(network, n)
    inside = last(loop, counter(network, loop))
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    results = (inside, constant(network, 7, np.int32))
    output = choice.add_output(*(results if in_first else results[::-1]))
    mark(network, y=output.get_output(0))

    assert counts(network, {"n": np.int32(4), "c": np.bool_(taken)}) == [4 if taken == in_first else 0]


def test_loop_in_a_branch_that_is_not_taken_may_be_endless(network):
    loop = network.add_loop()
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, 0, Op.GREATER), trt.TripLimit.WHILE)
    endless = network.add_loop()
    state = endless.add_recurrence(network.add_input("x", trt.int32, ()))
    state.set_input(1, combine(network, state.get_output(0), 0))
    endless.add_trip_limit(combine(network, state.get_output(0), 0, Op.GREATER), trt.TripLimit.WHILE)
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    mark(network, y=choice.add_output(last(endless, state.get_output(0)), last(loop, now)).get_output(0))
    inputs = {"x": np.int32(1), "c": np.bool_(False)}

    assert counts(network, inputs, max_trips=50) == [0, 0]
    with pytest.raises(trt.ExecutionError, match="executes more than 50 iterations"):
        counts(network, inputs | {"c": np.bool_(True)}, max_trips=50)


def test_loop_that_no_output_needs_is_not_counted(network):
    network.add_input("n", trt.int32, ())
    loop = counted(network, network.inputs[0])
    last(loop, counter(network, loop))
    mark(network, y=combine(network, network.inputs[0], 1))

    assert counts(network, {"n": np.int32(3)}) == []


def test_endless_loop_is_an_error_that_names_it(network):
    loop = network.add_loop()
    loop.name = "steps"
    state = loop.add_recurrence(network.add_input("x", trt.int32, ()))
    state.set_input(1, combine(network, state.get_output(0), 0))
    loop.add_trip_limit(combine(network, state.get_output(0), 0, Op.GREATER), trt.TripLimit.WHILE)
    mark(network, y=last(loop, state.get_output(0)))

    with pytest.raises(trt.ExecutionError, match=r"(?s)NL609: 'steps' executes more than 9 .*at .*test_trip_counts.py"):
        counts(network, {"x": np.int32(1)}, max_trips=9)
    assert counts(network, {"x": np.int32(0)}, max_trips=9) == [0]


def test_loop_with_data_dependent_shapes_is_counted(network):
    x = network.add_input("x", trt.int32, (-1,))
    found = network.add_reduce(network.add_non_zero(x, trt.int32).get_output(0), trt.ReduceOperation.MAX, 3, False)
    loop = counted(network, found.get_output(0))
    mark(network, y=last(loop, counter(network, loop)))

    assert counts(network, {"x": np.int32([0, 1, 0, 1])}) == [3]


def test_values_for_which_a_run_fails_are_left_to_the_run(network):
    """More iterations than an output has rows, and a row that a table has not, are errors of the engine."""
    assert counts(count_is_an_input(), {"n": np.int32(100)}) == [100]
    n = network.add_input("n", trt.int32, ())
    row = network.add_gather(constant(network, np.int32([1, 2, 3])), n, 0).get_output(0)
    loop = counted(network, 2)
    mark(network, y=last(loop, combine(network, counter(network, loop), row)))

    assert counts(network, {"n": np.int32(9)}) == [2]


def test_inputs_that_do_not_fit_are_errors():
    with pytest.raises(trt.InputError, match="NL602"):
        counts(count_is_an_input(), {"m": np.int32(1)})


def test_limit_is_at_least_the_longest_known_count(network):
    bounded = counted(network, 20)
    loop = network.add_loop()
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, network.add_input("n", trt.int32, ()), Op.LESS), trt.TripLimit.WHILE)
    mark(network, y=last(bounded, counter(network, bounded)), z=last(loop, now))

    assert sorted(counts(network, {"n": np.int32(15)}, max_trips=9)) == [15, 20]
    with pytest.raises(trt.ExecutionError, match="executes more than 20 iterations"):
        counts(network, {"n": np.int32(21)}, max_trips=9)
