"""Every row of the table of loop semantics, with numbers computed by hand."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from tests.support.findings import certain_errors_ignored
from tests.support.networks import (
    CONCATENATE,
    COUNT,
    LAST,
    RAISING,
    REVERSE,
    WAYS,
    WHILE,
    F,
    Op,
    X,
    assert_outputs,
    both_limits,
    cast,
    combine,
    constant,
    count_is_an_input,
    counted,
    counter,
    delay_line,
    flipped,
    last,
    mark,
    nested,
    newton,
    run,
    running_sum,
    stacked,
    swap,
    table,
)

each_way = pytest.mark.parametrize("way", WAYS)
each_raising_way = pytest.mark.parametrize("way", RAISING)


def i32(*numbers):
    return np.int32(numbers)


def fails(way, network, inputs, what, layer):
    """Check that a run fails with a message that names a layer and the line of this file that added it."""
    with pytest.raises(trt.ExecutionError, match=re.escape(what)) as caught:
        run(way, network, inputs)
    (found,) = caught.value.findings
    assert found.code == "NL601"
    assert found.at.name == layer.name
    assert f"{layer.source_location}, {type(layer).__name__} {layer.name!r}" == found.where
    return found


# ---------------------------------------------------------------------------- trip counts


@each_way
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("count", "trips"), [(0, 0), (1, 1), (4, 4), (-1, 0), (-(2**31), 0)])
def test_count_is_the_number_of_trips(way, network, count, trips, dtype):
    loop = counted(network, count, dtype)

    assert_outputs(run(way, mark(network, y=last(loop, counter(network, loop)))), {"y": np.int32(trips)})


@each_way
@pytest.mark.parametrize(("count", "trips"), [(0, 0), (3, 3), (-5, 0)])
def test_count_may_be_an_input(way, count, trips):
    got = run(way, count_is_an_input(), {"n": np.int32(count)})

    assert got["y"] == 2**trips
    assert list(got["ys"]) == [1, 2, 4, 0, 0, 0, 0, 0][:trips] + [0] * (8 - trips)


@each_way
def test_count_may_be_int64(way, network):
    loop = counted(network, network.add_input("n", trt.int64, ()))

    got = run(way, mark(network, y=last(loop, counter(network, loop))), {"n": np.int64(7)})
    assert_outputs(got, {"y": np.int32(7)})


@each_way
@pytest.mark.parametrize(("first", "trips"), [(10, 0), (9, 1), (3, 7)])
def test_while_ends_before_the_first_trip_in_which_it_is_false(way, network, first, trips):
    loop = network.add_loop()
    now = counter(network, loop, first)
    loop.add_trip_limit(combine(network, now, 10, Op.LESS), WHILE)
    made = counter(network, loop)
    mark(network, y=last(loop, made), ys=stacked(loop, now, constant(network, 7, np.int32)))
    got = run(way, network)

    assert got["y"] == trips
    assert list(got["ys"]) == [*range(first, 10)] + [0] * (7 - trips)


@each_way
def test_while_that_is_false_outside_makes_no_trip(way, network):
    loop = network.add_loop()
    loop.add_trip_limit(network.add_input("c", trt.bool, ()), WHILE)

    got = run(way, mark(network, y=last(loop, counter(network, loop, 5))), {"c": np.bool_(False)})
    assert_outputs(got, {"y": np.int32(5)})


@each_way
def test_while_may_read_an_iterator(way, network):
    loop = network.add_loop()
    x = network.add_input("x", trt.bool, (4,))
    loop.add_trip_limit(loop.add_iterator(x).get_output(0), WHILE)
    mark(network, y=last(loop, counter(network, loop)))

    assert run(way, network, {"x": np.bool_([1, 1, 0, 1])})["y"] == 2


@each_way
def test_newton_ends_when_it_is_near_enough(way):
    got = run(way, newton(), {"x": np.float64(2)})

    assert abs(got["y"] - 2**0.5) < 1e-6
    assert got["n"] == 4


@each_way
@pytest.mark.parametrize(("count", "wanted"), [(-1, 1), (0, 1), (4, 16), (5, 32), (6, 32), (100, 32)])
def test_of_two_limits_the_first_to_be_reached_ends_the_loop(way, count, wanted):
    assert run(way, both_limits(20), {"n": np.int32(count)})["y"] == wanted


@each_way
def test_both_limits_may_be_known_while_building(way, network):
    loop = counted(network, 3)
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, 9, Op.LESS), WHILE)
    mark(network, y=last(loop, now), ys=stacked(loop, now, constant(network, 3, np.int32), REVERSE))

    assert_outputs(run(way, network), {"y": np.int32(3), "ys": i32(2, 1, 0)})


# ---------------------------------------------------------------------------- recurrences


@each_way
def test_last_value_after_no_trip_is_the_initial_value(way):
    got = run(way, running_sum(0), {"x": X})

    assert_outputs(got, {"y": F([0, 0, 0])})


@each_way
@pytest.mark.parametrize(("trips", "a", "b"), [(0, [1, 2], [3, 4]), (1, [3, 4], [1, 2]), (4, [1, 2], [3, 4])])
def test_all_recurrences_step_at_once(way, trips, a, b):
    got = run(way, swap(trips), {"x": F([1, 2]), "z": F([3, 4])})

    assert_outputs(got, {"a": F(a), "b": F(b)})


@each_way
def test_recurrence_of_a_recurrence_is_a_delay(way):
    assert_outputs(run(way, delay_line(), {"x": F([5, 6, 7, 8])}), {"y": F([0, 0, 5, 6])})


@each_way
@pytest.mark.parametrize(("trips", "wanted"), [(0, 1), (1, 9), (3, 9)])
def test_next_value_may_come_from_outside(way, network, trips, wanted):
    loop = counted(network, trips)
    state = loop.add_recurrence(constant(network, 1, np.int32))
    state.set_input(1, constant(network, 9, np.int32))

    assert run(way, mark(network, y=last(loop, state.get_output(0))))["y"] == wanted


@each_way
def test_recurrence_that_feeds_itself_stays(way, network):
    loop = counted(network, 3)
    state = loop.add_recurrence(constant(network, 4, np.int32))
    state.set_input(1, state.get_output(0))

    assert run(way, mark(network, y=last(loop, state.get_output(0))))["y"] == 4


STATES = [trt.float32, trt.float16, trt.bfloat16, trt.float64, trt.int32, trt.int64]


@each_way
@pytest.mark.parametrize("dtype", STATES)
@pytest.mark.parametrize("trips", [0, 3])
def test_state_of_every_number_type_keeps_its_type(way, network, dtype, trips):
    loop = counted(network, trips)
    state = loop.add_recurrence(network.add_input("x", dtype, (2,)))
    doubled = combine(network, state.get_output(0), state.get_output(0))
    state.set_input(1, doubled)
    length = constant(network, 3, np.int32)
    mark(network, y=last(loop, state.get_output(0)), ys=stacked(loop, doubled, length))
    x = np.array([1, 3]).astype(network.inputs[0].type.dtype)
    got = run(way, network, {"x": x})

    rows = np.array([[2, 6], [4, 12], [8, 24]]) if trips else np.zeros((3, 2))
    assert_outputs(got, {"y": (x * 2**trips).astype(x.dtype), "ys": rows.astype(x.dtype)})


@each_way
@pytest.mark.parametrize(("trips", "wanted"), [(0, True), (1, False), (2, True)])
def test_state_may_be_a_truth_value(way, network, trips, wanted):
    loop = counted(network, trips)
    state = loop.add_recurrence(network.add_input("x", trt.bool, ()))
    state.set_input(1, network.add_unary(state.get_output(0), trt.UnaryOperation.NOT).get_output(0))
    length = constant(network, 3, np.int32)
    mark(network, y=last(loop, state.get_output(0)), ys=stacked(loop, state.get_output(0), length))
    got = run(way, network, {"x": np.bool_(True)})

    assert_outputs(got, {"y": np.bool_(wanted), "ys": np.bool_([1, 0, 0][:trips] + [0] * (3 - trips))})


@each_way
def test_state_may_have_no_elements(way, network):
    loop = counted(network, 2)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (0, 2)))
    state.set_input(1, combine(network, state.get_output(0), 1))
    got = run(way, mark(network, y=last(loop, state.get_output(0))), {"x": np.zeros((0, 2), F)})

    assert_outputs(got, {"y": np.zeros((0, 2), F)})


# ---------------------------------------------------------------------------- iterators


def iterated(axis, reverse=False, trips=2, shape=(2, 3)):
    """y: the slices of x that an iterator reads, stacked."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, shape), axis, reverse)
    return mark(network, y=stacked(loop, iterator.get_output(0), constant(network, trips, np.int32)))


