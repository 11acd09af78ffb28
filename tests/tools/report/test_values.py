"""The values of a run on a report's page."""

import numpy as np

import netloop as trt
from netloop.tools.report.graph import Graph
from netloop.tools.report.values import number, run_values
from tests.support.networks import LAST, counted, mark


def grown(network):
    """A network whose state is squared in each of 4 trips."""
    loop = counted(network, 4)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (2,)))
    square = network.add_elementwise(state.get_output(0), state.get_output(0), trt.ElementWiseOperation.PROD)
    state.set_input(1, square.get_output(0))
    mark(network, y=loop.add_loop_output(state.get_output(0), LAST).get_output(0))
    return state, square


def test_values_are_listed_trip_by_trip(network):
    state, _ = grown(network)
    graph = Graph(network)

    found = run_values(network, trt.trace(network, {"x": np.float32([2, 3])}), graph)

    (shown,) = found["nodes"][graph.of_layer[state]]
    assert shown["max"][:3] == [3.0, 9.0, 81.0]
    assert shown["min"][:3] == [2.0, 4.0, 16.0]
    assert shown["cells"][1] == [4.0, 9.0]
    assert found["not_finite"] is None


def test_the_first_trip_with_infinity_is_found(network):
    _, square = grown(network)
    graph = Graph(network)

    found = run_values(network, trt.trace(network, {"x": np.float32([1, 1e30])}), graph)

    assert found["not_finite"]["trips"] == [0]
    assert found["not_finite"]["node"] == graph.of_layer[square]
    assert found["nodes"][graph.of_layer[square]][0]["nan"][0] == 1


def test_numbers_that_json_lacks_are_texts():
    assert [number(other) for other in (np.nan, np.inf, -np.inf, 1 / 3)] == ["nan", "inf", "-inf", 0.333333]
