"""TensorRT-For-YOLO-Series: its exporter builds engines in three precisions, calibrated with pictures."""

import numpy as np
import PIL.Image
import pytest
import tensorrt as trt
from export import EngineBuilder

from tests.other_projects.uses.models import agrees, classifier, expected


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_engine_is_built(tmp_path, precision):
    model, engine = classifier(tmp_path / "model.onnx", shape=(1, 3, 32, 32)), tmp_path / "model.engine"
    for index in range(2):
        PIL.Image.new("RGB", (32, 32), (index * 80, 10, 200)).save(tmp_path / f"{index}.jpg")
    builder = EngineBuilder()
    builder.create_network(model, end2end=False, conf_thres=0.4, iou_thres=0.5, max_det=10, v8=False)
    builder.create_engine(str(engine), precision, str(tmp_path), str(tmp_path / "cache"), 2, 1)
    loaded = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(engine.read_bytes())
    x = np.random.default_rng(1).normal(size=(1, 3, 32, 32)).astype(np.float32)

    agrees(loaded({"input": x})["output"], expected(model, input=x)["output"])