SIX = np.arange(6, dtype=F).reshape(2, 3)


@each_way
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_iterator_drops_the_axis_that_it_goes_along(way, axis):
    got = run(way, iterated(axis), {"x": SIX})

    assert_outputs(got, {"y": np.ascontiguousarray(SIX if axis in (0, -2) else SIX.T[:2])})


@each_way
def test_iterator_keeps_the_order_of_the_other_axes(way, network):
    x = np.arange(24, dtype=F).reshape(2, 3, 4)
    loop = counted(network, 4)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, x.shape), 2)
    mark(network, y=stacked(loop, iterator.get_output(0), constant(network, 4, np.int32)))

    assert_outputs(run(way, network, {"x": x}), {"y": np.ascontiguousarray(x.transpose(2, 0, 1))})


@each_way
@pytest.mark.parametrize(("trips", "wanted"), [(4, [4, 3, 2, 1]), (3, [3, 2, 1]), (1, [1]), (0, [])])
def test_reverse_iterator_starts_from_the_count_not_from_the_end(way, trips, wanted):
    assert_outputs(run(way, flipped(trips), {"x": F([1, 2, 3, 4])}), {"y": F(wanted)})


@each_way
def test_reverse_iterator_along_the_last_axis(way):
    assert_outputs(run(way, iterated(-1, True), {"x": SIX}), {"y": F([[1, 4], [0, 3]])})


