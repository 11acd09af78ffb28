"""The structure of exported networks: loops and conditionals."""

import netloop as trt
from netloop.formats.onnx_graph.exporter import NetworkExporter
from netloop.model.check import require_valid
from tests.support.networks import CONCATENATE, WHILE, Op, combine, counted, counter, last, mark, running_sum


def exported(network):
    return NetworkExporter(network, require_valid(network), drop_assertions=False).graph()


def ops(graph):
    return [node.op for node in graph.nodes]


def test_counted_loop_is_a_loop_with_a_constant_trip_count():
    (loop,) = exported(running_sum(4)).nodes
    body = loop.attributes["body"]

    assert (loop.op, loop.inputs[0].array, loop.inputs[1].array) == ("Loop", 4, True)
    assert [value.name for value, _ in body.inputs][:2] == ["iteration", "condition"]
    assert ops(body) == ["Gather", "Add", "Identity"]


def test_while_is_evaluated_before_the_loop_and_at_the_end_of_each_iteration():
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, network.add_input("n", trt.int32, ()), Op.LESS), WHILE)
    graph = exported(mark(network, y=last(loop, now)))

    assert ops(graph) == ["Less", "Loop"]
    assert graph.nodes[1].inputs[0] is None
    assert ops(graph.nodes[1].attributes["body"]).count("Less") == 1


def test_stack_longer_than_its_iterations_is_padded():
    assert ops(exported(running_sum(2, CONCATENATE, length=2))) == ["Loop"]
    assert "Concat" in ops(exported(running_sum(2, CONCATENATE, length=3)))


def test_loop_without_used_outputs_is_left_out():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (3,))
    loop = counted(network, 2)
    counter(network, loop)

    assert ops(exported(mark(network, y=combine(network, x, x)))) == ["Add"]


def test_conditional_is_an_if_with_a_graph_for_each_branch():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    inside = choice.add_input(x).get_output(0)
    twice = combine(network, inside, inside)
    graph = exported(mark(network, y=choice.add_output(twice, x).get_output(0)))

    assert ops(graph) == ["If"]
    assert [ops(graph.nodes[0].attributes[name]) for name in ("then_branch", "else_branch")] == [["Add"], ["Identity"]]
