"""Engine against reference on random networks, and changes of a network that keep its meaning."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import netloop as trt
from tests.support.examples import many, same_examples
from tests.support.networks import CONCATENATE, REVERSE, Op, combine, constant, counted, counter, last, mark, stacked
from tests.support.random_networks import agree, random_network, random_networks
from tests.support.strategies import assert_equal, is_pure, networks


@pytest.mark.slow
@same_examples(2, nightly=150)
@given(random_networks(depth=1, most=20))
def test_engine_gives_exactly_what_the_reference_means_in_flat_loops(grown):
    agree(grown)


@same_examples(2, nightly=150)
@given(random_networks(depth=2, most=20))
def test_engine_gives_exactly_what_the_reference_means(grown):
    agree(grown)


@same_examples(2, nightly=100)
@given(random_networks(depth=4, most=40))
def test_engine_gives_exactly_what_the_reference_means_in_deep_nests(grown):
    agree(grown)


@same_examples(2, nightly=150)
@given(random_networks(is_risky=True, depth=2, most=20))
def test_engine_fails_exactly_where_the_reference_does(grown):
    agree(grown)


@pytest.mark.slow
@pytest.mark.parametrize("number", many(150, 1000))
def test_engine_gives_exactly_what_the_reference_means_at_length(number):
    agree(random_network(number, is_risky=False))


@pytest.mark.slow
@pytest.mark.parametrize("number", many(50, 1000))
def test_engine_fails_exactly_where_the_reference_does_at_length(number):
    agree(random_network(number, is_risky=True))


# ---------------------------------------------------------------------------- laws


@same_examples(10)
@given(networks(depth=2, most=10))
def test_copy_means_the_same(grown):
    assert_equal(trt.evaluate(grown.network.copy(), grown.inputs), trt.evaluate(grown.network, grown.inputs))


@same_examples(1, nightly=100)
@given(networks(depth=2, most=10))
def test_more_outputs_change_no_output(grown):
    meant = trt.evaluate(grown.network, grown.inputs)
    for loop in grown.network.loops:
        for layer in loop.layers:
            if isinstance(layer, trt.ILoopOutputLayer):
                grown.network.mark_output(layer.get_output(0))
    if any(finding.code == "NL210" for finding in trt.check(grown.network)):
        return
    got = trt.compile(grown.network)(grown.inputs)
    assert_equal({name: got[name] for name in meant}, meant, grown.rough)


@same_examples(1, nightly=100)
@given(networks(depth=2, most=10))
def test_function_of_jax_gives_what_the_reference_means(grown):
    assume(is_pure(grown.network, grown.inputs))
    function, weights = trt.to_jax(grown.network)

    assert_equal(function(weights, grown.inputs), trt.evaluate(grown.network, grown.inputs), grown.rough)


@same_examples(2, nightly=100)
@given(networks(depth=2, most=10))
def test_while_that_says_what_the_count_says_changes_no_output(grown):
    network, meant = grown.network, trt.evaluate(grown.network, grown.inputs)
    for loop in network.loops:
        count = loop.limit(trt.TripLimit.COUNT)
        if count is not None and loop.limit(trt.TripLimit.WHILE) is None:
            below = network.add_cast(count.get_input(0), trt.int64).get_output(0)
            now = counter(network, loop, dtype=np.int64)
            loop.add_trip_limit(combine(network, now, below, Op.LESS), trt.TripLimit.WHILE)

    assert_equal(trt.evaluate(network, grown.inputs), meant)
    assert_equal(trt.compile(network)(grown.inputs), meant, grown.rough)


OPS = st.lists(st.sampled_from([Op.SUM, Op.SUB, Op.PROD, Op.MAX, Op.MIN]), min_size=1, max_size=4)
ROWS = st.integers(0, 6).flatmap(
    lambda trips: st.lists(st.lists(st.integers(-5, 5), min_size=2, max_size=2), min_size=trips, max_size=trips)
)


def step(network, state, row, ops):
    """A next value, from a state and a row."""
    made = state
    for number, op in enumerate(ops):
        made = combine(network, made, row if number % 2 == 0 else state, op)
    return made


def looped(rows, ops, splits=()):
    """y: the last state, of a loop over the rows, or of several loops over sections of them."""
    network = trt.INetworkDefinition()
    state = network.add_input("x", trt.int32, (2,))
    for part in np.split(rows, splits):
        loop = counted(network, len(part))
        recurrence = loop.add_recurrence(state)
        row = loop.add_iterator(constant(network, part)).get_output(0)
        recurrence.set_input(1, step(network, recurrence.get_output(0), row, ops))
        state = last(loop, recurrence.get_output(0))
    return mark(network, y=state)


def unrolled(rows, ops):
    """y: the last state, without a loop."""
    network = trt.INetworkDefinition()
    state = network.add_input("x", trt.int32, (2,))
    for row in rows:
        state = step(network, state, constant(network, row), ops)
    return mark(network, y=network.add_identity(state).get_output(0))


def array(rows):
    return np.array(rows, np.int32).reshape(-1, 2)


both_ways = pytest.mark.parametrize("run", [trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)])
INPUT = {"x": np.int32([3, -2])}


@both_ways
@same_examples(5)
@given(rows=ROWS, ops=OPS)
def test_loop_is_what_it_unrolls_to(run, rows, ops):
    got, meant = run(looped(array(rows), ops), INPUT)["y"], run(unrolled(array(rows), ops), INPUT)["y"]

    np.testing.assert_array_equal(got, meant)


@both_ways
@same_examples(5)
@given(rows=ROWS, ops=OPS, cut=st.integers(0, 6))
def test_loop_is_two_loops_one_after_the_other(run, rows, ops, cut):
    whole, parts = looped(array(rows), ops), looped(array(rows), ops, [min(cut, len(rows))])

    np.testing.assert_array_equal(run(whole, INPUT)["y"], run(parts, INPUT)["y"])


@both_ways
@same_examples(5)
@given(rows=ROWS)
def test_what_is_reversed_twice_is_as_it_was(run, rows):
    network = trt.INetworkDefinition()
    tensor = network.add_input("x", trt.int32, (len(rows), 2))
    for _ in range(2):
        loop = counted(network, len(rows))
        row = loop.add_iterator(tensor).get_output(0)
        tensor = stacked(loop, row, constant(network, len(rows), np.int32), REVERSE)

    np.testing.assert_array_equal(run(mark(network, y=tensor), {"x": array(rows)})["y"], array(rows))


@both_ways
@same_examples(5)
@given(rows=ROWS)
def test_reversed_output_is_what_a_reverse_iterator_reads(run, rows):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.int32, (len(rows), 2))
    loop = counted(network, len(rows))
    length = constant(network, len(rows), np.int32)
    forwards, backwards = loop.add_iterator(x), loop.add_iterator(x, 0, True)
    mark(
        network,
        a=stacked(loop, forwards.get_output(0), length, REVERSE),
        b=stacked(loop, backwards.get_output(0), length, CONCATENATE),
    )
    got = run(network, {"x": array(rows)})

    np.testing.assert_array_equal(got["a"], got["b"])
