"""Models written by OpenVINO, and what netloop makes of them."""

import importlib
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import netloop

pytest.importorskip("openvino")
ov = importlib.import_module("openvino")
ops = importlib.import_module("openvino.opset16")

F = np.float32
TRUE = np.bool_(True)


def document(model):
    """The XML and the weights that OpenVINO writes of a model."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        ov.serialize(model, path)
        return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def load(model):
    """The network of a model that OpenVINO writes."""
    return netloop.openvino.load(*document(model))


def check(network, inputs, *expected, road=None):
    """Engine and reference give what is expected, element types and shapes too."""
    engine = netloop.compile(network)
    for found in (engine(inputs), netloop.evaluate(network, inputs)):
        for made, wanted in zip(map(np.asarray, found.values()), map(np.asarray, expected), strict=True):
            assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)
    if road is not None:
        assert [each.name for each in engine.roads.values()] == [road]
    return engine


def constant(value, dtype=None):
    return ops.constant(np.asarray(value, dtype))


def parameter(name, shape, dtype=np.float32):
    return ops.parameter(shape, dtype, name=name)