@each_way
def test_reverse_iterator_starts_from_a_count_of_the_call(way, network):
    n = network.add_input("n", trt.int32, ())
    loop = counted(network, n)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (4,)), 0, True)
    mark(network, y=stacked(loop, iterator.get_output(0), constant(network, 4, np.int32)))
    got = run(way, network, {"n": np.int32(3), "x": F([1, 2, 3, 4])})

    assert_outputs(got, {"y": F([3, 2, 1, 0])})


@each_way
def test_reverse_iterator_starts_from_the_count_even_if_a_while_ends_the_loop(way, network):
    loop = counted(network, 4)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (4,)), 0, True)
    loop.add_trip_limit(combine(network, counter(network, loop), 2, Op.LESS), WHILE)
    mark(network, y=stacked(loop, iterator.get_output(0), constant(network, 4, np.int32), REVERSE))
    got = run(way, network, {"x": F([1, 2, 3, 4])})

    assert_outputs(got, {"y": F([3, 4, 0, 0])})


@each_way
def test_axis_may_be_set_later(way):
    network = iterated(0, trips=2)
    iterator = next(layer for layer in network if isinstance(layer, trt.IIteratorLayer))
    iterator.axis, iterator.reverse = 1, True

    assert_outputs(run(way, network, {"x": SIX}), {"y": F([[1, 4], [0, 3]])})


@each_raising_way
@pytest.mark.parametrize("reverse", [False, True])
def test_iterator_that_is_read_past_the_end_is_an_error(way, reverse):
    network = iterated(0, reverse, trips=3)
    network.get_input(0).shape = (-1, 3)
    iterator = next(layer for layer in network if isinstance(layer, trt.IIteratorLayer))

    found = fails(way, network, {"x": SIX}, "of axis 0, which has 2 elements", iterator)
    assert found.fix == "limit the loop to the length of the axis"


@each_way
def test_iterator_that_nothing_reads_may_pass_the_end(way, network):
    loop = counted(network, 3)
    loop.add_iterator(network.add_input("x", trt.float32, (2,)))
    mark(network, y=last(loop, counter(network, loop)))

    assert run(way, network, {"x": F([1, 2])})["y"] == 3


@each_way
def test_iterator_that_only_a_branch_not_taken_reads_may_pass_the_end(way, network):
    loop = counted(network, 3)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (2,)))
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, counter(network, loop), 2, Op.LESS))
    read = choice.add_output(combine(network, iterator.get_output(0), 1), constant(network, 9, F)).get_output(0)
    mark(network, y=stacked(loop, read, constant(network, 3, np.int32)))

    assert_outputs(run(way, network, {"x": F([1, 2])}), {"y": F([2, 3, 9])})


@each_way
@pytest.mark.parametrize("trips", [0, -1])
def test_axis_without_elements_is_read_in_no_trip(way, network, trips):
    loop = counted(network, trips)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (0, 2)))
    mark(network, y=stacked(loop, iterator.get_output(0), constant(network, 1, np.int32)))

    assert_outputs(run(way, network, {"x": np.zeros((0, 2), F)}), {"y": np.zeros((1, 2), F)})


