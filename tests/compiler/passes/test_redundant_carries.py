"""Constant and equal recurrences are not carried."""

import numpy as np
import pytest

import netloop as trt
from tests.support.cells import by_number, kept
from tests.support.nests import shift_register
from tests.support.networks import Op, combine, constant, counted, last, mark
from tests.support.pass_checks import count, improved

pytestmark = pytest.mark.usefixtures("low_thresholds")


def test_constant_and_equal_states_are_not_carried():
    network = kept()
    merged = improved(network, ["redundant_carries"])

    assert [count(definition, trt.IRecurrenceLayer) for definition in (network, merged.network)] == [4, 2]


def test_counters_with_the_same_start_are_one():
    network = by_number()

    assert count(improved(network, ["redundant_carries"]).network, trt.IRecurrenceLayer) == 2


def test_long_shift_register_is_left_alone():
    network = shift_register(2000)

    assert count(improved(network, ["redundant_carries"]).network, trt.IRecurrenceLayer) == 2000


def test_states_that_other_layers_change_stay_apart():
    network = trt.INetworkDefinition()
    loop = counted(network, 3)
    zeros = constant(network, np.zeros(2, np.int32))
    up, down, best, place = (loop.add_recurrence(zeros) for _ in range(4))
    one = constant(network, np.int32([1, 2]))
    up.set_input(1, combine(network, up.get_output(0), one))
    down.set_input(1, combine(network, down.get_output(0), one, Op.SUB))
    row = loop.add_iterator(network.add_input("x", trt.int32, (3, 2))).get_output(0)
    top = network.add_topk(row, trt.TopKOperation.MAX, 2, 1)
    for state, value in zip((best, place), top.outputs, strict=True):
        state.set_input(1, combine(network, state.get_output(0), value))
    states = {"up": up, "down": down, "best": best, "place": place}
    mark(network, **{name: last(loop, state.get_output(0)) for name, state in states.items()})
    got = trt.compile(network, passes=["redundant_carries"])({"x": np.int32([[5, 7]] * 3)})

    assert {name: value.tolist() for name, value in got.items()} == {
        "up": [3, 6],
        "down": [-3, -6],
        "best": [21, 15],
        "place": [3, 0],
    }


@pytest.mark.parametrize(("size", "more"), [(2000, 1.0), (3, 1e-12)])
def test_states_of_other_long_or_precise_weights_stay_apart(size, more):
    network = trt.INetworkDefinition()
    loop, x = counted(network, 2), network.add_input("x", trt.float64, (1, size, 1, 1))
    for name, factor in (("y", 2.0), ("z", 2.0 + more)):
        kernel = np.full((size, 1, 1, 1), 2.0)
        kernel[size // 2] = factor
        state = loop.add_recurrence(x)
        layer = network.add_convolution_nd(state.get_output(0), size, (1, 1), trt.Weights(kernel), trt.Weights())
        layer.num_groups = size
        state.set_input(1, layer.get_output(0))
        mark(network, **{name: last(loop, state.get_output(0))})

    assert count(improved(network, ["redundant_carries"]).network, trt.IRecurrenceLayer) == 2
