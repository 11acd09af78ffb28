"""``netloop debug`` finds planted faults."""

import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer


@pytest.fixture
def wrong(monkeypatch):
    """Engines compute the layers of a kind with an error of 1 %."""

    def plant(kind, name=None):
        right = kind.lower

        def lower(self, *arrays):
            made = right(self, *arrays)
            return 1.01 * made if name in (None, self.outputs[0].name) else made

        monkeypatch.setattr(kind, "lower", lower)

    return plant


@pytest.mark.parametrize("arguments", ["", "--against onnxruntime", "--against openvino"])
@pytest.mark.parametrize("model", ["model.py", "model.onnx"])
def test_nothing_differs(models, run, model, arguments):
    pytest.importorskip("openvino")
    done = run(f"debug {model} --inputs inputs.npz {arguments}")

    assert done.status == 0
    assert "differs first" not in done.out


@pytest.mark.parametrize("against", ["reference", "onnxruntime", "openvino"])
def test_first_tensor_and_its_layer_alone(models, run, wrong, against):
    pytest.importorskip("openvino")
    wrong(IActivationLayer)
    done = run(f"debug model.py --inputs inputs.npz --against {against} --output part.onnx")

    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("'bent' differs first at [0, 2]: the engine computes -0.97")
    assert lines[1].startswith("  at model.py:9, IActivationLayer")
    assert "the smallest part that differs has 1 layer, constants left out:" in lines
    assert lines[-1] == "part.onnx, part.onnx.npz: the part and its inputs"
    part, inputs = trt.onnx.load("part.onnx"), np.load("part.onnx.npz")
    assert [type(layer) for layer in part.layers] == [trt.IActivationLayer]
    assert inputs.files == ["x"]
    np.testing.assert_allclose(trt.evaluate(part, dict(inputs))["bent"], np.tanh(inputs["x"]), rtol=1e-6)


@pytest.mark.parametrize("against", ["reference", "onnxruntime"])
def test_fault_in_a_loop_is_told_with_its_iteration(models, run, wrong, against):
    wrong(IElementWiseLayer, "following")
    done = run(f"debug model.py --inputs inputs.npz --against {against} --output part.plan")

    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("'following' differs first in iteration 0 of 'steps' at [0, 2]: ")
    part, inputs = trt.plan.load("part.plan"), np.load("part.plan.npz")
    assert (part.num_inputs, len(part.loops)) == (1, 1)
    assert not [layer for layer in part.layers if isinstance(layer, trt.IActivationLayer)]
    np.testing.assert_allclose(inputs["bent"], np.tanh(np.load("inputs.npz")["x"]), rtol=1e-6)
    np.testing.assert_allclose(trt.evaluate(part, dict(inputs))["y"], inputs["bent"] * 1.9375, rtol=1e-6)


def test_fault_of_the_importer_is_found_in_the_file(models, run, monkeypatch):
    """The export of a wrong network would agree with it, so onnxruntime runs the file itself."""
    load = trt.onnx.load

    def wrong_load(path):
        network = load(path)
        layer = next(layer for layer in network.layers if isinstance(layer, trt.IActivationLayer))
        layer.type = trt.ActivationType.SIGMOID
        return network

    monkeypatch.setattr(trt.onnx, "load", wrong_load)
    done = run("debug model.onnx --inputs inputs.npz --against onnxruntime")

    assert done.status == 1
    assert done.out.startswith("'bent' differs first at ")
    assert done.out.endswith("no part of the network differs by itself\n")


def test_fault_that_only_the_whole_network_has(models, run, monkeypatch):
    right = trt.ICudaEngine.__call__
    monkeypatch.setattr(trt.ICudaEngine, "__call__", lambda self, given: {"y": 2 * right(self, given)["y"]})
    done = run("debug model.py --inputs inputs.npz --against onnxruntime")

    assert done.status == 1
    assert done.out.startswith(
        "no tensor differs from onnxruntime\nloop 'steps': 4 iterations\ny: differs, 2 of 3 elements"
    )
    assert done.out.endswith("when no other tensors are outputs: what they fuse makes the difference\n")
