"""``polygraphy run --netloop``, with the real Polygraphy, and its runner."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from polygraphy.comparator import Comparator

import netloop.onnx
from netloop.tools.compat.polygraphy_plugin import export_argument_groups
from netloop.tools.compat.polygraphy_runner import NetloopRunner
from tests.support import networks

GROUP = "polygraphy.run.plugins"


@pytest.fixture
def model(tmp_path):
    """The file of a model with a loop, whose input has an open length."""
    network = networks.EXAMPLES["running sums"].make()
    netloop.onnx.save(network, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_runner_is_compared_with_onnxruntime(model):
    runners = [
        OnnxrtRunner(SessionFromOnnx(str(model))),
        NetloopRunner(netloop.onnx.to_model(netloop.onnx.load(model))),
    ]
    results = Comparator.run(runners)

    assert bool(Comparator.compare_accuracy(results))
    assert results[1][0].startswith("netloop-runner")


def test_inputs_have_their_types_and_open_lengths():
    network = netloop.INetworkDefinition()
    x = network.add_input("x", netloop.float32, (2, -1))
    network.mark_output(network.add_unary(x, netloop.UnaryOperation.NEG).get_output(0))
    with NetloopRunner(netloop.onnx.to_model(network)) as runner:
        found = runner.get_input_metadata(use_numpy_dtypes=False)
        assert list(found) == ["x"]
        assert list(found["x"].shape) == [2, None]
        outputs = runner.infer({"x": np.ones((2, 3), np.float32)})

    (y,) = outputs.values()
    np.testing.assert_array_equal(y, -np.ones((2, 3), np.float32))


def test_polygraphy_finds_the_plugin():
    (found,) = (point for point in entry_points(group=GROUP) if point.name == "netloop")

    assert found.load() is export_argument_groups


def test_command_line_compares(model):
    polygraphy = Path(sys.executable).with_name("polygraphy")
    command = [polygraphy, "run", model, "--onnxrt", "--netloop"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "netloop-runner" in ran.stdout
    assert "PASSED" in ran.stdout
