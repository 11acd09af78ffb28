"""Comparison of an engine with other runtimes, as a report shows it."""

import numpy as np
import pytest

import netloop as trt
from netloop.tools.report.compared import compared
from netloop.tools.report.graph import Graph
from tests.support.networks import X, running_sum
from tests.support.rounding_devices import pretend


@pytest.fixture
def engine():
    """An engine of a running sum."""
    return trt.compile(running_sum())


@pytest.mark.parametrize("peer", ["reference", "onnxruntime", "openvino"])
def test_runtime_agrees_in_every_tensor(engine, peer):
    pytest.importorskip(peer) if peer != "reference" else None
    found = compared(engine, {"x": X}, peer, Graph(engine.network))

    assert found["peer"] == peer
    assert all(value["agrees"] for value in found["rows"])
    assert found["rows"][-1]["output"] == "every tensor"
    assert found["node"] == -1


def test_first_tensor_that_differs_is_a_node(engine, monkeypatch):
    pytest.importorskip("onnxruntime")
    graph, (output,) = Graph(engine.network), engine.network.outputs
    difference = trt.Difference(output.name, "line 1", {}, (0,), 1.0, 2.0, 3, "onnxruntime")
    monkeypatch.setattr("netloop.tools.peers.difference_from", lambda *_, **__: difference)

    found = compared(engine, {"x": X}, "onnxruntime", graph)

    assert found["node"] == graph.of_layer[output.producer]
    assert not found["rows"][-1]["agrees"]


def test_output_that_a_function_lacks_is_told(engine):
    found = compared(engine, {"x": X}, lambda inputs: {}, Graph(engine.network))

    assert [value["what"] for value in found["rows"]] == ["missing"]


def test_failure_of_a_call_is_told(engine):
    found = compared(engine, {}, lambda inputs: {}, Graph(engine.network))

    assert "NL602" in found["rows"][0]["what"]


@pytest.mark.usefixtures("default_precision")
@pytest.mark.parametrize("peer", ["reference", "onnxruntime"])
def test_precision_of_products_is_told(network, monkeypatch, peer):
    pytest.importorskip(peer) if peer != "reference" else None
    pretend(monkeypatch, "tensorfloat32")
    x = network.add_input("x", trt.float32, (8, 8))
    y = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, x, trt.MatrixOperation.NONE).get_output(0)
    y.name = "y"
    network.mark_output(y)
    values = {"x": np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)}
    found = compared(trt.compile(network), values, peer, Graph(network))

    assert all(row["agrees"] for row in found["rows"])
    assert all("of tensorfloat32" in row["what"] for row in found["rows"])
