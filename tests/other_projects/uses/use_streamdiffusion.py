"""StreamDiffusion's engines: built and loaded by Polygraphy, with bindings by name, and with a CUDA graph."""

import sys

import diffusers.models.autoencoders.autoencoder_tiny
import diffusers.models.autoencoders.vae
import diffusers.models.unets.unet_2d_condition
import numpy as np
import pytest
import torch
from polygraphy import cuda
from polygraphy.backend.trt import util

from tests.other_projects.uses.models import agrees, classifier, expected

# the places that these modules of diffusers have left since
sys.modules["diffusers.models.autoencoder_tiny"] = diffusers.models.autoencoders.autoencoder_tiny
sys.modules["diffusers.models.vae"] = diffusers.models.autoencoders.vae
sys.modules["diffusers.models.unet_2d_condition"] = diffusers.models.unets.unet_2d_condition
util.get_bindings_per_profile = lambda engine: engine.num_bindings // engine.num_optimization_profiles
from streamdiffusion.acceleration.tensorrt.utilities import Engine  # noqa: E402

X = np.random.default_rng(1).normal(size=(2, 3, 32, 32)).astype(np.float32)


@pytest.mark.parametrize("graph", [False, True])
def test_engine(tmp_path, graph):
    model = classifier(tmp_path / "model.onnx")
    engine, stream = Engine(str(tmp_path / "model.engine")), cuda.Stream()
    engine.build(model, fp16=False, input_profile={"input": [(1, 3, 32, 32), X.shape, (4, 3, 32, 32)]})
    engine.load()
    engine.activate()
    engine.allocate_buffers({"input": X.shape, "output": (2, 10)}, device="cuda")
    for factor in (1, 2, 3):
        computed = engine.infer({"input": torch.from_numpy(factor * X).cuda()}, stream, use_cuda_graph=graph)
        agrees(computed["output"].cpu().numpy(), expected(model, input=factor * X)["output"])


def test_weights_are_refitted(tmp_path):
    model = classifier(tmp_path / "model.onnx", shape=(2, 3, 32, 32))
    engine, stream = Engine(str(tmp_path / "model.engine")), cuda.Stream()
    engine.build(model, fp16=False, enable_refit=True)
    engine.load()
    engine.refit(model, model)
    engine.activate()
    engine.allocate_buffers(device="cuda")
    computed = engine.infer({"input": torch.from_numpy(X).cuda()}, stream)
    agrees(computed["output"].cpu().numpy(), expected(model, input=X)["output"])
