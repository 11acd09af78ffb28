"""Quantized operators of onnxruntime, compared number by number."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, bytes_of, floats, scalars, slow
from tests.support.onnx_models import check_node, of_node, runs, session_gives

TYPES = [np.uint8, slow(np.int8)]
SCALES = [(0.5, 0.25, 1.0), (0.013, 0.027, 0.031)]
"""The first are powers of 2, whose sums and products are often halfway between two integers."""


def exactly(op, *inputs, **attributes):
    check_node(op, *inputs, rtol=0, atol=0, **attributes, **MICROSOFT)


def every(dtype):
    limits = np.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_sum_and_product_of_all_pairs_are_those_of_onnxruntime(op, scales, dtype):
    first, second, output = scalars(*scales)
    x = every(dtype)
    exactly(op, x[:, None], first, dtype(7), x, second, dtype(3), output, dtype(5))


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_zero_points_may_be_left_out(op):
    """onnxruntime's schema allows it, and its type inference does not."""
    x, zero, (first, second, output) = bytes_of(3, 4, dtype=np.int8), np.int8(0), scalars(0.1, 0.2, 0.9)
    without, explicit = (
        runs(*of_node(op, x, first, zeros[0], x[:1], second, zeros[1], output, *zeros[2:], **MICROSOFT))
        for zeros in ([None, None], [zero] * 3)
    )

    np.testing.assert_array_equal(without[0], explicit[0])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("op", "attributes"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2})])
def test_function_of_every_number_is_that_of_onnxruntime(op, attributes, dtype):
    own, output = scalars(0.03, 0.007)
    exactly(op, every(dtype), own, dtype(7), output, dtype(5), **attributes)


@pytest.mark.parametrize("dtype", TYPES)
def test_quantized_where_is_that_of_onnxruntime(dtype):
    first, second, output = scalars(0.03, 0.02, 0.025)
    x = every(dtype)
    exactly("QLinearWhere", x > 5, x, first, dtype(7), x[::-1], second, dtype(1), output, dtype(5))


@pytest.mark.parametrize("dtype", TYPES)
def test_quantized_concat_is_that_of_onnxruntime(dtype):
    first, second, output = scalars(0.03, 0.02, 0.025)
    x = bytes_of(2, 3, dtype=dtype)
    exactly("QLinearConcat", output, dtype(5), x, first, dtype(7), x, second, dtype(1), x, output, dtype(5), axis=-1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("axis", "version"), [(-1, 13), (1, 13), (1, 12)])
def test_quantized_softmax_is_that_of_onnxruntime(axis, version, dtype):
    own, output = scalars(0.05, 1 / 256)
    made, given = of_node(
        "QLinearSoftmax", every(dtype).reshape(2, 8, 16), own, dtype(7), output, dtype(5), axis=axis, **MICROSOFT
    )
    made.graph.node[0].attribute.add(name="opset", type=2, i=version)  # of_node has a parameter of this name
    (expected,) = session_gives(made, given).values()

    np.testing.assert_array_equal(runs(made, given)[0], expected)


def test_quantized_mean_is_the_mean_rounded():
    """onnxruntime has no kernel for it on CPUs."""
    x = bytes_of(3, 8)
    own, output = scalars(0.5, 0.25)
    made, given = of_node(
        "QLinearReduceMean", x, own, np.uint8(3), output, np.uint8(5), axes=[1], keepdims=1, **MICROSOFT
    )
    expected = np.rint((x.astype(float) - 3).mean(1, keepdims=True) * 2) + 5

    np.testing.assert_array_equal(runs(made, given)[0], np.clip(expected, 0, 255))


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_are_quantized_like_those_of_onnxruntime(dtype):
    exactly("QuantizeLinear", 9 * floats(3, 4), np.float32(0.1), dtype(5))
    exactly("QuantizeLinear", 9 * floats(3, 4), np.abs(floats(3)), bytes_of(3, dtype=dtype), axis=0)
    exactly("DequantizeLinear", bytes_of(3, 4, dtype=dtype), np.float32(0.1), dtype(5))


@pytest.mark.parametrize("last", [slow(0), 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_channels_of_a_quantized_convolution_may_be_last(last, dtype):
    x = bytes_of(1, 5, 6, 4, dtype=dtype) if last else bytes_of(1, 4, 5, 6, dtype=dtype)
    own, output = scalars(0.02, 0.5)
    kernel, scales, zeros = bytes_of(6, 2, 3, 3, dtype=np.int8), np.abs(floats(6)) / 50, np.zeros(6, np.int8)
    exactly(
        "QLinearConv", x, own, dtype(3), kernel, scales, zeros, output, dtype(5),
        bytes_of(6, dtype=np.int32, most=999), channels_last=last, group=2, pads=[1, 1, 1, 1], strides=[2, 2]
    )  # fmt: skip