@each_raising_way
def test_axis_without_elements_cannot_be_read(way, network):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (0,)))
    mark(network, y=stacked(loop, iterator.get_output(0), constant(network, 1, np.int32)))

    fails(way, network, {"n": np.int32(1), "x": np.zeros(0, F)}, "which has 0 elements", iterator)


@each_raising_way
@pytest.mark.parametrize("kind", ["constant", "input"])
def test_next_value_that_no_output_needs_is_not_computed(way, network, kind):
    loop = counted(network, 3 if kind == "constant" else network.add_input("n", trt.int32, ()))
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (2,)))
    state = loop.add_recurrence(constant(network, 0, F))
    state.set_input(1, combine(network, state.get_output(0), iterator.get_output(0)))
    mark(network, y=stacked(loop, state.get_output(0), constant(network, 3, np.int32)))
    inputs = {"x": F([1, 2])} | ({} if kind == "constant" else {"n": np.int32(3)})

    assert_outputs(run(way, network, inputs), {"y": F([0, 1, 3])})


@each_raising_way
@pytest.mark.parametrize("counted_too", [False, True])
def test_while_that_reads_past_the_end_is_an_error_and_no_endless_loop(way, network, counted_too):
    loop = counted(network, 5) if counted_too else network.add_loop()
    iterator = loop.add_iterator(network.add_input("x", trt.bool, (3,)))
    loop.add_trip_limit(iterator.get_output(0), WHILE)
    mark(network, y=last(loop, counter(network, loop)))

    fails(way, network, {"x": np.bool_([1, 1, 1])}, "of axis 0, which has 3 elements", iterator)


@each_way
def test_while_that_would_read_past_the_end_is_not_needed_after_the_count(way, network):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    loop.add_trip_limit(loop.add_iterator(network.add_input("x", trt.bool, (3,))).get_output(0), WHILE)
    mark(network, y=last(loop, counter(network, loop)))

    assert run(way, network, {"n": np.int32(3), "x": np.bool_([1, 1, 1])})["y"] == 3


@each_raising_way
def test_while_that_follows_from_an_error_is_an_error_and_no_endless_loop(way, network):
    first, second = counted(network, network.add_input("n", trt.int32, ())), network.add_loop()
    iterator = first.add_iterator(network.add_input("x", trt.bool, (1,)))
    state = first.add_recurrence(constant(network, True, np.bool_))
    state.set_input(1, iterator.get_output(0))
    second.add_trip_limit(last(first, state.get_output(0)), WHILE)
    mark(network, y=last(second, counter(network, second)))

    fails(way, network, {"n": np.int32(2), "x": np.bool_([1])}, "of axis 0, which has 1 elements", iterator)


@each_raising_way
def test_error_in_one_state_is_none_in_another(way, network):
    loop = counted(network, 3)
    iterator = loop.add_iterator(network.add_input("x", trt.int32, (1,)))
    state = loop.add_recurrence(constant(network, 0, np.int32))
    state.set_input(1, iterator.get_output(0))
    delayed = loop.add_recurrence(constant(network, 9, np.int32))
    delayed.set_input(1, state.get_output(0))
    again = loop.add_recurrence(constant(network, 8, np.int32))
    again.set_input(1, delayed.get_output(0))
    mark(network, y=last(loop, again.get_output(0)))

    # element 3 is what the iterator read in iteration 0, before the error
    assert run(way, network, {"x": np.int32([7])})["y"] == 7


# ---------------------------------------------------------------------------- loop outputs: LAST_VALUE


@each_way
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_last_value_of_a_plain_layer_is_one_past_the_last_trip(way, network, trips):
    loop = counted(network, trips)
    squared = combine(network, counter(network, loop), 10, Op.PROD)

    assert run(way, mark(network, y=last(loop, squared)))["y"] == 10 * trips


@each_way
def test_last_value_of_an_invariant_is_itself(way, network):
    loop = counted(network, 2)

    got = run(way, mark(network, y=last(loop, network.add_input("x", trt.float32, (2,)))), {"x": F([1, 2])})
    assert_outputs(got, {"y": F([1, 2])})


@each_way
def test_last_value_of_an_iterator_is_the_element_after_the_last_that_was_read(way, network):
    loop = counted(network, 2)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (3,)))

    assert run(way, mark(network, y=last(loop, iterator.get_output(0))), {"x": F([1, 2, 3])})["y"] == 3


