"""YOLOv8-TensorRT: its engines on PyTorch, on CUDA's package for Python, and on pycuda."""

import importlib

import numpy as np
import pytest
import tensorrt as trt
import torch

from tests.other_projects.uses.models import agrees, classifier, expected

X = np.random.default_rng(1).normal(size=(2, 3, 32, 32)).astype(np.float32)


@pytest.fixture(params=[("batch", 3, 32, 32), (2, 3, 32, 32)], ids=["open", "fixed"])
def files(request, tmp_path):
    """A model and the path of its engine."""
    model = classifier(tmp_path / "model.onnx", request.param)
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network, config = builder.create_network(1), builder.create_builder_config()
    assert trt.OnnxParser(network, logger).parse_from_file(model)
    profile = builder.create_optimization_profile()
    profile.set_shape("input", (1 if request.param[0] == "batch" else 2, 3, 32, 32), X.shape, X.shape)
    config.add_optimization_profile(profile)
    (tmp_path / "model.engine").write_bytes(builder.build_serialized_network(network, config))
    return model, tmp_path / "model.engine"


def test_engine_on_pytorch(files):
    model, path = files
    engine = importlib.import_module("models.engine").TRTModule(path, torch.device("cuda:0"))

    agrees(engine(torch.from_numpy(X).cuda()).cpu().numpy(), expected(model, input=X)["output"])


@pytest.mark.parametrize("module", ["cudart_api", "pycuda_api"])
def test_engine_on_addresses(files, module):
    model, path = files
    engine = importlib.import_module(f"models.{module}").TRTEngine(path)

    agrees(engine(X), expected(model, input=X)["output"])
