"""The graph of a report's page."""

import numpy as np

import netloop as trt
from netloop.tools.report.graph import LONGEST_REGION, SECTION, Graph
from tests.support.networks import EXAMPLES, constant, last, mark, nested


def test_loops_are_boxes_in_boxes():
    network = nested()
    graph = Graph(network)

    inner = [node for node in graph.nodes if node["kind"] == "loop" and node["parent"] >= 0]

    assert len(inner) == 1
    assert graph.nodes[inner[0]["parent"]]["kind"] == "loop"


def test_every_layer_is_one_node_in_every_example():
    for example in EXAMPLES.values():
        network = example.make()
        graph = Graph(network)
        assert sorted(node["index"] for node in graph.nodes if "index" in node) == list(range(network.num_layers))
        assert all(node["parent"] < number for number, node in enumerate(graph.nodes))


def test_only_the_next_value_of_a_recurrence_is_a_back_edge(network):
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, np.int32(2)), trt.TripLimit.COUNT)
    state = loop.add_recurrence(network.add_input("x", trt.float32, ()))
    grown = network.add_unary(state.get_output(0), trt.UnaryOperation.EXP)
    state.set_input(1, grown.get_output(0))
    mark(network, y=last(loop, state.get_output(0)))

    graph = Graph(network)

    back = [(source, target) for source, target, _, is_back in graph.edges if is_back]
    assert back == [(graph.of_layer[grown], graph.of_layer[state])]
    assert graph.nodes[graph.of_layer[state]]["role"] == "entry"


def test_long_regions_become_sections(network):
    x = network.add_input("x", trt.float32, ())
    for _ in range(5000):
        x = network.add_identity(x).get_output(0)
    network.mark_output(x)

    nodes = Graph(network).nodes

    sizes = [sum(node["parent"] == parent for node in nodes) for parent in range(-1, 200)]
    assert max(sizes) <= LONGEST_REGION
    assert sum(node["kind"] == "section" for node in nodes) >= 5000 // SECTION
    last = nodes[next(node["parent"] for node in nodes if node.get("index") == 4999)]
    assert last["name"].endswith("-4999")


def test_a_network_whose_nesting_is_undefined_is_shown_flat(network):
    x = network.add_input("x", trt.float32, ())
    conditional = network.add_if_conditional()
    inside = conditional.add_input(x).get_output(0)
    network.mark_output(conditional.add_output(inside, inside).get_output(0))

    graph = Graph(network)

    assert "has no condition" in graph.undefined
    assert len(graph.of_layer) == 2
