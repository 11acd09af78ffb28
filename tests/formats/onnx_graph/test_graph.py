"""Graphs of ONNX nodes, scopes and unique names."""

import numpy as np
import pytest

import netloop as trt
from netloop.formats.onnx_graph.array_bytes import array_bytes
from netloop.formats.onnx_graph.graph import OnnxGraph, OnnxNode, Value
from netloop.formats.onnx_graph.unique_names import UniqueNames
from netloop.formats.onnx_graph.value_scope import ValueScope
from netloop.values.types import NUMPY_TYPES, TensorType

FLOAT = TensorType(np.dtype(np.float32), (2,))


def negated(graph: OnnxGraph, x: Value) -> Value:
    made = Value(x.dtype, "y")
    graph.add(OnnxNode("Neg", [x], [made], {}))
    return made


def test_computed_value_is_an_output_itself():
    graph = OnnxGraph("g")
    y = negated(graph, graph.add_input("x", FLOAT))

    assert graph.add_output(y, FLOAT) is y
    assert [node.op for node in graph.nodes] == ["Neg"]


def test_input_and_second_output_are_copied():
    graph = OnnxGraph("g")
    x = graph.add_input("x", FLOAT)
    y = negated(graph, x)
    outputs = [graph.add_output(value, FLOAT, "copy") for value in (x, y, y)]

    assert [node.op for node in graph.nodes] == ["Neg", "Identity", "Identity"]
    assert outputs[1] is y
    assert [value.name for value in outputs] == ["copy", "y", "copy"]


def test_walk_visits_nested_graphs():
    outer, inner, innermost = (OnnxGraph(name) for name in ("outer", "inner", "innermost"))
    inner.add(OnnxNode("If", [], [], {"then_branch": innermost}))
    outer.add(OnnxNode("Loop", [], [], {"body": inner, "axis": 0}))

    assert [graph.name for graph in outer.walk()] == ["outer", "inner", "innermost"]


def test_scope_sees_outer_values_and_hides_inner_ones():
    network = trt.INetworkDefinition()
    x, y = (network.add_input(name, trt.float32, (2,)) for name in "xy")
    outer = ValueScope(OnnxGraph("outer"))
    inner = outer.inside(OnnxGraph("inner"))
    outer.values[x], inner.values[y] = Value(FLOAT.dtype, "x"), Value(FLOAT.dtype, "y")

    assert inner.values[x] is outer.values[x]
    assert y not in outer.values


def test_inner_scope_has_its_own_iteration_and_ended_loops():
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    outer = ValueScope(OnnxGraph("outer"))
    inner = outer.inside()
    inner.iterations[loop] = Value(np.dtype(np.int64), "iteration")
    inner.ended.add(loop)

    assert inner.graph is outer.graph
    assert inner.inside().iterations[loop] is inner.iterations[loop]
    assert not outer.ended
    assert loop not in outer.iterations


def test_names_are_unique():
    names = UniqueNames(["x"])

    assert [names.new(name) for name in ("x", "x", "y", "x_1", "", "")] == ["x_1", "x_2", "y", "x_1_1", "_1", "_2"]


@pytest.mark.parametrize(
    ("kind", "numbers", "wanted"),
    [(trt.int4, [1, -1, 2], b"\xf1\x02"), (trt.uint2, [1, 2, 3, 0, 1], b"\x39\x01"), (trt.int32, [1], b"\x01\0\0\0")],
)
def test_small_elements_are_packed_from_the_lowest_bits(kind, numbers, wanted):
    assert array_bytes(np.array(numbers).astype(NUMPY_TYPES[kind])) == wanted
