"""Layers that are saved for inputs of open lengths, in onnxruntime."""

from itertools import product

import numpy as np
import pytest
from onnx import parser
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

import netloop as trt
from netloop.onnx import load
from tests.support.networks import combine, constant, mark
from tests.support.onnx_runtime import export, run


def agree(model, network, inputs):
    meant = trt.evaluate(network, inputs)
    for optimized in (False, True):
        got = run(model, inputs, optimized)
        for name, wanted in meant.items():
            assert (got[name].dtype, got[name].shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(got[name], wanted, 1e-6, 1e-6)


def suppressed(dims, limit, boxes_by_class=False, centres=False):
    network = trt.INetworkDefinition()
    batch, count, classes = dims
    of_boxes = (batch, count, classes, 4) if boxes_by_class else (batch, count, 4)
    boxes = network.add_input("boxes", trt.float32, of_boxes)
    scores = network.add_input("scores", trt.float32, dims)
    most = network.add_constant((), np.array(3, np.int32)).get_output(0)
    layer = network.add_nms(boxes, scores, most, trt.int64)
    layer.topk_box_limit = limit
    layer.bounding_box_format = trt.BoundingBoxFormat.CENTER_SIZES if centres else trt.BoundingBoxFormat.CORNER_PAIRS
    for position, number in ((3, 0.4), (4, 0.2)):
        layer.set_input(position, network.add_constant((), np.array(number, np.float32)).get_output(0))
    return mark(network, y=layer.get_output(0), n=layer.get_output(1))


def drawn(batch, count, classes, boxes_by_class):
    """Boxes and scores, of which some are equal and one is no number."""
    random = np.random.default_rng(batch + 10 * count + 100 * classes)
    shape = (batch, count, classes) if boxes_by_class else (batch, count)
    first = random.uniform(0, 3, (*shape, 2))
    scores = random.integers(0, 9, (batch, count, classes)) / np.float32(8)
    if scores.size > 2:
        scores.reshape(-1)[1] = np.nan
    boxes = np.concatenate([first, first + random.uniform(0.5, 2, (*shape, 2))], -1)
    return {"boxes": boxes.astype(np.float32), "scores": scores.astype(np.float32)}


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("boxes_by_class", [False, True])
@pytest.mark.parametrize("limit", [2**31 - 1, 5000, 7, 1])
def test_non_maximum_suppression_of_any_number_of_boxes(is_open, boxes_by_class, limit):
    sizes = [(2, 9, 3), (1, 1, 1), (3, 20, 2)]
    if is_open:
        network = suppressed((-1, -1, -1), limit, boxes_by_class)
        model = export(network)
        for size in (*sizes, (2, 0, 3), (0, 5, 2)):
            agree(model, network, drawn(*size, boxes_by_class))
    else:
        network = suppressed(sizes[0], limit, boxes_by_class, centres=True)
        agree(export(network), network, drawn(*sizes[0], boxes_by_class))


def averaged(lengths, window, padding, mode, excludes):
    network = trt.INetworkDefinition()
    axes = len(lengths)
    size, stride, dilation = window
    layer = network.add_pooling_nd(
        network.add_input("x", trt.float32, (-1, 2, *lengths)), trt.PoolingType.AVERAGE, (size,) * axes
    )
    layer.stride_nd, layer.dilation_nd = (stride,) * axes, (dilation,) * axes
    layer.pre_padding, layer.post_padding = ((amount,) * axes for amount in padding)
    layer.padding_mode, layer.average_count_excludes_padding = mode, excludes
    return mark(network, y=layer.get_output(0))


WINDOWS = [(2, 2, 1), (3, 2, 1), (2, 3, 2), (3, 1, 2)]
"""Sizes, strides and dilations."""


@pytest.mark.parametrize("excludes", [False, True])
@pytest.mark.parametrize("mode", trt.PaddingMode)
@pytest.mark.parametrize("padding", [(0, 0), (1, 0), (1, 2)])
def test_average_of_windows_over_open_lengths(padding, mode, excludes):
    for window in WINDOWS:
        network = averaged((-1,), window, padding, mode, excludes)
        model = export(network)
        for length in (5, 8):
            x = np.arange(4 * length, dtype=np.float32).reshape(2, 2, length) + 1
            agree(model, network, {"x": x})


def test_average_of_partial_windows_keeps_its_operator():
    for axes, excludes in product((1, 2, 3), (False, True)):
        network = averaged((-1,) * axes, (3, 2, 1), (0, 0), trt.PaddingMode.EXPLICIT_ROUND_UP, excludes)
        model = export(network)
        assert [attribute.op_type for attribute in model.graph.node] == ["AveragePool"]
        for length in (4, 6):
            agree(model, network, {"x": np.random.default_rng(0).normal(size=(1, 2, *(length,) * axes)).astype("f")})


@pytest.mark.parametrize("mode", [*trt.SampleMode])
def test_slice_along_axes_and_by_strides_that_are_computed(mode):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 3, -1))
    layer = network.add_slice(x, (0,), (0,), (1,))
    layer.mode = mode
    for position, name in ((1, "start"), (2, "size"), (3, "stride"), (5, "axes")):
        layer.set_input(position, network.add_input(name, trt.int64, (2,)))
    mark(network, y=layer.get_output(0))
    model = export(network)

    for start, size, stride, axes in (
        ([1, 0], [2, 1], [1, 2], [0, 2]),
        ([1, 3], [2, 3], [-1, -1], [1, -1]),
        ([0, 1], [3, 2], [1, 0], [-2, -3]),
        ([0, 0], [0, 1], [1, 1], [2, 0]),
    ):
        numbers = {"start": start, "size": size, "stride": stride, "axes": axes}
        inputs = {name: np.array(number, np.int64) for name, number in numbers.items()}
        agree(model, network, {"x": np.arange(36, dtype=np.float32).reshape(3, 3, 4), **inputs})
    if mode is not trt.SampleMode.STRICT_BOUNDS:
        outside = {"start": [-3, 2], "size": [5, 4], "stride": [2, -2], "axes": [0, 2]}
        inputs = {name: np.array(entry, np.int64) for name, entry in outside.items()}
        agree(model, network, {"x": np.arange(36, dtype=np.float32).reshape(3, 3, 4), **inputs})


