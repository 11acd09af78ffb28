"""The host strategy: networks of which only the run tells some shape."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given

import netloop as trt
from netloop.execution import executable
from netloop.host import program as host
from tests.execution.test_differential import fail_alike
from tests.support.examples import same_examples
from tests.support.strategies import networks

Op = trt.ElementWiseOperation
COUNT, WHILE = trt.TripLimit.COUNT, trt.TripLimit.WHILE
LAST_VALUE, CONCATENATE, REVERSE = trt.LoopOutput.LAST_VALUE, trt.LoopOutput.CONCATENATE, trt.LoopOutput.REVERSE


def constant(network, value, dtype=np.int32):
    array = np.array(value, dtype)
    return network.add_constant(array.shape, array).get_output(0)


def combine(network, a, b, op):
    return network.add_elementwise(a, b, op).get_output(0)


def mark(network, tensor, name="y"):
    tensor.name = name
    network.mark_output(tensor)


def agree(network, **inputs):
    """What the reference and an engine give, which is the same, and the loop_strategies of the engine."""
    meant = trt.evaluate(network, inputs)
    engine = trt.compile(network)
    for _ in range(2):
        got = engine(inputs)
        for name, wanted in meant.items():
            assert got[name].dtype == wanted.dtype
            np.testing.assert_array_equal(np.asarray(got[name]), wanted)
    return meant, {name: strategy.name for name, strategy in engine.loop_strategies.items()}


def fails_alike(network, match, **inputs):
    for run in (trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)):
        with pytest.raises(trt.ExecutionError, match=match):
            run(network, inputs)


def collatz(network, start):
    """The steps from a number to 1, stacked as many as there are."""

    def loop_of(name):
        loop = network.add_loop()
        loop.name = name
        state = loop.add_recurrence(start)
        now = state.get_output(0)
        one, two = constant(network, 1), constant(network, 2)
        loop.add_trip_limit(combine(network, now, one, Op.GREATER), WHILE)
        half = combine(network, now, two, Op.FLOOR_DIV)
        odd = combine(network, now, combine(network, half, two, Op.PROD), Op.GREATER)
        more = combine(network, combine(network, now, constant(network, 3), Op.PROD), one, Op.SUM)
        state.set_input(1, network.add_select(odd, more, half).get_output(0))
        return loop, now

    counting, _ = loop_of("counting")
    counter = counting.add_recurrence(constant(network, 0))
    counter.set_input(1, combine(network, counter.get_output(0), constant(network, 1), Op.SUM))
    steps = counting.add_loop_output(counter.get_output(0), LAST_VALUE).get_output(0)
    listing, now = loop_of("listing")
    rows = listing.add_loop_output(now, CONCATENATE)
    rows.set_input(1, steps)
    return rows.get_output(0)


def test_output_is_as_long_as_a_loop_before_it_made_trips(network):
    mark(network, collatz(network, network.add_input("start", trt.int32, ())))

    meant, loop_strategies = agree(network, start=np.int32(6))
    assert meant["y"].tolist() == [6, 3, 10, 5, 16, 8, 4, 2]
    assert loop_strategies == {"counting": "while", "listing": "while"}


def test_layers_go_on_from_a_shape_of_the_run(network):
    steps = collatz(network, network.add_input("start", trt.int32, ()))
    mark(network, network.add_reduce(steps, trt.ReduceOperation.MAX, 1, False).get_output(0), "highest")
    mark(network, network.add_shape(steps).get_output(0), "shape")

    meant, _ = agree(network, start=np.int32(27))
    assert (meant["highest"], meant["shape"]) == (9232, 111)


@pytest.mark.parametrize("flag", [True, False])
def test_branches_may_give_several_lengths(network, flag):
    condition, x = network.add_input("flag", trt.bool, ()), network.add_input("x", trt.int32, (4,))
    choice = network.add_if_conditional()
    choice.set_condition(condition)
    short = network.add_slice(x, (1,), (2,), (1,)).get_output(0)
    chosen = choice.add_output(x, short).get_output(0)
    mark(network, combine(network, chosen, chosen, Op.SUM))

    meant, _ = agree(network, flag=np.bool_(flag), x=np.arange(4, dtype=np.int32))
    assert meant["y"].tolist() == ([0, 2, 4, 6] if flag else [2, 4])


@pytest.mark.parametrize(
    ("kind", "backwards", "wanted"),
    [(CONCATENATE, False, [6, 0, 3, 0]), (REVERSE, False, [3, 0, 6, 0]), (CONCATENATE, True, [3, 0, 6, 0])],
)
def test_loop_of_the_host_stacks_what_each_trip_makes(network, kind, backwards, wanted):
    lengths = network.add_input("lengths", trt.int32, (3,))
    loop = network.add_loop()
    loop.name = "outer"
    loop.add_trip_limit(constant(network, 3), COUNT)
    length = loop.add_iterator(lengths, reverse=backwards).get_output(0)
    fill = network.add_fill((1,), trt.FillOperation.LINSPACE, trt.int32)
    row = network.add_shuffle(length)
    row.reshape_dims = (1,)
    fill.set_input(0, row.get_output(0))
    fill.alpha, fill.beta = 0, 1
    total = network.add_reduce(fill.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    rows = loop.add_loop_output(total, kind)
    rows.set_input(1, constant(network, 4))
    mark(network, rows.get_output(0))

    meant, loop_strategies = agree(network, lengths=np.array([4, 0, 3], np.int32))
    assert meant["y"].tolist() == wanted
    assert loop_strategies == {"outer": "host"}


def test_branch_of_a_loop_of_the_host_reads_an_iterator_in_reverse(network):
    lengths, x = network.add_input("lengths", trt.int32, (3,)), network.add_input("x", trt.int32, (3,))
    loop = network.add_loop()
    loop.name = "outer"
    loop.add_trip_limit(constant(network, 3), COUNT)
    length = loop.add_iterator(lengths).get_output(0)
    fill = network.add_fill((1,), trt.FillOperation.LINSPACE, trt.int32)
    fill.set_input(0, network.add_unsqueeze(length, constant(network, [0])).get_output(0))
    fill.alpha, fill.beta = 0, 1
    total = network.add_reduce(fill.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, total, constant(network, 1), Op.GREATER))
    backwards = loop.add_iterator(x, reverse=True).get_output(0)
    rows = loop.add_loop_output(choice.add_output(backwards, total).get_output(0), CONCATENATE)
    rows.set_input(1, constant(network, 3))
    mark(network, rows.get_output(0))

    meant, loop_strategies = agree(network, lengths=np.array([4, 0, 3], np.int32), x=np.array([7, 8, 9], np.int32))
    assert meant["y"].tolist() == [9, 0, 7]
    assert loop_strategies == {"outer": "host"}


def test_state_may_grow_where_its_length_is_open(network):
    start, trips = network.add_input("start", trt.int32, (-1,)), network.add_input("trips", trt.int32, ())
    loop = network.add_loop()
    loop.add_trip_limit(trips, COUNT)
    state = loop.add_recurrence(start)
    state.set_input(1, network.add_concatenation([state.get_output(0), state.get_output(0)]).get_output(0))
    mark(network, loop.add_loop_output(state.get_output(0), LAST_VALUE).get_output(0))

    with pytest.raises(trt.NetworkError, match="starts as int32"):
        trt.evaluate(network, {"start": np.ones(1, np.int32), "trips": np.int32(3)})


def test_inner_loop_of_fixed_shapes_is_compiled(network):
    lengths = network.add_input("lengths", trt.int32, (2,))
    outer, inner = network.add_loop(), network.add_loop()
    outer.name, inner.name = "outer", "inner"
    outer.add_trip_limit(constant(network, 2), COUNT)
    n = outer.add_iterator(lengths).get_output(0)
    inner.add_trip_limit(n, COUNT)
    power = inner.add_recurrence(constant(network, 1))
    power.set_input(1, combine(network, power.get_output(0), constant(network, 2), Op.PROD))
    rows = inner.add_loop_output(power.get_output(0), CONCATENATE)
    rows.set_input(1, n)
    total = network.add_reduce(rows.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    sums = outer.add_loop_output(total, CONCATENATE)
    sums.set_input(1, constant(network, 2))
    mark(network, sums.get_output(0))

    meant, loop_strategies = agree(network, lengths=np.array([3, 5], np.int32))
    assert meant["y"].tolist() == [7, 31]
    assert loop_strategies == {"outer": "host", "inner": "scan"}


def test_assertion_is_checked_on_the_host(network):
    steps = collatz(network, network.add_input("start", trt.int32, ()))
    size = network.add_shape(steps).get_output(0)
    network.add_assertion(combine(network, size, constant(network, [4], np.int64), Op.LESS), "too many steps")
    mark(network, steps)

    assert agree(network, start=np.int32(8))[0]["y"].tolist() == [8, 4, 2]
    fails_alike(network, "too many steps", start=np.int32(6))


def test_failure_on_the_host_counts_only_where_it_is_needed(network):
    steps = collatz(network, network.add_input("start", trt.int32, ()))
    wanted = network.add_input("wanted", trt.bool, ())
    ninth = network.add_gather(steps, constant(network, 8), 0).get_output(0)
    choice = network.add_if_conditional()
    choice.set_condition(wanted)
    mark(network, choice.add_output(ninth, constant(network, -1)).get_output(0))

    assert trt.evaluate(network, {"start": np.int32(6), "wanted": np.bool_(False)})["y"] == -1
    assert trt.compile(network)({"start": np.int32(6), "wanted": np.bool_(False)})["y"] == -1


def test_iterator_past_the_end_fails_on_the_host(network):
    x, lengths = network.add_input("x", trt.int32, (2,)), network.add_input("lengths", trt.int32, (3,))
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 3), COUNT)
    element, length = loop.add_iterator(x).get_output(0), loop.add_iterator(lengths).get_output(0)
    fill = network.add_fill((1,), trt.FillOperation.LINSPACE, trt.int32)
    row = network.add_shuffle(length)
    row.reshape_dims = (1,)
    fill.set_input(0, row.get_output(0))
    total = network.add_reduce(fill.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    rows = loop.add_loop_output(combine(network, element, total, Op.SUM), CONCATENATE)
    rows.set_input(1, constant(network, 3))
    mark(network, rows.get_output(0))

    fails_alike(network, "past the end of axis 0", x=np.ones(2, np.int32), lengths=np.ones(3, np.int32))


def test_pieces_are_compiled_once_for_a_shape(network):
    mark(network, collatz(network, network.add_input("start", trt.int32, ())))
    engine = trt.compile(network)
    engine({"start": np.int32(6)})
    (runnable,) = engine._programs._kept.values()
    before = len(runnable.program._pieces)
    engine({"start": np.int32(6)})
    engine({"start": np.int32(40)})

    assert len(runnable.program._pieces) == before
    engine({"start": np.int32(3)})
    assert len(runnable.program._pieces) == before + 1


def test_shape_of_what_failed_is_known_on_the_host(network):
    x = network.add_input("x", trt.int32, (2,))
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 3), COUNT)
    rows = loop.add_loop_output(loop.add_iterator(x).get_output(0), CONCATENATE)
    rows.set_input(1, constant(network, 3))
    mark(network, network.add_shape(rows.get_output(0)).get_output(0), "shape")
    mark(network, network.add_non_zero(x).get_output(0), "places")

    meant, _ = agree(network, x=np.array([0, 5], np.int32))
    assert (meant["shape"].tolist(), meant["places"].tolist()) == ([3], [[1]])


def test_pure_function_of_such_a_network_is_refused(network):
    mark(network, collatz(network, network.add_input("start", trt.int32, ())))
    function, weights = trt.to_jax(network)

    with pytest.raises(trt.NetworkError, match="NL501"):
        function(weights, {"start": np.int32(6)})


# ---------------------------------------------------------------------- any network, on the host


def on_the_host(steps_in_a_piece):
    """Engines take the host strategy, with pieces of at most so many steps."""
    fixed = host.HostProgram._fixed
    return (
        patch.object(executable, "has_program", lambda network, types: False),
        patch.object(host.HostProgram, "_fixed", lambda *given: min(steps_in_a_piece, fixed(*given))),
    )


@same_examples(12)
@given(networks(depth=2, most=30, is_risky=True))
@pytest.mark.parametrize("steps_in_a_piece", [0, 2])
def test_host_gives_what_the_reference_means_and_fails_where_it_does(steps_in_a_piece, grown):
    on_host, in_pieces = on_the_host(steps_in_a_piece)
    with on_host, in_pieces:
        fail_alike(grown)
