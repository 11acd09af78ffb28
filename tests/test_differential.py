"""Engine against reference, on random networks, and laws that change a network and keep its meaning."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import netloop as trt
from tests.networks import (
    CONCATENATE,
    REVERSE,
    Op,
    combine,
    constant,
    counted,
    last,
    mark,
    stacked,
)
from tests.strategies import Grown, networks

SETTINGS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
    "report_multiple_bugs": False,
}


def assert_equal(got, meant):
    assert list(got) == list(meant)
    for name, wanted in meant.items():
        assert got[name].dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(got[name]), wanted)


def sound(grown: Grown) -> None:
    errors = [str(each) for each in trt.check(grown.network) if each.severity is trt.Severity.ERROR]
    assert not errors, "\n".join(errors)


def agree(grown: Grown) -> None:
    sound(grown)
    assert_equal(trt.compile(grown.network)(grown.inputs), trt.evaluate(grown.network, grown.inputs))


def fail_alike(grown: Grown) -> None:
    """The engine fails where the reference does, and nowhere else."""
    sound(grown)
    engine = trt.compile(grown.network)
    try:
        meant = trt.evaluate(grown.network, grown.inputs)
    except trt.ExecutionError:
        with pytest.raises(trt.ExecutionError):
            engine(grown.inputs)
        return
    assert_equal(engine(grown.inputs), meant)


@settings(max_examples=40, **SETTINGS)
@given(networks(depth=2))
def test_engine_gives_exactly_what_the_reference_means(grown):
    agree(grown)


@pytest.mark.slow
@settings(max_examples=2000, **SETTINGS)
@given(networks(depth=4))
def test_engine_gives_exactly_what_the_reference_means_at_length(grown):
    agree(grown)


@settings(max_examples=30, **SETTINGS)
@given(networks(depth=2, risky=True))
def test_engine_fails_exactly_where_the_reference_does(grown):
    fail_alike(grown)


@pytest.mark.slow
@settings(max_examples=800, **SETTINGS)
@given(networks(depth=3, risky=True))
def test_engine_fails_exactly_where_the_reference_does_at_length(grown):
    fail_alike(grown)


# ---------------------------------------------------------------------------- laws


@settings(max_examples=20, **SETTINGS)
@given(networks(depth=2))
def test_copy_means_the_same(grown):
    assert_equal(trt.evaluate(grown.network.copy(), grown.inputs), trt.evaluate(grown.network, grown.inputs))


@settings(max_examples=15, **SETTINGS)
@given(networks(depth=2))
def test_more_outputs_change_no_output(grown):
    meant = trt.evaluate(grown.network, grown.inputs)
    for loop in grown.network.loops:
        for layer in loop.layers:
            if isinstance(layer, trt.ILoopOutputLayer):
                grown.network.mark_output(layer.get_output(0))
    if any(each.code == "NL210" for each in trt.check(grown.network)):
        return
    got = trt.compile(grown.network)(grown.inputs)
    assert_equal({name: got[name] for name in meant}, meant)


@settings(max_examples=15, **SETTINGS)
@given(networks(depth=2))
def test_function_of_jax_gives_what_the_reference_means(grown):
    function, weights = trt.to_jax(grown.network)

    assert_equal(function(weights, grown.inputs), trt.evaluate(grown.network, grown.inputs))


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
    """y: the last state, in a loop over the rows, or in several loops over parts of them."""
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
@settings(max_examples=15, **SETTINGS)
@given(rows=ROWS, ops=OPS)
def test_loop_is_what_it_unrolls_to(run, rows, ops):
    got, meant = run(looped(array(rows), ops), INPUT)["y"], run(unrolled(array(rows), ops), INPUT)["y"]

    np.testing.assert_array_equal(got, meant)


@both_ways
@settings(max_examples=15, **SETTINGS)
@given(rows=ROWS, ops=OPS, cut=st.integers(0, 6))
def test_loop_is_two_loops_one_after_the_other(run, rows, ops, cut):
    whole, parts = looped(array(rows), ops), looped(array(rows), ops, [min(cut, len(rows))])

    np.testing.assert_array_equal(run(whole, INPUT)["y"], run(parts, INPUT)["y"])


@both_ways
@settings(max_examples=10, **SETTINGS)
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
@settings(max_examples=10, **SETTINGS)
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
