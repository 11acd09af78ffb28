"""Layers that are saved for inputs of open lengths, in onnxruntime."""

from itertools import product

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import mark
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
    layer.pre_padding, layer.post_padding = ((each,) * axes for each in padding)
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
        assert [each.op_type for each in model.graph.node] == ["AveragePool"]
        for length in (4, 6):
            agree(model, network, {"x": np.random.default_rng(0).normal(size=(1, 2, *(length,) * axes)).astype("f")})
