"""Models written as text, and other runtimes to compare with."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import helper

import netloop

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def model(text, **changes):
    """Parse a model in the syntax of ``onnx.parser``."""
    made = onnx.parser.parse_model(HEADER + text)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def engine_of(text):
    return netloop.compile(netloop.onnx.load(model(text)))


def of_node(op, *arrays, outputs=1, opset=21, domain="", open_lengths=False, **attributes):
    """A model of one node, and its inputs: a name and an array for each input that is not None."""
    given = {f"x{index}": np.asarray(array) for index, array in enumerate(arrays) if array is not None}
    names = [f"x{index}" if f"x{index}" in given else "" for index in range(len(arrays))]
    results = [f"y{index}" for index in range(outputs)]
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [None] * array.ndim if open_lengths and array.ndim > 1 else array.shape,
        )
        for name, array in given.items()
    ]
    untyped = [onnx.ValueInfoProto(name=result) for result in results]
    graph = helper.make_graph([helper.make_node(op, names, results, domain=domain, **attributes)], op, inputs, untyped)
    domains = {"": 21, domain: opset} if domain else {"": opset}
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*entry) for entry in domains.items()], ir_version=10
    ), given


def runs(made, given):
    """The outputs of netloop."""
    return [np.asarray(value) for value in netloop.compile(netloop.onnx.load(made))(given).values()]


def session_gives(made, inputs):
    """The outputs of onnxruntime, by name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # others would wait in busy loops
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feeds = {name: tensor if isinstance(tensor, list | None) else np.asarray(tensor) for name, tensor in inputs.items()}
    return dict(zip(names, session.run(None, feeds), strict=True))


def check_node(op, *arrays, rtol=1e-5, atol=1e-6, **options):
    """Check that netloop computes a node like onnxruntime, including element types and shapes."""
    made, given = of_node(op, *arrays, **options)
    for found, expected in zip(runs(made, given), session_gives(made, given).values(), strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def onnxruntime_gives(text, inputs):
    """The outputs of onnxruntime, by name."""
    return session_gives(model(text), inputs)


def check_like_onnxruntime(text, **inputs):
    """Check that engine and reference compute a model like onnxruntime, including element types and shapes."""
    network = netloop.onnx.load(model(text))
    engine = netloop.compile(network)
    expected = onnxruntime_gives(text, inputs)
    for found in (engine(inputs), netloop.evaluate(network, inputs)):
        assert list(found) == list(expected)
        for name, value in expected.items():
            assert_alike(name, found[name], value)
    return engine


def assert_alike(name, found, expected):
    """Check that a value equals another: an array, a list of arrays, or None."""
    assert isinstance(found, list | None) == isinstance(expected, list | None), name
    if expected is None:
        return
    pairs = zip(found, expected, strict=True) if isinstance(expected, list) else [(found, expected)]
    for made, array in pairs:
        made, array = np.asarray(made), np.asarray(array)
        assert (made.dtype, made.shape) == (array.dtype, array.shape), name
        np.testing.assert_allclose(made, array, rtol=1e-6, err_msg=name)
