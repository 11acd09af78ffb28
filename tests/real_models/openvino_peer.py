"""One model that OpenVINO converts from ONNX, in netloop and in OpenVINO's plugin for CPUs."""

from pathlib import Path
from typing import Any

import openvino

import netloop
import netloop.openvino
from tests.real_models.agreement import errors
from tests.real_models.measure import Expected, OnnxRuntime, measured
from tests.real_models.recipe import Inputs, load_inputs
from tests.real_models.records import one_line

AS_WRITTEN = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO", "INFERENCE_NUM_THREADS": 1}
"""The options by which the plugin computes what a model says: in float32, without kernels of 8 bits in its place."""


class OpenVino:
    """OpenVINO's outputs, with the noise of onnxruntime and the difference between the two.

    Attributes:
        names: the names of the inputs in the ONNX model, by those of OpenVINO's parameters and in their order.
        from_onnxruntime: the largest error of OpenVINO's outputs of all calls, compared with onnxruntime's.
    """

    def __init__(self, path: Path, model: openvino.Model, given: Inputs) -> None:
        self.names = {
            tensor.node.friendly_name: next(name for name in tensor.names if name in given) for tensor in model.inputs
        }
        self.compiled = openvino.Core().compile_model(model, "CPU", AS_WRITTEN)
        self.onnxruntime = OnnxRuntime(path)
        self.from_onnxruntime = 0.0

    def __call__(self, inputs: Inputs) -> Expected:
        reference, noise, _ = self.onnxruntime({self.names[name]: array for name, array in inputs.items()})
        outputs = list(self.compiled([inputs[name] for name in self.names]).values())
        self.from_onnxruntime = max(self.from_onnxruntime, *errors(outputs, reference))
        return Expected(outputs, noise, reference)


def measure_converted(path: Path) -> dict[str, Any]:
    """Convert a model by OpenVINO, and load and run it at all of its sizes."""
    sizes = load_inputs(path)
    try:
        model = openvino.convert_model(path)
        peer = OpenVino(path, model, sizes[0])
        named = [{name: inputs[given] for name, given in peer.names.items()} for inputs in sizes]
        peer(named[0])
    except Exception as failure:  # OpenVINO raises RuntimeError and kinds of its own
        return {"state": "not in OpenVINO", "sizes": [], "reason": one_line(failure)}
    file = path.with_suffix(".xml")
    openvino.save_model(model, file, compress_to_fp16=False)
    result = measured(lambda: netloop.openvino.load(file), named, lambda: peer)
    return {**result, "openvino_from_onnxruntime": peer.from_onnxruntime}
