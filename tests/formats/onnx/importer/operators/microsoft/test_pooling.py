"""Poolings of onnxruntime."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, bytes_of, scalars, slow
from tests.support.onnx_models import check_node

SCALES = scalars(0.05, 0.0371)
"""Of no simple ratio: the mean of few numbers is rarely halfway between two integers."""

TYPES = [np.uint8, slow(np.int8)]


def exactly(op, *inputs, **attributes):
    check_node(op, *inputs, rtol=0, atol=0, **attributes, **MICROSOFT)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("open_lengths", [slow(False), True])
def test_quantized_global_average_is_that_of_onnxruntime(open_lengths, last, dtype):
    x = bytes_of(2, 5, 6, 3, dtype=dtype)
    exactly(
        "QLinearGlobalAveragePool", x, SCALES[0], dtype(7), SCALES[1], dtype(5), channels_last=last,
        open_lengths=open_lengths
    )  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("last", "counted"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_quantized_average_is_that_of_onnxruntime(last, counted, dtype):
    x = bytes_of(1, 5, 6, 3, dtype=dtype)
    exactly(
        "QLinearAveragePool", x, SCALES[0], dtype(7), SCALES[1], dtype(5), channels_last=last,
        count_include_pad=counted, kernel_shape=[2, 2], strides=[2, 1], pads=[1, 0, 0, 1], ceil_mode=1 - counted
    )  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_maximum_of_channels_last_is_that_of_onnxruntime(dtype):
    x = bytes_of(1, 5, 6, 3, dtype=dtype)
    exactly("NhwcMaxPool", x, kernel_shape=[2, 2], strides=[2, 1], pads=[1, 0, 0, 1])
