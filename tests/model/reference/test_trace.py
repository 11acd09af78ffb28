"""Traces: any element of any tensor, and which of them the outputs needed."""

import numpy as np
import pytest

import netloop as trt
from tests.support.nests import NESTS, inputs_of
from tests.support.networks import (
    WHILE,
    F,
    Op,
    chain,
    chain_in_loop,
    choice,
    combine,
    constant,
    counted,
    counter,
    deep,
    last,
    mark,
    nested,
    running_sum,
    stacked,
    table,
)

X = np.arange(15, dtype=F).reshape(5, 3)


@pytest.fixture
def three(network):
    """A loop 'steps' of three iterations: 'now' counts from 0; 'next', and 'dead', which is not live, from 1."""
    loop = counted(network, 3)
    loop.name = "steps"
    now = counter(network, loop)
    now.name, now.producer.inputs[1].name = "now", "next"
    combine(network, now, 1).name = "dead"
    return mark(network, y=stacked(loop, now, constant(network, 3, np.int32)))


def endless(network):
    """A loop 'steps' whose WHILE is always true; 'now' counts."""
    loop = network.add_loop()
    loop.name = "steps"
    now = counter(network, loop)
    now.name = "now"
    loop.add_trip_limit(combine(network, now, -1, Op.GREATER), WHILE)
    return mark(network, y=last(loop, now))


def numbers(nested):
    """Nested lists of arrays as nested lists of numbers."""
    return [numbers(value) for value in nested] if isinstance(nested, list) else nested.tolist()


# ---------------------------------------------------------------------------- elements


def test_element_is_an_array(three):
    element = trt.trace(three, {})["now"][2]

    assert type(element) is np.ndarray
    assert (element, element.dtype, element.shape) == (2, np.int32, ())


def test_slice_is_a_list_of_elements(three):
    assert numbers(trt.trace(three, {})["now"][0:2]) == [0, 1]


def test_slice_ends_with_the_last_iteration(three):
    assert numbers(trt.trace(three, {})["now"][1:100]) == [1, 2]


def test_negative_index_counts_from_the_last_iteration(three):
    assert trt.trace(three, {})["now"][-1] == 2


def test_index_may_go_beyond_the_last_iteration(three):
    assert trt.trace(three, {})["now"][100] == 100


def test_sequence_has_the_length_of_its_loop(three):
    assert len(trt.trace(three, {})["now"]) == 3


def test_sequence_can_be_iterated_over(three):
    assert numbers(list(trt.trace(three, {})["now"])) == [0, 1, 2]


def test_tensor_in_two_loops_has_two_indices():
    network = table()
    product = next(layer.outputs[0] for layer in network if isinstance(layer, trt.IElementWiseLayer))
    sequence = trt.trace(network, {"x": F([1, 2]), "z": F([3, 4, 5])})[product]

    assert sequence[1, 2] == 10
    assert numbers(sequence[1]) == numbers(sequence[1, :]) == [6, 8, 10]
    assert numbers(sequence[:, 1]) == [4, 8]
    assert numbers(sequence[:, ::-1]) == [[5, 4, 3], [10, 8, 6]]


def test_rows_of_a_loop_in_a_loop_may_be_of_several_lengths():
    network = nested()
    inner = network.loops[1].boundary(trt.IRecurrenceLayer)[0].get_output(0)
    trace = trt.trace(network, {"n": np.int32(3)})

    assert numbers(trace[inner][:]) == [[0], [0, 1], [0, 1, 3]]


def test_tensor_outside_of_all_loops_has_a_value():
    trace = trt.trace(running_sum(), {"x": X})

    assert trace["y"].value.tolist() == trace["y"][()].tolist() == [9, 12, 15]
    assert trace["x"].value.tolist() == X.tolist()


def test_outputs_are_those_of_the_evaluation():
    network = running_sum()

    assert trt.trace(network, {"x": X}).outputs["y"].tolist() == trt.evaluate(network, {"x": X})["y"].tolist()


def test_edit_of_an_element_does_not_reach_the_trace(three):
    trace = trt.trace(three, {})
    trace["now"][1][...] = 7

    assert trace["now"][1] == 1


def test_edit_of_the_network_does_not_reach_the_trace(three):
    trace = trt.trace(three, {})
    (dead,) = [layer for layer in three if layer.outputs and layer.outputs[0].name == "dead"]
    dead.op = Op.PROD

    assert trace["dead"][5] == 6


# ---------------------------------------------------------------------------- laziness


def test_trace_knows_which_elements_the_outputs_needed(three):
    trace = trt.trace(three, {})

    assert trace["now"].computed == [0, 1, 2]
    assert trace["next"].computed == [0, 1]


def test_element_that_was_only_asked_for_is_none_that_the_outputs_needed(three):
    trace = trt.trace(three, {})

    assert trace["now"][7] == 7
    assert trace["now"].computed == [0, 1, 2]


