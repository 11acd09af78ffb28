"""The data of a report's page."""

import json

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.launches import Launches
from netloop.compiler.xla_compilation import XlaFunction
from netloop.tools.report import page_model
from samples.lstm import build as lstm
from tests.support.gpu_programs import COUNTED
from tests.support.networks import X, both_limits, deep, running_sum


def test_an_engine_and_its_run_are_in_the_model():
    network = running_sum()

    model = page_model(network, {"x": X}, ["reference"])

    json.dumps(model, allow_nan=False)
    (loop,) = [node for node in model["nodes"] if node["kind"] == "loop"]
    assert loop["strategy"]["name"] in {"scan", "while"}
    assert loop["strategy"]["why"]
    assert [name for name, _ in model["engine"]["phases"]][-1] == "call"
    assert model["engine"]["times"]
    assert all(seconds >= 0 and node < len(model["nodes"]) for _, seconds, node in model["engine"]["times"])
    assert model["peers"][0]["rows"][0]["agrees"]
    assert model["run"]["not_finite"] is None


def test_iterations_of_a_run_are_in_the_model():
    model = page_model(both_limits(), {"n": np.int32(100)})

    (loop,) = [node for node in model["nodes"] if node["kind"] == "loop"]
    assert loop["strategy"]["trips"] == 5  # 1, 2, 4, 8 and 16 are below 20


def test_run_of_an_engine_ends_with_its_largest_trip_count():
    model = page_model(trt.compile(both_limits(1 << 30), max_trips=4), {"n": np.int32(100)})

    assert "executes more than 4 iterations" in model["run"]["error"]
    assert "executes more than 4 iterations" in model["engine"]["error"]


def test_launches_on_a_gpu_are_in_the_model(monkeypatch):
    assert page_model(running_sum(), {"x": X})["engine"]["launches"] is None
    monkeypatch.setattr(XlaFunction, "launches", Launches.of(COUNTED))

    launches = page_model(running_sum(), {"x": X})["engine"]["launches"]

    json.dumps(launches)
    assert launches == {
        "total": 20,
        "entry": 1,
        "loops": ({"name": "body.1", "launches": 2, "iterations": 9},),
    }


def test_an_engine_is_shown_as_its_network_is():
    network = running_sum()

    assert page_model(trt.compile(network))["nodes"][0] == page_model(network)["nodes"][0]


def test_a_peer_that_computes_something_else_is_told():
    network = running_sum()

    model = page_model(network, {"x": X}, [lambda inputs: {"y": np.zeros(3, np.float32)}])

    assert not model["peers"][0]["rows"][0]["agrees"]
    assert "differs, 3 of 3 elements" in model["peers"][0]["rows"][0]["what"]


def test_an_invalid_network_is_shown_with_its_findings(network):
    a, b = network.add_input("a", trt.float32, (2,)), network.add_input("b", trt.int32, (3,))
    layer = network.add_elementwise(a, b, trt.ElementWiseOperation.SUM)
    network.mark_output(layer.get_output(0))

    model = page_model(network)

    assert model["engine"] is None
    errors = [value for value in model["findings"] if value["severity"] == "ERROR"]
    assert model["nodes"][errors[0]["node"]]["kind"] == "ElementWise SUM"


def test_wrong_arguments_are_refused(network):
    with pytest.raises(ValueError, match="did you mean 'onnxruntime'"):
        page_model(network, {}, ["onnxruntim"])
    with pytest.raises(TypeError, match="peer"):
        page_model(network, {}, [3])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="inputs"):
        page_model(network, None, ["reference"])
    with pytest.raises(TypeError, match="network"):
        page_model("model.onnx")  # pyright: ignore[reportArgumentType]


def test_the_network_after_the_passes_is_beside_the_one_before():
    model = page_model(lstm(), {"x": np.ones((3, 3), np.float32)})

    rows = model["engine"]["rewritten"]
    assert ["replace", "  input x: float32[-1,3]", "  input x: float32[3,3]"] in rows
    assert sum("MatrixMultiply" in before for _, before, _ in rows) == 8
    assert sum("MatrixMultiply" in after for _, _, after in rows) == 2


def test_the_note_of_a_pass_is_with_the_layers_that_it_names():
    network = lstm()

    model = page_model(network, {"x": np.ones((3, 3), np.float32)})

    fused = [number for number, value in enumerate(model["engine"]["notes"]) if value["by"] == "horizontal_fusion"]
    noted = {node["index"]: node["notes"] for node in model["nodes"] if "notes" in node}
    assert noted == {5: fused[:1], 6: fused[1:]}


def test_a_network_that_is_too_deep_to_compile_is_shown_with_the_reason():
    model = page_model(deep(1500))

    assert model["engine"] is None
    assert model["findings"][-1]["severity"] == "ERROR"
    assert sum(node["kind"] == "loop" for node in model["nodes"]) == 1500
