"""PaddleDetection's script for engines: what it finds in an image is what the engine computes of it."""

import json
import runpy
import sys

import cv2
import numpy as np
import onnx
import tensorrt as trt
import yaml
from onnx import TensorProto, helper
from preprocess import Compose

from tests.other_projects.uses.models import expected, saved

SIZE, COUNT = 32, 5
SHAPES = {"num_dets": (1, 1), "det_boxes": (1, COUNT, 4), "det_scores": (1, COUNT), "det_classes": (1, COUNT)}
CONFIG = {
    "arch": "PPYOLOE",
    "Preprocess": [
        {"type": "Resize", "target_size": [SIZE, SIZE], "keep_ratio": False, "interp": 2},
        {"type": "NormalizeImage", "mean": [0.5] * 3, "std": [0.25] * 3, "is_scale": True},
        {"type": "Permute"},
    ],
    "min_subgraph_size": 3,
    "label_list": ["thing"],
    "use_dynamic_shape": False,
}


def detector(path):
    """A model with the outputs of a detector: products of the means of the image."""
    random = np.random.default_rng(0)
    weights = {name: random.uniform(1, 2, (3, np.prod(shape))).astype(np.float32) for name, shape in SHAPES.items()}
    shapes = {f"{name}_shape": np.int64(shape) for name, shape in SHAPES.items()}
    weights["num_dets"] = np.zeros((3, 1), np.float32)
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["means"]),
        helper.make_node("Flatten", ["means"], ["rows"]),
        helper.make_node("MatMul", ["rows", "num_dets_weight"], ["zero"]),
        helper.make_node("Add", ["zero", "count"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["num_dets"], to=TensorProto.INT32),
        *(node for name in list(SHAPES)[1:] for node in (
            helper.make_node("MatMul", ["rows", f"{name}_weight"], [f"{name}_flat"]),
            helper.make_node("Reshape", [f"{name}_flat", f"{name}_shape"], [name]),
        )),
    ]  # fmt: skip
    named = {f"{name}_weight": array for name, array in weights.items()}
    weights = {**named, **shapes, "count": np.float32([[COUNT]])}
    model = onnx.load(saved(path, nodes, {"image": (1, 3, SIZE, SIZE)}, SHAPES, weights))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    onnx.save(model, path)
    return str(path)


def engine_of(model, path):
    """Build the engine of a model."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    assert trt.OnnxParser(network, logger).parse_from_file(model)
    path.write_bytes(builder.build_serialized_network(network, builder.create_builder_config()))
    return path


def test_detections_are_those_of_the_engine(tmp_path, monkeypatch):
    model = detector(tmp_path / "model.onnx")
    engine, config, image = engine_of(model, tmp_path / "model.trt"), tmp_path / "infer_cfg.yml", tmp_path / "7.png"
    config.write_text(yaml.safe_dump(CONFIG))
    cv2.imwrite(str(image), np.random.default_rng(1).integers(0, 255, (40, 50, 3), np.uint8))
    options = ["--infer_cfg", config, "--trt_engine", engine, "--image_file", image, "--save_coco"]
    monkeypatch.setattr(sys, "argv", ["trt_infer.py", *map(str, options)])
    monkeypatch.chdir(tmp_path)
    script = next(path for folder in sys.path if (path := f"{folder}/trt_infer.py") and folder.endswith("onnx_trt"))
    runpy.run_path(script, run_name="__main__")
    results = json.loads((tmp_path / "results.json").read_text())
    wanted = expected(model, image=Compose(CONFIG["Preprocess"])(str(image))["image"][None])

    assert [result["image_id"] for result in results] == [7] * COUNT
    np.testing.assert_allclose([result["score"] for result in results], wanted["det_scores"][0], rtol=1e-4)
    low, high = np.split(wanted["det_boxes"][0], 2, axis=1)
    np.testing.assert_allclose([result["bbox"] for result in results], np.hstack([low, high - low]), rtol=1e-3)