def test_branch_not_taken_was_not_computed():
    network = choice()
    (doubled,) = [layer.outputs[0] for layer in network if isinstance(layer, trt.IElementWiseLayer)]
    trace = trt.trace(network, {"c": np.bool_(False), "x": F([1, 2, 3])})

    assert trace[doubled].computed == []
    assert trace[doubled].value.tolist() == [2, 4, 6]


def test_iterations_of_two_loops_are_tuples():
    network = table()
    product = next(layer.outputs[0] for layer in network if isinstance(layer, trt.IElementWiseLayer))
    trace = trt.trace(network, {"x": F([1, 2]), "z": F([3, 4, 5])})

    assert trace[product].computed == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_first_elements_of_an_endless_sequence_are_there(network):
    loop = network.add_loop()
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, -1, Op.GREATER), WHILE)
    mark(network, y=constant(network, 1, np.int32))

    assert numbers(trt.trace(network, {})[now][:4]) == [0, 1, 2, 3]


# ---------------------------------------------------------------------------- what no output needs


def test_tensor_that_no_output_needs_has_elements(three):
    dead = trt.trace(three, {})["dead"]

    assert numbers(dead[:]) == [1, 2, 3]
    assert dead.computed == []


def test_loop_that_no_output_needs_has_trips(network):
    outer, inner = counted(network, 2), network.add_loop()
    inner.add_trip_limit(counter(network, outer), trt.TripLimit.COUNT)
    last(inner, counter(network, inner))
    mark(network, y=last(outer, counter(network, outer)))

    assert trt.trace(network, {}).trips(inner) == [0, 1]


def test_tensor_that_no_output_needs_and_that_mixes_loops_is_refused(network):
    one, two = counter(network, counted(network, 2)), counter(network, counted(network, 2))
    mixed = combine(network, one, two)
    mark(network, y=last(network.loops[0], one))
    trace = trt.trace(network, {})
    with pytest.raises(trt.NetworkError) as caught:
        trace[mixed]

    assert [finding.code for finding in caught.value.findings] == ["NL211"]


# ---------------------------------------------------------------------------- trips


def test_trips_of_a_loop(three):
    assert trt.trace(three, {}).trips("steps") == 3


def test_trip_count_of_an_inner_loop_is_a_number_for_each_outer_iteration():
    network = nested()
    trace = trt.trace(network, {"n": np.int32(4)})

    assert trace.trips(network.loops[1]) == [1, 2, 3, 4]
    assert trace.trips(network.loops[1], 2) == 3


def test_too_many_outer_iterations_are_refused(three):
    with pytest.raises(IndexError, match="'steps' has 0 loops around it, and was given 1 iterations"):
        trt.trace(three, {}).trips("steps", 0)


# ---------------------------------------------------------------------------- printing


def test_sequence_prints_type_loop_trip_count_and_computed_elements(three):
    trace = trt.trace(three, {})

    assert repr(trace["now"]) == "now: int32[], in loop 'steps', 3 iterations, computed 0..2"
    assert repr(trace["dead"]) == "dead: int32[], in loop 'steps', not computed"
    assert repr(trace["y"]) == "y: int32[3], in no loop, computed"


def test_sequence_of_nested_loops_prints_their_names():
    network = table()
    network.loops[0].name, network.loops[1].name = "rows", "columns"
    product = next(layer.outputs[0] for layer in network if isinstance(layer, trt.IElementWiseLayer))
    product.name = "product"
    trace = trt.trace(network, {"x": F([1, 2]), "z": F([3, 4, 5])})

    assert repr(trace["product"]) == "product: float32[], in loops 'rows', 'columns', computed 6 elements"


# ---------------------------------------------------------------------------- errors


def test_error_of_the_outputs_is_kept_with_what_was_computed_before(network):
    loop = counted(network, 5)
    row = loop.add_iterator(network.add_input("x", trt.float32, (-1,))).get_output(0)
    mark(network, y=stacked(loop, row, constant(network, 5, np.int32)))
    trace = trt.trace(network, {"x": F([1, 2, 3])})

    assert isinstance(trace.error, trt.ExecutionError)
    assert trace.outputs == {}
    assert trace[row].computed == [0, 1, 2]
    with pytest.raises(trt.ExecutionError, match="reads past the end of axis 0") as caught:
        trace[row][4]
    assert __file__ in caught.value.findings[0].where


def test_assertion_that_does_not_hold_is_the_error(network):
    network.add_assertion(network.add_input("c", trt.bool, ()), "c holds")
    mark(network, y=constant(network, 1, np.int32))

    assert "c holds" in str(trt.trace(network, {"c": np.bool_(False)}).error)