@each_raising_way
@pytest.mark.parametrize("reverse", [False, True])
def test_last_value_of_an_iterator_at_the_end_of_its_axis_is_an_error(way, network, reverse):
    loop = counted(network, 3)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (-1,)), 0, reverse)
    mark(network, y=last(loop, iterator.get_output(0)))

    fails(way, network, {"x": F([1, 2, 3])}, "of axis 0, which has 3 elements", iterator)


@each_raising_way
def test_error_of_one_output_is_not_forgotten_for_the_next(way, network):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    now = counter(network, loop)
    short = loop.add_loop_output(now, CONCATENATE)
    short.set_input(1, constant(network, 1, np.int32))
    mark(network, y=short.get_output(0), z=last(loop, now), w=last(loop, combine(network, now, 1)))

    fails(way, network, {"n": np.int32(2)}, "has room for 1 elements", short)


# ---------------------------------------------------------------------------- loop outputs: CONCATENATE and REVERSE


@each_way
@pytest.mark.parametrize(
    ("kind", "length", "wanted"),
    [
        (CONCATENATE, 3, [1, 2, 3]),
        (CONCATENATE, 5, [1, 2, 3, 0, 0]),
        (REVERSE, 3, [3, 2, 1]),
        (REVERSE, 5, [3, 2, 1, 0, 0]),
    ],
)
@pytest.mark.parametrize("count", ["constant", "input"])
def test_all_values_come_first_and_zeros_last(way, network, kind, length, wanted, count):
    loop = counted(network, 3 if count == "constant" else network.add_input("n", trt.int32, ()))
    tensor = stacked(loop, counter(network, loop, 1), constant(network, length, np.int32), kind)
    inputs = {} if count == "constant" else {"n": np.int32(3)}

    assert_outputs(run(way, mark(network, y=tensor), inputs), {"y": np.int32(wanted)})


@each_way
@pytest.mark.parametrize("kind", [CONCATENATE, REVERSE])
@pytest.mark.parametrize("is_while", [False, True])
def test_what_is_past_the_last_trip_is_the_least_number_of_a_type_without_zero(way, network, kind, is_while):
    dtype = jnp.float8_e8m0fnu
    loop = counted(network, 1)
    state = loop.add_recurrence(constant(network, 2, dtype))
    state.set_input(1, state.get_output(0))
    if is_while:
        loop.add_trip_limit(constant(network, np.bool_(True)), WHILE)
    mark(network, y=stacked(loop, state.get_output(0), constant(network, 2, np.int32), kind))

    assert run(way, network)["y"].view(np.uint8).tolist() == [128, 0]


@each_raising_way
@pytest.mark.parametrize("kind", [CONCATENATE, REVERSE])
@pytest.mark.parametrize("count", ["constant", "input"])
@pytest.mark.parametrize("length", [0, 2])
def test_length_below_the_number_of_trips_is_an_error(way, network, kind, count, length):
    loop = counted(network, 3 if count == "constant" else network.add_input("n", trt.int32, ()))
    output = loop.add_loop_output(counter(network, loop), kind)
    output.name = "history"
    output.set_input(1, constant(network, length, np.int32))
    mark(network, y=output.get_output(0))
    inputs = {} if count == "constant" else {"n": np.int32(3)}

    with certain_errors_ignored():
        found = fails(way, network, inputs, f"'history' has room for {length} elements, and", output)
    assert found.fix == "give the output a length that is at least the trip count"


@each_way
@pytest.mark.parametrize("kind", [CONCATENATE, REVERSE])
@pytest.mark.parametrize("count", ["constant", "input"])
def test_length_may_be_zero_for_no_trips(way, network, kind, count):
    loop = counted(network, 0 if count == "constant" else network.add_input("n", trt.int32, ()))
    mark(network, y=stacked(loop, counter(network, loop), constant(network, 0, np.int64), kind))
    inputs = {} if count == "constant" else {"n": np.int32(0)}

    assert_outputs(run(way, network, inputs), {"y": i32()})


@each_way
@pytest.mark.parametrize("kind", [CONCATENATE, REVERSE])
@pytest.mark.parametrize(("axis", "place"), [(0, 0), (1, 1), (2, 2), (-1, 2), (-2, 1), (-3, 0)])
@pytest.mark.parametrize("count", ["constant", "input"])
def test_new_axis_goes_where_it_is_asked_for(way, network, kind, axis, place, count):
    loop = counted(network, 2 if count == "constant" else network.add_input("n", trt.int32, ()))
    state = loop.add_recurrence(constant(network, np.arange(6, dtype=np.int32).reshape(2, 3)))
    state.set_input(1, combine(network, state.get_output(0), 10))
    mark(network, y=stacked(loop, state.get_output(0), constant(network, 3, np.int32), kind, axis))
    got = run(way, network, {} if count == "constant" else {"n": np.int32(2)})

    rows = [np.arange(6).reshape(2, 3), 10 + np.arange(6).reshape(2, 3)]
    rows = [*(rows if kind is CONCATENATE else rows[::-1]), np.zeros((2, 3))]
    assert_outputs(got, {"y": np.stack(rows, place).astype(np.int32)})


