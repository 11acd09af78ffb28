"""How many trips of a small body are made at a time."""

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import combine, constant, counted, last, mark, stacked

TRIPS = 37


def halved(layers, elements, stacks):
    """A state that each layer halves."""
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    state = loop.add_recurrence(network.add_input("s", trt.float32, (elements,)))
    tensor = state.get_output(0)
    for _ in range(layers):
        tensor = combine(network, tensor, np.float32([0.5]), trt.ElementWiseOperation.PROD)
    state.set_input(1, tensor)
    return mark(
        network,
        y=stacked(loop, tensor, constant(network, TRIPS, np.int32)) if stacks else last(loop, state.get_output(0)),
    )


def chosen(elements):
    """A state that goes one of two ways, of one layer each, as each trip says."""
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    condition = loop.add_iterator(network.add_input("flags", trt.bool, (TRIPS,))).get_output(0)
    state = loop.add_recurrence(network.add_input("s", trt.float32, (elements,)))
    s, choice = state.get_output(0), network.add_if_conditional()
    choice.set_condition(condition)
    ways = (combine(network, s, np.float32([each]), trt.ElementWiseOperation.PROD) for each in (0.5, 0.9))
    state.set_input(1, choice.add_output(*ways).get_output(0))
    return mark(network, y=last(loop, s))


def trips_at_a_time(network):
    """What the notes of an engine tell."""
    told = [str(each) for each in trt.compile(network, passes=["loop_unrolling"]).notes]
    return int(told[0].split()[1]) if told else 1


@pytest.mark.parametrize(
    ("layers", "elements", "trips"),
    [(3, 1, 16), (4, 8, 16), (4, 16, 8), (4, 64, 2), (16, 1, 8), (16, 16, 2), (17, 16, 1), (32, 4, 4)],
)
def test_at_most_512_elements_are_computed_at_a_time(layers, elements, trips):
    assert trips_at_a_time(halved(layers, elements, stacks=False)) == trips


@pytest.mark.parametrize(("layers", "elements"), [(33, 1), (1, 65)])
def test_body_that_is_not_small_makes_its_trips_one_by_one(layers, elements):
    assert trips_at_a_time(halved(layers, elements, stacks=False)) == 1


@pytest.mark.parametrize(("layers", "elements", "trips"), [(3, 1, 8), (16, 1, 4), (32, 1, 2), (3, 2, 1)])
def test_half_as_many_trips_are_made_at_a_time_where_they_stack_single_numbers(layers, elements, trips):
    assert trips_at_a_time(halved(layers, elements, stacks=True)) == trips


@pytest.mark.parametrize(("elements", "trips"), [(8, 16), (16, 8), (64, 2)])
def test_conditional_counts_with_both_branches(elements, trips):
    assert trips_at_a_time(chosen(elements)) == trips


@pytest.mark.parametrize("stacks", [False, True])
def test_trips_that_are_left_over_are_made_too(stacks):
    inputs = {"s": np.float32([3])}
    network = halved(3, 1, stacks)

    np.testing.assert_allclose(trt.compile(network)(inputs)["y"], trt.evaluate(network, inputs)["y"], rtol=1e-6)
