"""ONNX models made for the uses of other projects, and what onnxruntime computes with them."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


def saved(path, nodes, inputs, outputs, weights):
    """Save a model of float32 tensors, whose inputs and outputs are shapes by name; the path as text."""
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in end.items()]
            for end in (inputs, outputs)]  # fmt: skip
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "model", *ends, initializers)
    opset = [helper.make_opsetid("", OPSET)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    return str(path)


def classifier(path, shape=("batch", 3, 32, 32), names=("input", "output"), count=10):
    """A convolution, a mean over the image and a product."""
    source, result = names
    random = np.random.default_rng(0)
    weights = {
        "kernel": random.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "bias": random.normal(size=4).astype(np.float32),
        "matrix": random.normal(size=(4, count)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", [source, "kernel", "bias"], ["image"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["image"], ["positive"]),
        helper.make_node("GlobalAveragePool", ["positive"], ["means"]),
        helper.make_node("Flatten", ["means"], ["rows"]),
        helper.make_node("MatMul", ["rows", "matrix"], [result]),
    ]
    return saved(path, nodes, {source: shape}, {result: (shape[0], count)}, weights)


def expected(path, **inputs):
    """The outputs of onnxruntime by name."""
    session = onnxruntime.InferenceSession(str(Path(path)), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def agrees(computed, wanted):
    """Check numbers of float32 against those of onnxruntime."""
    np.testing.assert_allclose(np.asarray(computed), wanted, rtol=1e-4, atol=1e-5)
