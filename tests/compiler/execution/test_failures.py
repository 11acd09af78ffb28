"""Errors of a run: the reference and an engine raise the same message, wherever the error is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.examples import mostly_slow
from tests.support.networks import WHILE, Op, combine, constant, counted, counter, last, mark, stacked

MAX_TRIPS = 6


# ---------------------------------------------------------------------------- what fails, if 'n' is above 3


def too_short(network: trt.INetworkDefinition, n: ITensor) -> ITensor:
    loop = counted(network, n)
    row = stacked(loop, counter(network, loop), constant(network, 3, np.int32))
    row.producer.name = "culprit"
    return network.add_reduce(row, trt.ReduceOperation.SUM, 1, False).get_output(0)


def past_the_end(network: trt.INetworkDefinition, n: ITensor) -> ITensor:
    loop = counted(network, n)
    iterator = loop.add_iterator(constant(network, [1, 2, 3], np.int32))
    iterator.name = "culprit"
    total = loop.add_recurrence(constant(network, 0, np.int32))
    total.set_input(1, combine(network, total.get_output(0), iterator.get_output(0)))
    return last(loop, total.get_output(0))


def past_the_beginning(network: trt.INetworkDefinition, n: ITensor) -> ITensor:
    loop = counted(network, n)
    iterator = loop.add_iterator(constant(network, [1, 2, 3], np.int32), reverse=True)
    iterator.name = "culprit"
    total = loop.add_recurrence(constant(network, 0, np.int32))
    total.set_input(1, combine(network, total.get_output(0), iterator.get_output(0)))
    return last(loop, total.get_output(0))


def too_many_trips(network: trt.INetworkDefinition, n: ITensor) -> ITensor:
    loop = counted(network, combine(network, n, MAX_TRIPS - 3))
    loop.name = "culprit"
    return last(loop, counter(network, loop))


def never_false(network: trt.INetworkDefinition, n: ITensor) -> ITensor:
    loop = network.add_loop()
    loop.name = "culprit"
    now = counter(network, loop)
    enough = combine(network, now, combine(network, n, 3, Op.SUB), Op.LESS)
    # with n above 3 the condition is always true
    loop.add_trip_limit(combine(network, combine(network, n, 3, Op.GREATER), enough, Op.OR), WHILE)
    return last(loop, now)


def assertion(network: trt.INetworkDefinition, n: ITensor) -> ITensor:
    network.add_assertion(combine(network, n, 4, Op.LESS), "n is 3 at most").name = "culprit"
    return combine(network, n, 0)


WAYS_TO_FAIL = [too_short, past_the_end, past_the_beginning, too_many_trips, never_false, assertion]


# ---------------------------------------------------------------------------- places of an error


def at_the_top(network: trt.INetworkDefinition, n: ITensor, fail: Callable[..., ITensor]) -> ITensor:
    return fail(network, n)


def in_a_scan(network: trt.INetworkDefinition, n: ITensor, fail: Callable[..., ITensor]) -> ITensor:
    loop = counted(network, 2)
    total = loop.add_recurrence(constant(network, 0, np.int32))
    made = fail(network, combine(network, n, combine(network, counter(network, loop), 1, Op.SUB)))
    total.set_input(1, combine(network, total.get_output(0), made))
    return last(loop, total.get_output(0))


def in_a_while(network: trt.INetworkDefinition, n: ITensor, fail: Callable[..., ITensor]) -> ITensor:
    loop = network.add_loop()
    now = counter(network, loop)
    total = loop.add_recurrence(constant(network, 0, np.int32))
    made = fail(network, combine(network, n, combine(network, now, 1, Op.SUB)))
    total.set_input(1, combine(network, total.get_output(0), made))
    loop.add_trip_limit(combine(network, now, 2, Op.LESS), WHILE)
    return last(loop, total.get_output(0))


def in_a_condition(network: trt.INetworkDefinition, n: ITensor, fail: Callable[..., ITensor]) -> ITensor:
    loop = network.add_loop()
    now = counter(network, loop)
    made = fail(network, combine(network, n, combine(network, now, 1, Op.SUB)))
    below = combine(network, combine(network, now, 2, Op.LESS), combine(network, made, -1, Op.GREATER), Op.AND)
    loop.add_trip_limit(below, WHILE)
    return last(loop, now)


def in_a_choice(network: trt.INetworkDefinition, n: ITensor, fail: Callable[..., ITensor]) -> ITensor:
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, fail(network, n), -1, Op.GREATER))
    return choice.add_output(network.add_identity(n).get_output(0), constant(network, 0, np.int32)).get_output(0)


def in_a_branch(network: trt.INetworkDefinition, n: ITensor, fail: Callable[..., ITensor]) -> ITensor:
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, n, 0, Op.GREATER))
    return choice.add_output(fail(network, n), constant(network, 0, np.int32)).get_output(0)


PLACES = [at_the_top, in_a_scan, in_a_while, in_a_condition, in_a_branch, in_a_choice]

HOST = [(at_the_top, True), (in_a_while, True), (in_a_condition, True)]
"""The places that are also tested on the host."""


def failing(fail, place, host):
    """A network that fails if n is above 3; with ``host`` it has a data-dependent shape."""
    network = trt.INetworkDefinition()
    n = network.add_input("n", trt.int32, ())
    if host:
        found = network.add_non_zero(network.add_input("ones", trt.int32, (-1,))).get_output(0)
        grown = network.add_reduce(network.add_cast(found, trt.int32).get_output(0), trt.ReduceOperation.MAX, 3, False)
        n = combine(network, n, grown.get_output(0))
    return mark(network, y=place(network, n, fail))


@pytest.mark.parametrize(("place", "host"), [*((place, False) for place in PLACES), *HOST])
@pytest.mark.parametrize("fail", mostly_slow(3, WAYS_TO_FAIL))
def test_error_has_the_same_message(fail, place, host):
    network = failing(fail, place, host)
    ones = {"ones": np.ones(1, np.int32)} if host else {}
    engine = trt.compile(network, max_trips=MAX_TRIPS)
    messages = []
    for run in (lambda inputs: trt.evaluate(network, inputs, max_trips=MAX_TRIPS), engine):
        assert run({"n": np.int32(1), **ones})["y"].dtype == np.int32
        with pytest.raises(trt.ExecutionError) as caught:
            run({"n": np.int32(4), **ones})
        messages.append(str(caught.value))

    assert messages[0] == messages[1]
    assert "'culprit'" in messages[0]
    assert f"\n  at {Path(__file__).parents[2]}" in messages[0]


@pytest.mark.parametrize(("lengths", "culprit"), [((4, 2), 1), ((2, 4), 0), ((3, 3), 0)])
def test_of_two_errors_the_first_is_raised(network, lengths, culprit):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    one, two = iterators = [loop.add_iterator(constant(network, np.arange(length), np.int32)) for length in lengths]
    iterators[culprit].name = "culprit"
    total = loop.add_recurrence(constant(network, 0, np.int32))
    both = combine(network, one.get_output(0), two.get_output(0))
    total.set_input(1, combine(network, total.get_output(0), both))
    mark(network, y=last(loop, total.get_output(0)))
    for run in (trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)):
        with pytest.raises(trt.ExecutionError, match="'culprit'"):
            run(network, {"n": np.int32(6)})


@pytest.mark.parametrize("flag", [False, True])
def test_last_value_of_a_branch_that_reads_an_iterator_is_past_the_end_if_it_is_taken(network, flag):
    loop = counted(network, 3)
    element = loop.add_iterator(constant(network, [1, 2, 3], np.int32)).get_output(0)
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("flag", trt.bool, ()))
    mark(network, y=last(loop, choice.add_output(combine(network, element, 1), counter(network, loop)).get_output(0)))
    for run in (trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)):
        if not flag:
            assert run(network, {"flag": np.bool_(flag)})["y"] == 3
            continue
        with pytest.raises(trt.ExecutionError, match="past the end of axis 0"):
            run(network, {"flag": np.bool_(flag)})


@pytest.mark.parametrize("flag", [False, True])
def test_last_value_past_the_end_of_an_axis_is_an_error_in_the_branch_that_is_taken(network, flag):
    loop = counted(network, 3)
    past = last(loop, loop.add_iterator(constant(network, [1, 2, 3], np.int32)).get_output(0))
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("flag", trt.bool, ()))
    mark(network, y=choice.add_output(combine(network, past, 1), constant(network, 5, np.int32)).get_output(0))
    for run in (trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)):
        if not flag:
            assert run(network, {"flag": np.bool_(flag)})["y"] == 5
            continue
        with pytest.raises(trt.ExecutionError, match="past the end of axis 0"):
            run(network, {"flag": np.bool_(flag)})


# ---------------------------------------------------------------------------- max_trips


def loop_of(network: trt.INetworkDefinition, count: int) -> trt.ILoop:
    loop = counted(network, count)
    mark(network, y=last(loop, counter(network, loop)))
    return loop


@pytest.mark.parametrize("limit", [5, 6])
def test_engine_makes_max_trips_iterations(network, limit):
    loop_of(network, 5)

    assert trt.compile(network, max_trips=limit)({})["y"] == 5


def test_known_count_above_max_trips_is_an_error_in_the_call(network):
    loop_of(network, 1 << 30)
    engine = trt.compile(network, max_trips=1000)
    with pytest.raises(trt.ExecutionError, match="executes more than 1000 iterations"):
        engine({})


def test_assertion_in_a_loop_that_exceeds_max_trips_is_not_checked(network):
    loop = counted(network, 10)
    network.add_assertion(combine(network, counter(network, loop), 3, Op.LESS), "the trip is below 3")
    mark(network, y=constant(network, 1, np.int32))
    for run in (trt.evaluate, lambda network, inputs, **named: trt.compile(network, **named)(inputs)):
        with pytest.raises(trt.ExecutionError, match="executes more than 5 iterations"):
            run(network, {}, max_trips=5)


def test_loop_in_the_branch_not_taken_may_exceed_max_trips(network):
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    loop = counted(network, network.add_input("n", trt.int32, ()))
    made = last(loop, counter(network, loop))
    mark(network, y=choice.add_output(made, constant(network, 0, np.int32)).get_output(0))

    assert trt.compile(network, max_trips=3)({"c": np.bool_(False), "n": np.int32(10)})["y"] == 0


def test_engine_works_after_a_failure(network):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    mark(network, y=last(loop, counter(network, loop)))
    engine = trt.compile(network, max_trips=3)
    with pytest.raises(trt.ExecutionError):
        engine({"n": np.int32(4)})

    assert engine({"n": np.int32(3)})["y"] == 3


def test_max_trips_is_part_of_a_plan(network):
    loop_of(network, 5)
    logger = trt.Logger()
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    config.max_trips = 4
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))

    assert engine.max_trips == 4
    with pytest.raises(trt.ExecutionError, match="executes more than 4 iterations"):
        engine({})


def test_plan_without_max_trips_has_none(network):
    loop_of(network, 5)

    assert trt.Runtime(trt.Logger()).deserialize_cuda_engine(trt.compile(network).serialize()).max_trips is None


@pytest.mark.parametrize(
    ("wrong", "error"), [("7", TypeError), (True, TypeError), (-1, ValueError), (1 << 64, ValueError)]
)
def test_max_trips_is_checked(network, wrong, error):
    loop_of(network, 5)
    config = trt.Builder(trt.Logger()).create_builder_config()
    with pytest.raises(error, match="max_trips must be"):
        trt.compile(network, max_trips=wrong)
    with pytest.raises(error, match="max_trips must be"):
        config.max_trips = wrong


def test_loop_of_known_count_costs_nothing(network):
    loop = counted(network, 5)
    row = loop.add_iterator(network.add_input("x", trt.float32, (5,))).get_output(0)
    mark(network, y=stacked(loop, row, constant(network, 5, np.int32)))

    assert text_of(trt.compile(network, max_trips=5)) == text_of(trt.compile(network))


def text_of(engine: trt.ICudaEngine) -> str:
    return engine.executable._programs.latest.compiled.as_text().replace("\n", "")
