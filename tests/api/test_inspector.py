"""An inspector reports layers and loops."""

import numpy as np

import netloop as trt
from tests.support.builds import length_by_value


def test_inspector_reports_layers_and_loops(log):
    import json

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