SCAN = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N,2] a, float[2,M] b, float[2] s0) => (s, rows) {
  s, rows = Scan<num_scan_inputs=2, scan_input_axes=[0,1], scan_input_directions=[0,DIRECTION],
    body = t (float[2] s1, float[2] u, float[2] v) => (s2, row)
    { w = Mul(u, v) s2 = Add(s1, w) row = Tanh(w) }>(s0, a, b) }"""


@pytest.mark.parametrize("direction", [0, 1])
def test_scan_of_two_inputs_of_open_lengths(direction):
    network = load(parser.parse_model(SCAN.replace("DIRECTION", str(direction))))
    model = export(network)
    random = np.random.default_rng(0)

    for a, b in ((0, 0), (1, 1), (2, 2), (5, 5), (2, 3), (3, 2), (0, 1)):
        shapes = {"a": (a, 2), "b": (2, b), "s0": (2,)}
        inputs = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        if a == b:
            agree(model, network, inputs)
        else:
            with pytest.raises(trt.ExecutionError, match="past the end"):
                trt.evaluate(network, inputs)
            with pytest.raises(InvalidArgument, match="out of data bounds"):
                run(model, inputs)


SCRIPTED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[B,M,N] x) => (y) {
  one = Constant<value = int64 {1}>() a = Constant<value_ints=[1]>() sh = Shape(x) l = Gather(sh, one) c = Equal(l, one)
  s = If(c) <then_branch = t () => (p) { p = Squeeze(x, a) }, else_branch = e () => (q) { q = Identity(x) }>
  y = Transpose<perm=[1,0]>(s) }"""
"""What PyTorch writes for x.squeeze(1).t() in a script."""


def test_squeeze_of_a_length_that_must_be_one_needs_no_assertion():
    network = load(parser.parse_model(SCRIPTED))
    model = export(network)

    agree(model, network, {"x": np.arange(6, dtype=np.float32).reshape(2, 1, 3)})
    with pytest.raises(Fail, match="Squeeze"):
        run(model, {"x": np.ones((2, 2, 3), np.float32)})


@pytest.mark.parametrize("axis", [0, 2])
def test_assertion_of_a_length_that_nothing_squeezes_is_refused(axis):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, -1, -1))
    length = network.add_gather(network.add_shape(x).get_output(0), constant(network, 1, np.int64), 0).get_output(0)
    network.add_assertion(combine(network, length, 1, trt.ElementWiseOperation.EQUAL), "one")
    mark(network, y=network.add_squeeze(x, constant(network, [axis], np.int64)).get_output(0))

    with pytest.raises(trt.NetworkError, match="cannot be written"):
        export(network)


def test_assertion_of_a_length_that_only_a_branch_squeezes_is_refused():
    network = trt.INetworkDefinition()
    x, flag = network.add_input("x", trt.float32, (-1, -1)), network.add_input("flag", trt.bool, ())
    length = network.add_gather(network.add_shape(x).get_output(0), constant(network, 1, np.int64), 0).get_output(0)
    network.add_assertion(combine(network, length, 1, trt.ElementWiseOperation.EQUAL), "one")
    choice = network.add_if_conditional()
    choice.set_condition(flag)
    squeezed = network.add_squeeze(x, constant(network, [1], np.int64)).get_output(0)
    other = network.add_reduce(x, trt.ReduceOperation.SUM, 2, False).get_output(0)
    mark(network, y=choice.add_output(squeezed, other).get_output(0))

    with pytest.raises(trt.NetworkError, match="cannot be written"):
        export(network)


@pytest.mark.parametrize("operation", [trt.ReduceOperation.MAX, trt.ReduceOperation.MIN])
def test_any_and_all_of_open_lengths(operation):
    """Of no bool, ``any`` is false, and ``all`` is true."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.bool, (-1, 2))
    mark(network, y=network.add_reduce(x, operation, 1 << 0, False).get_output(0))
    model = export(network)

    for rows in ([], [[True, False]], [[True, False], [False, False]]):
        agree(model, network, {"x": np.array(rows, np.bool_).reshape(-1, 2)})