@each_way
def test_value_from_outside_is_stacked_once_a_trip(way, network):
    loop = counted(network, 2)
    x = network.add_input("x", trt.float32, (2,))
    mark(network, y=stacked(loop, x, constant(network, 3, np.int32)))

    assert_outputs(run(way, network, {"x": F([1, 2])}), {"y": F([[1, 2], [1, 2], [0, 0]])})


@each_way
def test_one_tensor_may_leave_in_several_ways(way, network):
    loop = counted(network, 2)
    now = counter(network, loop, 1)
    length = constant(network, 2, np.int32)
    mark(network, a=last(loop, now), b=stacked(loop, now, length), c=stacked(loop, now, length, REVERSE))

    assert_outputs(run(way, network), {"a": np.int32(3), "b": i32(1, 2), "c": i32(2, 1)})


@each_way
def test_length_makes_a_last_value_a_concatenation(way, network):
    loop = counted(network, 2)
    output = loop.add_loop_output(counter(network, loop, 1), LAST)
    assert output.get_output(0).shape == ()
    output.set_input(1, constant(network, 2, np.int32))

    assert output.kind is CONCATENATE
    assert output.get_output(0).shape == (2,)
    assert_outputs(run(way, mark(network, y=output.get_output(0))), {"y": i32(1, 2)})


def test_length_leaves_a_reversed_output_reversed(network):
    loop = counted(network, 2)
    output = loop.add_loop_output(counter(network, loop, 1), REVERSE)
    output.set_input(1, constant(network, 2, np.int32))

    assert output.kind is REVERSE


@each_way
def test_concatenation_in_a_loop_that_ends_by_itself_is_padded(way, network):
    loop = network.add_loop()
    now = counter(network, loop, 1)
    loop.add_trip_limit(combine(network, now, 3, Op.LESS), WHILE)
    length = constant(network, 4, np.int32)
    mark(network, a=stacked(loop, now, length), b=stacked(loop, now, length, REVERSE))

    assert_outputs(run(way, network), {"a": i32(1, 2, 0, 0), "b": i32(2, 1, 0, 0)})


@each_way
def test_length_may_be_below_a_count_that_a_while_cuts_short(way, network):
    loop = counted(network, 5)
    now = counter(network, loop, 1)
    loop.add_trip_limit(combine(network, now, 3, Op.LESS), WHILE)
    mark(network, y=stacked(loop, now, constant(network, 3, np.int32)))

    assert_outputs(run(way, network), {"y": i32(1, 2, 0)})


# ---------------------------------------------------------------------------- wiring


@each_way
def test_inputs_may_be_rewired_to_tensors_made_later(way, network):
    placeholder = constant(network, 0, np.int32)
    loop = network.add_loop()
    limit = loop.add_trip_limit(placeholder, COUNT)
    state = loop.add_recurrence(placeholder)
    output = loop.add_loop_output(state.get_output(0), LAST)
    mark(network, y=output.get_output(0))
    step = constant(network, 2, np.int32)
    state.set_input(1, combine(network, state.get_output(0), step))
    state.set_input(0, constant(network, 100, np.int32))
    limit.set_input(0, combine(network, step, 1))

    assert run(way, network)["y"] == 106


@each_way
def test_output_may_be_rewired_to_a_tensor_made_later(way, network):
    loop = counted(network, 3)
    now = counter(network, loop)
    output = loop.add_loop_output(now, CONCATENATE)
    output.set_input(0, combine(network, now, 10, Op.PROD))
    output.set_input(1, constant(network, 3, np.int32))

    assert_outputs(run(way, mark(network, y=output.get_output(0))), {"y": i32(0, 10, 20)})


# ---------------------------------------------------------------------------- nested loops


@each_way
@pytest.mark.parametrize(("n", "wanted"), [(0, 0), (1, 1), (2, 4), (5, 35)])
def test_inner_loop_may_be_limited_by_the_state_of_the_outer(way, n, wanted):
    assert run(way, nested(), {"n": np.int32(n)})["y"] == wanted


