"""Results of TensorRT, as NVIDIA recorded them for its examples of loops and conditionals."""

import numpy as np
import pytest

import netloop as trt
from tests.support.devices import assert_allclose
from tests.support.networks import (
    CONCATENATE,
    COUNT,
    REVERSE,
    WAYS,
    WHILE,
    combine,
    constant,
    counted,
    last,
    lstm,
    mark,
    run,
    stacked,
)

ONES = np.ones((1, 2, 3, 4), np.float32)

each_way = pytest.mark.parametrize("way", WAYS)


def filled(values):
    """A stack of arrays, each filled with one value."""
    return np.stack([np.full((1, 2, 3, 4), value, np.float32) for value in values])


def doubling(network):
    """A loop without limits that doubles a state of ones in each iteration: the loop, the state, its double."""
    loop = network.add_loop()
    state = loop.add_recurrence(network.add_input("x", trt.float32, ONES.shape))
    state.set_input(1, combine(network, state.get_output(0), state.get_output(0)))
    return loop, state.get_output(0), state.get_input(1)


@each_way
def test_for_loop(way):
    network = trt.INetworkDefinition()
    loop, state, double = doubling(network)
    loop.add_trip_limit(constant(network, 5, np.int32), COUNT)
    mark(network, last=last(loop, state), all=stacked(loop, double, constant(network, 6, np.int32)))
    got = run(way, network, {"x": ONES})

    np.testing.assert_array_equal(got["last"], 32 * ONES)
    np.testing.assert_array_equal(got["all"], filled([2, 4, 8, 16, 32, 0]))


@each_way
def test_for_loop_whose_count_is_an_input(way):
    network = trt.INetworkDefinition()
    loop, state, double = doubling(network)
    trips = network.add_input("t", trt.int32, ())
    loop.add_trip_limit(trips, COUNT)
    mark(network, last=last(loop, state), all=stacked(loop, double, trips))
    assert network.get_output(1).shape == (-1, 1, 2, 3, 4)
    got = run(way, network, {"x": ONES, "t": np.int32(5)})

    np.testing.assert_array_equal(got["last"], 32 * ONES)
    np.testing.assert_array_equal(got["all"], filled([2, 4, 8, 16, 32]))


@each_way
def test_while_loop(way):
    network = trt.INetworkDefinition()
    loop, state, _ = doubling(network)
    first = network.add_slice(state, (0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 1, 1)).get_output(0)
    rest = combine(
        network, constant(network, np.full((1, 1, 1, 1), 32, np.float32)), first, trt.ElementWiseOperation.SUB
    )
    rest = network.add_activation(rest, trt.ActivationType.RELU).get_output(0)
    flag = network.add_shuffle(network.add_cast(rest, trt.bool).get_output(0))
    flag.reshape_dims = ()
    loop.add_trip_limit(flag.get_output(0), WHILE)
    mark(network, last=last(loop, state), all=stacked(loop, state, constant(network, 6, np.int32)))
    got = run(way, network, {"x": ONES})

    np.testing.assert_array_equal(got["last"], 32 * ONES)
    np.testing.assert_array_equal(got["all"], filled([1, 2, 4, 8, 16, 0]))


@each_way
def test_iterator(way):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, ONES.shape)
    loop = counted(network, 2)
    total = loop.add_recurrence(constant(network, np.ones((1, 3, 4), np.float32)))
    new = combine(network, total.get_output(0), loop.add_iterator(x, 1, False).get_output(0))
    total.set_input(1, new)
    length = constant(network, 2, np.int32)
    mark(
        network,
        last=last(loop, total.get_output(0)),
        forwards=stacked(loop, new, length, CONCATENATE),
        backwards=stacked(loop, new, length, REVERSE),
    )
    got = run(way, network, {"x": ONES})

    row = np.ones((1, 3, 4), np.float32)
    np.testing.assert_array_equal(got["last"], 3 * row)
    np.testing.assert_array_equal(got["forwards"], [2 * row, 3 * row])
    np.testing.assert_array_equal(got["backwards"], [3 * row, 2 * row])


@each_way
def test_lstm(way):
    inputs = {
        "x": np.ones((3, 4, 7), np.float32),
        "h0": np.ones((3, 5), np.float32),
        "c0": np.zeros((3, 5), np.float32),
    }
    got = run(way, lstm(), inputs)

    assert_allclose(got["y"], np.full((3, 5), 0.99932283), rtol=1e-6)
    assert_allclose(got["c"], np.full((3, 5), 3.9999058), rtol=1e-6)
    steps = np.float32([0.76158684, 0.96400476, 0.99504673, 0.99932283]).reshape(1, 4, 1)
    assert_allclose(got["hs"], np.broadcast_to(steps, (3, 4, 5)), rtol=1e-6)


@each_way
@pytest.mark.parametrize(("first", "wanted"), [(0, 0), (1, 2)])
def test_if_conditional(way, first, wanted):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4,))
    head = network.add_slice(x, (0,), (1,), (1,)).get_output(0)
    flag = network.add_shuffle(network.add_cast(head, trt.bool).get_output(0))
    flag.reshape_dims = ()
    conditional = network.add_if_conditional()
    conditional.set_condition(flag.get_output(0))
    inside = conditional.add_input(x).get_output(0)
    mark(network, y=conditional.add_output(combine(network, inside, inside), inside).get_output(0))
    array = np.full(4, first, np.float32)

    np.testing.assert_array_equal(run(way, network, {"x": array})["y"], np.full(4, wanted))
