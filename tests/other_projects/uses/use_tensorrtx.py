"""tensorrtx: LeNet and a line of regression, written for TensorRT 7 with an implicit batch."""

import importlib
import struct
import sys

import numpy as np
import pycuda.driver as cuda
import tensorrt as trt
import torch

from tests.other_projects.uses.models import agrees

SHAPES = {"conv1": (6, 1, 5, 5), "conv2": (16, 6, 5, 5), "fc1": (120, 400), "fc2": (84, 120), "fc3": (10, 84)}


def written(path, weights):
    """Write weights as the scripts read them: a line for each array, of big-endian numbers."""
    lines = [f"{name} {array.size} " + " ".join(struct.pack(">f", x).hex() for x in array.flat)
             for name, array in weights.items()]  # fmt: skip
    path.write_text("\n".join([str(len(lines)), *lines, ""]))


def test_lenet(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    weights = {f"{name}.weight": 0.1 * random.normal(size=shape) for name, shape in SHAPES.items()}
    weights |= {f"{name}.bias": random.normal(size=shape[0]) for name, shape in SHAPES.items()}
    written(tmp_path / "lenet5.wts", weights)
    monkeypatch.chdir(tmp_path)
    lenet = importlib.import_module("lenet.lenet")
    lenet.APIToModel(1)
    engine = trt.Runtime(lenet.gLogger).deserialize_cuda_engine((tmp_path / "lenet5.engine").read_bytes())
    data = random.normal(size=1024).astype(np.float32)
    computed = cuda.pagelocked_empty(10, np.float32)
    lenet.doInference(engine.create_execution_context(), data, computed, 1)

    named = {name: torch.from_numpy(array.astype(np.float32)) for name, array in weights.items()}
    x = torch.from_numpy(data).reshape(1, 1, 32, 32)
    for layer in ("conv1", "conv2"):
        x = torch.nn.functional.conv2d(x, named[f"{layer}.weight"], named[f"{layer}.bias"])
        x = torch.nn.functional.avg_pool2d(x.relu(), 2)
    x = x.flatten(1)
    for layer in ("fc1", "fc2", "fc3"):
        x = x @ named[f"{layer}.weight"].T + named[f"{layer}.bias"]
        x = x.relu() if layer != "fc3" else x.softmax(-1)
    agrees(computed, x[0].numpy())


def test_line(tmp_path, monkeypatch):
    written(tmp_path / "mlp.wts", {"linear.weight": np.array([3.0]), "linear.bias": np.array([0.5])})
    monkeypatch.chdir(tmp_path)
    mlp = importlib.import_module("mlp.mlp")
    monkeypatch.setattr(sys, "argv", ["mlp.py", "-s"])
    names = [name for name in dir(mlp) if not name.startswith("_")]
    serialize = next(getattr(mlp, name) for name in names if name in ("serialize_engine", "api_to_model"))
    serialize(1)
    engine = trt.Runtime(mlp.gLogger).deserialize_cuda_engine((tmp_path / "mlp.engine").read_bytes())

    agrees(engine({"data": np.full((1, 1, 1, 1), 2, np.float32)})["out"].reshape(-1), [6.5])
