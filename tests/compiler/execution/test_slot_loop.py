"""What slots keep, mask and send, derived from the region tree."""

import numpy as np
import pytest

import netloop as trt
from netloop.model.check import require_valid
from netloop.model.nest import LoopStep
from tests.support.devices import assert_allclose
from tests.support.examples import mostly_slow
from tests.support.findings import certain_errors_ignored
from tests.support.networks import (
    REVERSE,
    WHILE,
    F,
    Op,
    combine,
    constant,
    counted,
    counter,
    last,
    mark,
    stacked,
)
from tests.support.random_networks import outcome, random_network


def collatz_of_each(conditional=False):
    """y: the sum of the lengths of the Collatz sequences of n, n - 1, ..., 1; that of 0 has no end."""
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    number, total = (
        loop.add_recurrence(network.add_input("n", trt.int32, ())),
        loop.add_recurrence(constant(network, 0, np.int32)),
    )
    now = number.get_output(0)
    loop.add_trip_limit(combine(network, now, 0, Op.GREATER), WHILE)
    number.set_input(1, combine(network, now, 1, Op.SUB))
    inner = network.add_loop()
    inner.name = "collatz"
    state = inner.add_recurrence(now)
    value = state.get_output(0)
    one = combine(network, value, 1, Op.EQUAL)
    inner.add_trip_limit(network.add_unary(one, trt.UnaryOperation.NOT).get_output(0), WHILE)
    half = combine(network, value, 2, Op.FLOOR_DIV)
    is_even = combine(network, combine(network, half, 2, Op.PROD), value, Op.EQUAL)
    more = combine(network, combine(network, value, 3, Op.PROD), 1)
    state.set_input(1, network.add_select(is_even, half, more).get_output(0))
    length = last(inner, counter(network, inner))
    if conditional:
        choice = network.add_if_conditional()
        choice.name = "odd"
        choice.set_condition(combine(network, now, 3, Op.GREATER))
        length = choice.add_output(length, constant(network, 0, np.int32)).get_output(0)
    total.set_input(1, combine(network, total.get_output(0), length))
    return mark(network, y=last(loop, total.get_output(0)))


@pytest.mark.parametrize("trips", [1, 4])
def test_a_slot_that_has_ended_never_enters_an_inner_loop_with_other_values(trips):
    engine, alone = trt.SlotEngine(collatz_of_each(), slots=3, trips=trips), trt.compile(collatz_of_each())
    requests = {n: engine.submit({"n": np.int32(n)}) for n in (0, 9, 1, 0, 3, 27, 0, 2)}

    for n, request in requests.items():
        assert request.result()["y"] == alone({"n": np.int32(n)})["y"]
        assert request.trips == n


def test_an_inner_loop_in_a_branch_is_ended_by_max_trips():
    engine = trt.SlotEngine(collatz_of_each(True), slots=3, max_trips=200)
    alone = trt.compile(collatz_of_each(True), max_trips=200)

    for n in (0, 9, 3, 5):
        assert engine.submit({"n": np.int32(n)}).result()["y"] == alone({"n": np.int32(n)})["y"]


def sum_of_rows(kind):
    """y: each row of a stack of 0, 1, ..., n - 1 in 5 rows, plus 10, and the stack is no output."""
    network = trt.INetworkDefinition()
    loop = counted(network, network.add_input("n", trt.int32, ()))
    rows = stacked(loop, counter(network, loop), constant(network, 5, np.int32), kind)
    return mark(network, y=combine(network, rows, constant(network, np.full(5, 10, np.int32))))


@pytest.mark.parametrize(
    ("kind", "wanted"), [(REVERSE, [12, 11, 10, 10, 10]), (trt.LoopOutput.CONCATENATE, [10, 11, 12, 10, 10])]
)
def test_the_rows_of_a_slot_that_has_ended_stay_as_they_were(kind, wanted):
    engine = trt.SlotEngine(sum_of_rows(kind), slots=3, trips=2)
    requests = {n: engine.submit({"n": np.int32(n)}) for n in (3, 5, 0)}

    found = {n: request.result()["y"].tolist() for n, request in requests.items()}

    assert found[3] == wanted
    assert found[0] == [10] * 5
    assert sorted(found[5]) == [10, 11, 12, 13, 14]
    assert list(requests[3].rows()) == [{}] * 3


def test_a_failure_before_the_loop_is_of_one_request_alone():
    network = trt.INetworkDefinition()
    n = network.add_input("n", trt.int32, ())
    network.add_assertion(combine(network, n, 4, Op.LESS), "n is below 4")
    loop = counted(network, n)
    mark(network, y=last(loop, counter(network, loop)))
    engine = trt.SlotEngine(network, slots=2)
    requests = {n: engine.submit({"n": np.int32(n)}) for n in (2, 5, 3)}

    assert requests[2].result()["y"] == 2
    assert requests[3].result()["y"] == 3
    with pytest.raises(trt.ExecutionError, match="n is below 4"):
        requests[5].result()


