"""Operators that the ONNX graph writes for few layers, in OpenVINO."""

import numpy as np
import pytest

import netloop as trt
from netloop.onnx import load
from tests.formats.onnx.exporter.test_integers import convolved, integers, quantized
from tests.formats.onnx.exporter.test_open_lengths import averaged, drawn, suppressed
from tests.support.openvino_runtime import export, run


def agree(network, inputs):
    got = run(export(network), inputs)
    for name, wanted in trt.evaluate(network, inputs).items():
        assert got[name].shape == wanted.shape
        np.testing.assert_allclose(got[name], wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "uint8")])
@pytest.mark.parametrize("zeros", [{}, {"x zero": 9, "k zero": [3]}], ids=str)
def test_convolution_of_8_bits(types, zeros):
    network = load(quantized(types, zeros, strides=[2, 1], pads=[1, 2, 0, 1]))

    agree(network, {"x": integers((2, 4, 7, 6), types[0])})


@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_of_integers(transposed):
    kernel = np.arange(-12, 12, dtype=np.int32).reshape(2, 2, 3, 2)
    network = convolved("int32", (2, 2, 5, 6), kernel, transposed, stride_nd=(2, 1), padding_nd=(1, 1))

    agree(network, {"x": np.arange(-60, 60, dtype=np.int32).reshape(2, 2, 5, 6)})


@pytest.mark.parametrize("limit", [2**31 - 1, 7])
@pytest.mark.parametrize("boxes_by_class", [False, True])
def test_non_maximum_suppression_of_any_number_of_boxes(limit, boxes_by_class):
    agree(suppressed((-1, -1, -1), limit, boxes_by_class), drawn(2, 9, 3, boxes_by_class))


@pytest.mark.parametrize("padding", [(0, 0), (1, 2)])
def test_average_of_partial_windows_over_open_lengths(padding):
    network = averaged((-1,), (3, 2, 1), padding, trt.PaddingMode.EXPLICIT_ROUND_UP, False)

    agree(network, {"x": np.arange(24, dtype=np.float32).reshape(2, 2, 6) + 1})
