"""An inspector reports layers and loops."""

import json

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.launches import Launches
from netloop.compiler.xla_compilation import XlaFunction
from tests.support.builds import length_by_value
from tests.support.gpu_programs import COUNTED, OPEN
from tests.support.networks import running_sum


def test_inspector_reports_layers_and_loops(log):
    builder = trt.Builder(log)
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = builder.build_engine_with_config(length_by_value(builder), config)
    engine({"n": np.array(3, np.int32)})
    reported = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))

    assert [value["LoopStrategy"] for value in reported["Loops"]] == ["scan"]
    assert reported["Bindings"] == ["n", "powers"]
    assert {"Name", "LayerType", "Inputs", "Outputs"} <= set(reported["Layers"][0])
    assert reported["Layers"][0]["LayerType"] == "TripLimit"
    assert reported["Layers"][0]["Loop"] == "(Unnamed Loop* 0)"


def test_inspector_reports_only_names_by_default(engine):
    reported = engine.create_engine_inspector().get_layer_information(0, trt.LayerInformationFormat.ONELINE)

    assert reported == "(Unnamed Layer* 0) [ElementWise]"


def information(engine):
    return json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))


def test_program_on_a_cpu_has_no_launches():
    engine = trt.compile(running_sum())

    assert engine.launches is None
    assert information(engine)["Launches"] is None


@pytest.mark.parametrize(("text", "call", "iteration", "count"), [(OPEN, None, 3, None), (COUNTED, 20, 2, 9)])
def test_inspector_reports_launches_on_a_gpu(monkeypatch, text, call, iteration, count):
    engine = trt.compile(running_sum())
    monkeypatch.setattr(XlaFunction, "launches", Launches.of(text))

    assert information(engine)["Launches"] == {
        "Call": call,
        "Entry": 1,
        "Loops": [{"Name": "body.1", "Iteration": iteration, "TripCount": count}],
    }