def test_an_iterator_past_its_axis_fails_in_one_request_alone():
    network = trt.INetworkDefinition()
    loop = counted(network, network.add_input("n", trt.int32, ()))
    total = loop.add_recurrence(constant(network, 0, F))
    item = loop.add_iterator(network.add_input("x", trt.float32, (3,))).get_output(0)
    total.set_input(1, combine(network, total.get_output(0), item))
    mark(network, y=last(loop, total.get_output(0)))
    engine, x = trt.SlotEngine(network, slots=2), F([1, 2, 4])
    requests = {n: engine.submit({"n": np.int32(n), "x": x}) for n in (3, 4, 2)}

    assert requests[3].result()["y"] == 7
    assert requests[2].result()["y"] == 3
    with pytest.raises(trt.ExecutionError, match="NL601"):
        requests[4].result()


def test_a_failure_that_no_output_needs_does_not_count():
    network = trt.INetworkDefinition()
    loop = counted(network, network.add_input("n", trt.int32, ()))
    item = loop.add_iterator(network.add_input("x", trt.int32, (2,))).get_output(0)
    number = counter(network, loop)
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, number, 2, Op.LESS))
    seen = choice.add_output(choice.add_input(item).get_output(0), constant(network, -1, np.int32)).get_output(0)
    mark(network, y=stacked(loop, seen, constant(network, 4, np.int32)))
    engine, alone = trt.SlotEngine(network, slots=2), trt.compile(network)
    inputs = [{"n": np.int32(n), "x": np.int32([5, 6])} for n in (4, 1, 3)]

    for given in inputs:
        np.testing.assert_array_equal(engine.submit(given).result()["y"], alone(given)["y"])


def test_a_loop_that_always_fails_makes_no_iteration():
    network = trt.INetworkDefinition()
    loop = counted(network, 7)
    network.add_input("x", trt.int32, ())
    mark(network, y=stacked(loop, counter(network, loop), constant(network, 7, np.int32)))

    request = trt.SlotEngine(network, slots=2, max_trips=3).submit({"x": np.int32(0)})

    with pytest.raises(trt.ExecutionError, match="NL609"):
        request.result()
    assert request.trips == 0


def countdown():
    """y: n, n - 1, ..., 1 in 8 rows; below 0 the condition would hold again."""
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    state = loop.add_recurrence(network.add_input("n", trt.int32, ()))
    now = state.get_output(0)
    below = combine(network, now, 0, Op.LESS)
    loop.add_trip_limit(combine(network, below, combine(network, now, 0, Op.GREATER), Op.OR), WHILE)
    state.set_input(1, combine(network, now, 1, Op.SUB))
    return mark(network, y=stacked(loop, now, constant(network, 8, np.int32)))


@pytest.mark.parametrize("max_trips", [None, 8])
def test_a_condition_that_would_hold_again_after_the_end_does_not(max_trips):
    engine = trt.SlotEngine(countdown(), slots=3, trips=4, max_trips=max_trips)
    requests = {n: engine.submit({"n": np.int32(n)}) for n in (1, 7, 2, 3, 0)}

    for n, request in requests.items():
        assert request.result()["y"].tolist() == [*range(n, 0, -1)] + [0] * (8 - n)


def test_a_request_with_more_iterations_than_max_trips_fails_alone():
    engine = trt.SlotEngine(countdown(), slots=2, trips=3, max_trips=4)
    requests = {n: engine.submit({"n": np.int32(n)}) for n in (2, 5, 4)}

    assert [request.result()["y"][0] for n, request in requests.items() if n != 5] == [2, 4]
    with pytest.raises(trt.ExecutionError, match="NL609"):
        requests[5].result()


@pytest.mark.parametrize("seed", mostly_slow(1, [5002, 1024, 1025, 1028]))
def test_random_networks_agree_with_engines(seed):
    """Every request has the outputs, or the failure, that it has alone."""
    grown = random_network(seed, is_risky=seed < 5000, sizes=(2, 8))
    with certain_errors_ignored():
        steps = require_valid(grown.network).block.steps
        loop = next(step.loop for step in steps if isinstance(step, LoopStep))
        loop.name = "served"
        alone = trt.compile(grown.network, max_trips=200)
        engine = trt.SlotEngine(grown.network, slots=3, trips=2, loop="served", max_trips=200)
        requests = [(other, engine.submit(other)) for other in (grown.inputs, *grown.others)]

        found = [(outcome(request.result), outcome(alone, given)) for given, request in requests]

    for got, wanted in found:
        if isinstance(wanted, str):
            assert got == wanted
            continue
        for name, array in wanted.items():
            number = np.asarray(array).astype(float)
            assert_allclose(got[name].astype(float), number, rtol=1e-4, atol=1e-4)