def test_unknown_name_brings_the_nearest_one(three):
    with pytest.raises(trt.InputError, match=r"(?s)the network has no tensor 'nex'.*did you mean 'next'"):
        trt.trace(three, {})["nex"]


def test_unknown_loop_brings_the_nearest_one(three):
    with pytest.raises(trt.InputError, match=r"(?s)the network has no loop 'step'.*did you mean 'steps'"):
        trt.trace(three, {}).trips("step")


def test_name_of_two_tensors_is_refused(three):
    combine(three, three.outputs[0], 1).name = "now"
    with pytest.raises(trt.InputError, match="2 tensors are called 'now'"):
        trt.trace(three, {})["now"]


def test_tensor_of_another_network_is_refused(three):
    with pytest.raises(trt.InputError, match="tensor 'x' was not in the network"):
        trt.trace(three, {})[running_sum().inputs[0]]


def test_layer_is_no_tensor(three):
    with pytest.raises(TypeError, match=r"give its output, layer.get_output\(0\)"):
        trt.trace(three, {})[three[0]]


def test_too_many_indices_are_refused(three):
    with pytest.raises(IndexError, match="'now' varies in 1 loops, and was given 2 indices"):
        trt.trace(three, {})["now"][1, 2]


def test_index_before_the_first_iteration_is_refused(three):
    with pytest.raises(IndexError, match="'steps' makes 3 iterations, and was asked for iteration -4"):
        trt.trace(three, {})["now"][-4]


def test_sequence_has_no_single_value(three):
    with pytest.raises(IndexError, match="varies in 'steps'"):
        _ = trt.trace(three, {})["now"].value


# ---------------------------------------------------------------------------- max_trips


@pytest.mark.parametrize("run", [trt.evaluate, lambda *given, **named: trt.trace(*given, **named).trips("steps")])
def test_endless_loop_is_an_error_with_max_trips(network, run):
    endless(network)
    with pytest.raises(trt.ExecutionError) as caught:
        run(network, {}, max_trips=5)

    (found,) = caught.value.findings
    assert (found.code, found.what) == ("NL609", "'steps' executes more than 5 iterations")
    assert found.where == f"{network.loops[0].source_location}, ILoop 'steps'"


def test_elements_of_an_endless_loop_can_be_looked_at(network):
    trace = trt.trace(endless(network), {}, max_trips=5)

    assert "executes more than 5 iterations" in str(trace.error)
    assert trace["now"].computed == [0, 1, 2, 3, 4, 5]
    assert trace["now"][8] == 8


@pytest.mark.parametrize("trips", [3, 4])
def test_loop_may_make_max_trips(three, trips):
    assert trt.evaluate(three, {}, max_trips=trips)["y"].tolist() == [0, 1, 2]


def test_count_above_max_trips_is_an_error(three):
    with pytest.raises(trt.ExecutionError, match="'steps' executes more than 2 iterations"):
        trt.evaluate(three, {}, max_trips=2)


@pytest.mark.parametrize("wrong", ["7", 2.0, True])
def test_max_trips_is_an_int(three, wrong):
    with pytest.raises(TypeError, match="max_trips must be an int, not"):
        trt.evaluate(three, {}, max_trips=wrong)


def test_max_trips_is_not_negative(three):
    with pytest.raises(ValueError, match="max_trips must be 0 to"):
        trt.trace(three, {}, max_trips=-1)


# ---------------------------------------------------------------------------- length and depth


def test_element_after_ten_thousand_iterations():
    network = chain_in_loop(1, 10_000)
    state = network.loops[0].boundary(trt.IRecurrenceLayer)[0].get_output(0)

    assert trt.trace(network, {"x": F([1, 2])})[state][9_999].tolist() == [-1, -2]


def test_element_in_a_hundred_loops():
    network = deep(100, 1)
    states = [loop.boundary(trt.IRecurrenceLayer)[0].get_output(0) for loop in network.loops]
    trace = trt.trace(network, {"x": np.int64(5)})

    assert trace[states[-1]][(0,) * 100] == 5
    assert len(trace[states[-1]].loops) == 100


def test_element_below_ten_thousand_layers():
    network = chain(10_000)
    dead = combine(network, network.outputs[0], 1)

    assert trt.trace(network, {"x": F([1, 2])})[dead].value.tolist() == [2, 3]


def test_trace_of_a_deep_nest_has_an_index_for_each_loop():
    network = NESTS["loops"](400)
    innermost = network.loops[-1].boundary(trt.IRecurrenceLayer)[0].get_output(0)
    trace = trt.trace(network, inputs_of(network))
    found, trips = trace[innermost][:], trace.trips(network.loops[-1])
    for _ in network.loops:
        (found,) = found[:1]
    for _ in network.loops[1:]:
        (trips,) = trips

    assert (found, trips) == (5, 1)
