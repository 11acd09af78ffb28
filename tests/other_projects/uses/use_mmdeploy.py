"""mmdeploy's backend of TensorRT: its builder, and its wrapper with an allocator and bindings."""

import h5py
import numpy as np
import pytest
import tensorrt as trt
import torch
from mmdeploy.backend.tensorrt.utils import from_onnx, load

from tests.other_projects.uses.models import agrees, classifier, expected

X = np.random.default_rng(1).normal(size=(3, 3, 32, 32)).astype(np.float32)
SHAPES = {"input": {"min_shape": (1, 3, 32, 32), "opt_shape": (2, 3, 32, 32), "max_shape": (4, 3, 32, 32)}}


def built(tmp_path, **options):
    """The path of a model, and that of its engine."""
    model = classifier(tmp_path / "model.onnx")
    from_onnx(model, str(tmp_path / "model"), SHAPES, **options)
    return model, str(tmp_path / "model.engine")


@pytest.mark.parametrize("options", [{}, {"fp16_mode": True, "max_workspace_size": 1 << 30}])
def test_engine_is_built_and_loaded(tmp_path, options):
    engine = load(built(tmp_path, **options)[1])

    assert [engine.get_binding_name(index) for index in range(engine.num_bindings)] == ["input", "output"]


def test_engine_is_calibrated(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        group = file.create_group("calib_data").create_group("end2end").create_group("input")
        group.create_dataset("0", data=X[:1])
    options = {"calib_file": str(tmp_path / "data.h5"), "model_type": "end2end"}
    load(built(tmp_path, int8_mode=True, int8_param=options, log_level=trt.Logger.INFO)[1])


def test_wrapper_runs_the_engine(tmp_path):
    from mmdeploy.backend.tensorrt import TRTWrapper

    model, engine = built(tmp_path)
    wrapper = TRTWrapper(engine, ["output"])
    computed = wrapper({"input": torch.from_numpy(X).cuda()})

    agrees(computed["output"].cpu().numpy(), expected(model, input=X)["output"])