@each_way
def test_outputs_of_an_inner_loop_are_stacked_by_the_outer(way):
    got = run(way, table(), {"x": F([1, 2]), "z": F([3, 4, 5])})

    assert_outputs(got, {"y": F([[3, 4, 5], [6, 8, 10]])})


@each_way
def test_inner_loop_may_go_through_the_slice_of_the_outer(way, network):
    outer, inner = counted(network, 2), counted(network, 3)
    row = outer.add_iterator(network.add_input("x", trt.float32, (2, 3))).get_output(0)
    total = inner.add_recurrence(constant(network, 0, F))
    total.set_input(1, combine(network, total.get_output(0), inner.add_iterator(row).get_output(0)))
    mark(network, y=stacked(outer, last(inner, total.get_output(0)), constant(network, 2, np.int32)))

    assert_outputs(run(way, network, {"x": SIX}), {"y": F([3, 12])})


@each_way
def test_inner_loop_may_start_from_the_state_of_the_outer(way, network):
    outer, inner = counted(network, 3), counted(network, 2)
    state = outer.add_recurrence(constant(network, 1, np.int32))
    part = inner.add_recurrence(state.get_output(0))
    part.set_input(1, combine(network, part.get_output(0), part.get_output(0)))
    state.set_input(1, combine(network, last(inner, part.get_output(0)), 1))

    # 1 -> 4 + 1 = 5 -> 21 -> 85
    assert run(way, mark(network, y=last(outer, state.get_output(0))))["y"] == 85


@each_way
def test_all_values_of_an_inner_loop_may_be_gone_through_again(way, network):
    outer, first, second = counted(network, 2), counted(network, 3), counted(network, 3)
    base = counter(network, outer, 1)
    row = stacked(first, combine(network, counter(network, first), base, Op.PROD), constant(network, 3, np.int32))
    total = second.add_recurrence(constant(network, 0, np.int32))
    total.set_input(1, combine(network, total.get_output(0), second.add_iterator(row, 0, True).get_output(0)))
    mark(network, y=stacked(outer, last(second, total.get_output(0)), constant(network, 2, np.int32)))

    # 0 + 1 + 2 and 0 + 2 + 4
    assert_outputs(run(way, network), {"y": i32(3, 6)})


@each_way
def test_loop_may_go_through_all_values_of_another(way, network):
    first, second = counted(network, 3), counted(network, 3)
    squares = combine(network, counter(network, first), counter(network, first), Op.PROD)
    row = stacked(first, squares, constant(network, 3, np.int32), REVERSE)
    again = stacked(second, second.add_iterator(row).get_output(0), constant(network, 3, np.int32), REVERSE)

    assert_outputs(run(way, mark(network, y=row, z=again)), {"y": i32(4, 1, 0), "z": i32(0, 1, 4)})


@each_way
def test_inner_while_may_read_the_outer_loop(way, network):
    outer, inner = counted(network, 4), network.add_loop()
    base = counter(network, outer)
    now = counter(network, inner)
    inner.add_trip_limit(combine(network, combine(network, now, now, Op.PROD), base, Op.LESS), WHILE)
    mark(network, y=stacked(outer, last(inner, now), constant(network, 4, np.int32)))

    # the least k whose square is not below 0, 1, 2, 3
    assert_outputs(run(way, network), {"y": i32(0, 1, 2, 2)})


@each_way
def test_outer_while_may_read_an_inner_loop(way, network):
    outer = network.add_loop()
    base = counter(network, outer)
    inner = counted(network, base)
    power = inner.add_recurrence(constant(network, 1, np.int32))
    power.set_input(1, combine(network, power.get_output(0), 2, Op.PROD))
    outer.add_trip_limit(combine(network, last(inner, power.get_output(0)), 100, Op.LESS), WHILE)

    assert run(way, mark(network, y=last(outer, base)))["y"] == 7


@each_raising_way
def test_error_in_an_inner_loop_names_its_layer(way, network):
    outer = counted(network, 3)
    inner = counted(network, counter(network, outer))
    short = inner.add_loop_output(counter(network, inner), CONCATENATE)
    short.set_input(1, constant(network, 1, np.int32))
    mark(network, y=stacked(outer, short.get_output(0), constant(network, 3, np.int32)))

    fails(way, network, {}, "has room for 1 elements", short)


# ---------------------------------------------------------------------------- random numbers


