"""Inputs are made up where that gives a call that ends."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.tuning import NoSamples, Samples, require_ending, sample_inputs
from netloop.compiler.tuning.trip_inputs import TRIPS
from tests.support.networks import both_limits, combine, count_is_an_input, counted, counter, last, mark


def network_of(dtype, shape):
    network = trt.INetworkDefinition()
    x = network.add_input("x", dtype, shape)
    return mark(network, y=network.add_identity(x).get_output(0))


def test_floats_are_random_and_integers_are_zero():
    floats = sample_inputs(network_of(trt.float32, (2, 3)), Samples())["x"]

    assert (floats.shape, floats.dtype) == ((2, 3), np.float32)
    assert len(np.unique(floats)) == 6
    assert sample_inputs(network_of(trt.int64, (2,)), Samples())["x"].tolist() == [0, 0]


def test_count_of_a_loop_is_not_zero():
    assert sample_inputs(both_limits(), Samples())["n"] == TRIPS


def test_count_of_a_loop_is_no_more_than_the_rows_of_its_output():
    assert sample_inputs(count_is_an_input(), Samples())["n"] == 8


def test_open_shape_is_that_of_the_profile():
    network = network_of(trt.float32, (-1, 3))

    assert sample_inputs(network, Samples({"x": (5, 3)}))["x"].shape == (5, 3)
    with pytest.raises(NoSamples, match="no fixed shape"):
        sample_inputs(network, Samples())


def test_value_that_decides_a_shape_is_that_of_the_profile():
    network = trt.INetworkDefinition()
    shape = network.add_input("dims", trt.int64, (2,))
    shuffle = network.add_shuffle(network.add_input("x", trt.float32, (6,)))
    shuffle.set_input(1, shape)
    mark(network, y=shuffle.get_output(0))

    assert sample_inputs(network, Samples(values={"dims": (2, 3)}))["dims"].tolist() == [2, 3]
    with pytest.raises(NoSamples, match="decides a shape"):
        sample_inputs(network, Samples())


def test_strings_are_not_made_up():
    with pytest.raises(NoSamples, match="'x'"):
        sample_inputs(network_of(trt.DataType.STRING, (2,)), Samples())


def endless():
    """A WHILE loop that keeps a number while it is positive: with such a one, it never ends."""
    network = trt.INetworkDefinition()
    first = network.add_input("first", trt.int32, ())
    loop = network.add_loop()
    state = loop.add_recurrence(first)
    now = state.get_output(0)
    state.set_input(1, combine(network, now, 0))
    loop.add_trip_limit(combine(network, now, 0, trt.ElementWiseOperation.GREATER), trt.TripLimit.WHILE)
    return mark(network, last=last(loop, now))


def checked(network):
    engine = trt.compile(network)
    inputs = sample_inputs(network, Samples())
    require_ending(engine.executable, lambda: trt.compile(network, max_trips=1000).executable, inputs)


def test_loop_that_never_ends_with_made_up_inputs_is_found():
    with pytest.raises(NoSamples, match="made-up inputs"):
        checked(endless())


def test_loop_that_ends_with_made_up_inputs_is_fine():
    checked(both_limits())


def test_loop_of_known_length_needs_no_limit():
    network = trt.INetworkDefinition()
    loop = counted(network, 3)
    mark(network, last=last(loop, counter(network, loop)))
    inputs = sample_inputs(network, Samples())

    require_ending(trt.compile(network).executable, lambda: pytest.fail("compiled again"), inputs)
