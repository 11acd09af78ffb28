"""Ultralytics' export to TensorRT and its backend, which captures fixed shapes as a graph of PyTorch's."""

import numpy as np
import pytest
import torch
from ultralytics.nn.backends.tensorrt import TensorRTBackend
from ultralytics.utils.export.engine import onnx2engine

from tests.other_projects.uses.models import agrees, classifier, expected

X = np.random.default_rng(1).normal(size=(1, 3, 32, 32)).astype(np.float32)
NAMES = ("images", "output0")


def backend(path):
    """The backend with an engine."""
    return TensorRTBackend(path, torch.device("cuda:0"))


@pytest.mark.parametrize("dynamic", [False, True])
def test_engine_is_exported_and_run(tmp_path, dynamic):
    shape = ("batch", 3, "height", "width") if dynamic else X.shape
    model = classifier(tmp_path / "model.onnx", shape, NAMES)
    path = onnx2engine(model, dynamic=dynamic, shape=X.shape, workspace=1, metadata={"stride": 32, "names": {0: "a"}})
    run = backend(path)
    for factor in (1, 2):
        images = factor * (np.repeat(X, 2, axis=2) if dynamic else X)
        (computed,) = run.forward(torch.from_numpy(images).cuda())
        agrees(computed.cpu().numpy(), expected(model, images=images)["output0"])
    assert [*run.names.values()] == ["a"]
    assert (run.graph is None) == dynamic