@pytest.mark.parametrize("way", ["engine", "to_jax"])
@pytest.mark.parametrize("op", [trt.FillOperation.RANDOM_UNIFORM, trt.FillOperation.RANDOM_NORMAL])
def test_random_numbers_are_drawn_anew_in_each_trip_and_alike_everywhere(way, network, op):
    outer, inner = counted(network, 2), counted(network, 3)
    zero = combine(network, combine(network, counter(network, inner), counter(network, outer)), 0, Op.PROD)
    alpha = cast(network, zero, trt.float32)
    fill = network.add_fill((4,), op)
    fill.set_input(1, alpha)
    fill.set_input(2, constant(network, 1, F))
    row = stacked(inner, fill.get_output(0), constant(network, 3, np.int32))
    mark(network, y=stacked(outer, row, constant(network, 2, np.int32)))
    got, meant = run(way, network)["y"], run("reference", network)["y"]

    np.testing.assert_array_equal(got, meant)
    assert len(np.unique(got)) == got.size


@each_way
def test_random_numbers_that_do_not_vary_are_drawn_once(way, network):
    loop = counted(network, 2)
    drawn = network.add_fill((4,), trt.FillOperation.RANDOM_UNIFORM).get_output(0)
    got = run(way, mark(network, y=stacked(loop, drawn, constant(network, 2, np.int32))))["y"]

    np.testing.assert_array_equal(got[0], got[1])


# ---------------------------------------------------------------------------- dead layers


@each_way
def test_errors_that_nothing_needs_never_appear(way, network):
    loop = counted(network, 3)
    now = counter(network, loop)
    short = loop.add_loop_output(now, CONCATENATE)
    short.set_input(1, constant(network, 1, np.int32))
    loop.add_recurrence(constant(network, 0, F)).set_input(
        1, loop.add_iterator(network.add_input("x", trt.float32, (1,))).get_output(0)
    )
    mark(network, y=last(loop, now))

    assert run(way, network, {"x": F([1])})["y"] == 3


@each_way
def test_loop_without_an_output_disappears(way, network):
    x = network.add_input("x", trt.float32, (2,))
    endless = network.add_loop()
    endless.add_trip_limit(constant(network, True, np.bool_), WHILE)
    counter(network, endless)

    assert_outputs(run(way, mark(network, y=combine(network, x, 1)), {"x": F([1, 2])}), {"y": F([2, 3])})


# ---------------------------------------------------------------------------- errors of calls


@pytest.mark.parametrize(
    "call",
    [
        lambda loop, x: loop.add_trip_limit(3, COUNT),
        lambda loop, x: loop.add_trip_limit(x, 0),
        lambda loop, x: loop.add_trip_limit(x, LAST),
        lambda loop, x: loop.add_iterator([1, 2]),
        lambda loop, x: loop.add_iterator(x, 0.5),
        lambda loop, x: loop.add_iterator(x, 0, "yes"),
        lambda loop, x: loop.add_recurrence(0),
        lambda loop, x: loop.add_loop_output(x, "LAST_VALUE"),
        lambda loop, x: loop.add_loop_output(None, LAST),
        lambda loop, x: loop.add_recurrence(x).set_input(1, None),
    ],
)
def test_wrong_python_type_is_refused_at_the_call(network, call):
    x = network.add_input("x", trt.float32, (2,))
    with pytest.raises(TypeError):
        call(network.add_loop(), x)


def test_refused_layer_is_in_no_loop(network):
    loop = network.add_loop()
    with pytest.raises(TypeError):
        loop.add_iterator(3)

    assert (loop.layers, len(network)) == ([], 0)


def test_recurrence_has_its_second_input_when_it_is_set(network):
    state = network.add_loop().add_recurrence(constant(network, 0, F))
    assert (state.num_inputs, state.get_input(1)) == (1, None)
    state.set_input(1, state.get_output(0))

    assert (state.num_inputs, state.get_input(1)) == (2, state.get_output(0))


@pytest.mark.parametrize("dtype", [jnp.float16, np.int64])
def test_type_of_a_recurrence_is_that_of_its_initial_value(network, dtype):
    state = network.add_loop().add_recurrence(constant(network, [1, 2], dtype)).get_output(0)

    assert (state.shape, state.type.dtype) == ((2,), np.dtype(dtype))


def test_boundary_layers_know_their_loop(network):
    loop = counted(network, 1)
    counter(network, loop)

    assert all(layer.loop is loop for layer in loop.layers)
    assert [type(layer) for layer in loop.layers] == [trt.ITripLimitLayer, trt.IRecurrenceLayer]
