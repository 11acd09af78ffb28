"""Models that OpenVINO converts, compared with its plugin and with onnxruntime."""

import numpy as np
import onnx
import openvino
import pytest
from onnx import TensorProto, helper

from tests.real_models.openvino_peer import measure_converted
from tests.real_models.recipe import save_inputs


@pytest.fixture(autouse=True)
def converter(monkeypatch):
    """The converter without its telemetry, which forks, and JAX forbids that."""
    monkeypatch.setattr(openvino, "convert_model", openvino.Core().read_model)


def saved(folder, operator):
    """A model of one operator, with inputs of two sizes."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "one", ends[:1], ends[1:])
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    save_inputs(path, [{"x": np.linspace(-1, 1, n, dtype=np.float32)} for n in (3, 5)])
    return path


@pytest.mark.slow
def test_converted_model_agrees_with_both_runtimes(tmp_path):
    result = measure_converted(saved(tmp_path, "Relu"))

    assert result["state"] == "agrees"
    assert [value["agrees_with_second"] for value in result["sizes"]] == [True, True]


def test_model_that_openvino_does_not_convert_is_recorded(tmp_path):
    assert measure_converted(saved(tmp_path, "Optional"))["state"] == "not in OpenVINO"
