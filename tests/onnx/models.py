"""Models written as text, and other runtimes to compare with."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime

import netloop

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def model(text, **changes):
    """The model that a text describes, in the syntax of ``onnx.parser``."""
    made = onnx.parser.parse_model(HEADER + text)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def engine_of(text):
    return netloop.compile(netloop.onnx.load(model(text)))


def onnxruntime_gives(text, inputs):
    """The outputs of onnxruntime, by name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model(text).SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, {name: np.asarray(each) for name, each in inputs.items()}), strict=True))


def check_like_onnxruntime(text, **inputs):
    """Engine and reference give what onnxruntime gives, element types and shapes too."""
    network = netloop.onnx.load(model(text))
    engine = netloop.compile(network)
    expected = onnxruntime_gives(text, inputs)
    for found in (engine(inputs), netloop.evaluate(network, inputs)):
        assert list(found) == list(expected)
        for name, array in expected.items():
            made = np.asarray(found[name])
            assert (made.dtype, made.shape) == (array.dtype, array.shape), name
            np.testing.assert_allclose(made, array, rtol=1e-6, err_msg=name)
    return engine
