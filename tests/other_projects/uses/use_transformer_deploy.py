"""transformer-deploy's engines: patterns of layers by their types, profiles, and bindings by number."""

import numpy as np
import tensorrt as trt
import torch
from transformer_deploy.backends.trt_utils import TensorRTShape, build_engine, load_engine, save_engine

from tests.other_projects.uses.models import agrees, classifier, expected

SHAPES = [TensorRTShape([1, 3, 32, 32], [2, 3, 32, 32], [4, 3, 32, 32], "input")]
X = np.random.default_rng(1).normal(size=(3, 3, 32, 32)).astype(np.float32)


def built(tmp_path, **options):
    logger = trt.Logger(trt.Logger.ERROR)
    model, runtime = classifier(tmp_path / "model.onnx"), trt.Runtime(logger)
    return model, runtime, build_engine(runtime, model, logger, input_shapes=SHAPES, int8=False, **options)


def test_engine_is_built_with_fixes_of_precision(tmp_path):
    _, _, engine = built(tmp_path, fp16=True, workspace_size=1 << 20)

    assert engine.num_bindings == 2


def test_engine_is_loaded_and_run(tmp_path):
    model, runtime, engine = built(tmp_path, fp16=False)
    save_engine(engine, str(tmp_path / "model.engine"))
    run = load_engine(runtime, str(tmp_path / "model.engine"))
    computed = run({"input": torch.from_numpy(X).cuda()})

    agrees(computed["output"].cpu().numpy(), expected(model, input=X)["output"])
