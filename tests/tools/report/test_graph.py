"""The graph of a report's page."""

import numpy as np

import netloop as trt
from netloop.tools.report.graph import BACK, CONTROL, LONGEST_REGION, SECTION, Graph
from samples.conditional_in_loop import build as collatz
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

    back = [(source, target) for source, target, _, kind in graph.edges if kind == BACK]
    assert back == [(graph.of_layer[grown], graph.of_layer[state])]
    assert graph.nodes[graph.of_layer[state]]["role"] == "entry"


def controls(graph):
    """The kinds of the ends of the edges of conditions and limits."""
    return [
        (graph.nodes[source]["kind"], graph.nodes[target]["kind"], graph.nodes[target]["name"])
        for source, target, _, kind in graph.edges
        if kind == CONTROL
    ]


def test_limits_control_their_loop_and_conditions_their_branches():
    edges = controls(Graph(collatz()))

    assert [(source, target) for source, target, _ in edges] == [
        ("TripLimit WHILE", "loop"),
        ("Condition", "branch"),
        ("Condition", "branch"),
    ]
    assert [name for _, target, name in edges if target == "branch"] == ["then", "else"]


def test_condition_controls_the_output_where_a_branch_has_no_layers(network):
    x = network.add_input("x", trt.float32, ())
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("flag", trt.bool, ()))
    doubled = network.add_unary(x, trt.UnaryOperation.EXP).get_output(0)
    mark(network, y=choice.add_output(choice.add_input(doubled).get_output(0), x).get_output(0))

    assert [target.split()[0] for _, target, _ in controls(Graph(network))][-1] == "IfConditionalOutput"


def test_small_constants_have_their_numbers(network):
    network.add_constant((3,), np.int32([1, 2, 3]))
    network.add_constant((9,), np.zeros(9, np.int32))

    attributes = [dict(node["attributes"]) for node in Graph(network).nodes if "index" in node]
    assert [each.get("numbers") for each in attributes] == ["[1, 2, 3]", None]


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


def chain(network, names):
    """A chain of layers with some names, each after a constant that nobody named."""
    x = network.add_input("x", trt.float32, (1,))
    for name in names:
        layer = network.add_elementwise(x, constant(network, [1], np.float32), trt.ElementWiseOperation.SUM)
        layer.name = name
        x = layer.get_output(0)
    return mark(network, y=x)


def sections(graph):
    return [node["name"] for node in graph.nodes if node["kind"] == "section"]


def test_long_sequence_is_divided_by_the_scopes_of_its_names(network):
    names = [f"/model/layer{block}/{part}/add" for block in range(3) for part in range(60)]
    graph = Graph(chain(network, [*names, "/model/head/add"]))

    assert sections(graph) == ["layer0", "layer1", "layer2"]
    alone = next(node for node in graph.nodes if node["name"] == "/model/head/add")
    assert alone["parent"] == -1


def test_constants_are_with_the_layers_that_read_them(network):
    graph = Graph(chain(network, [f"block{block}/{part}" for block in range(2) for part in range(70)]))
    boxes = [number for number, node in enumerate(graph.nodes) if node["kind"] == "section"]

    assert sections(graph) == ["block0", "block1"]
    inside = [[node["kind"] for node in graph.nodes if node["parent"] == box] for box in boxes]
    assert [kinds.count("ElementWise SUM") for kinds in inside] == [70, 70]


def test_sequence_without_scopes_is_divided_by_number(network):
    graph = Graph(chain(network, [f"add{number}" for number in range(100)]))

    assert sections(graph)[0] == "steps 0-59"


def test_windows_say_their_shape_and_strides(network):
    x = network.add_input("x", trt.float32, (1, 4, 16, 16))
    convolution = network.add_convolution_nd(x, 8, (3, 3), np.zeros((8, 2, 3, 3), np.float32))
    convolution.stride_nd, convolution.num_groups = (2, 2), 2
    pooling = network.add_pooling_nd(convolution.get_output(0), trt.PoolingType.MAX, (2, 3))
    pooling.stride_nd = (1, 2)
    graph = Graph(mark(network, y=pooling.get_output(0)))

    kinds = [graph.nodes[graph.of_layer[layer]]["kind"] for layer in (convolution, pooling)]
    assert kinds == ["Convolution 3x3 s2 g2", "Pooling MAX 2x3 s1x2"]
