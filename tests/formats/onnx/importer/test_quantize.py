"""Scales that TensorRT's quantization layers refuse, and ONNX allows."""

import numpy as np
import pytest

from tests.support.microsoft import as_constants, check_like_onnxruntime
from tests.support.onnx_models import of_node


@pytest.mark.parametrize("scale", [[-0.5, 0.25, 2], [0, 1, 1], [-0.125]])
def test_dequantization_has_any_scale(scale):
    x = np.array([[-128, -1, 0, 1, 127]] * 3, np.int8)
    made, given = of_node("DequantizeLinear", x, np.array(scale, np.float32), axis=0)
    as_constants(made, given, list(given)[1:])

    check_like_onnxruntime(made, given)


def test_quantization_has_a_negative_scale():
    made, given = of_node("QuantizeLinear", np.float32([[-100, -0.6, 0.2, 3, 90]]), np.float32(-0.5), np.int8(0))
    as_constants(made, given, list(given)[1:])

    check_like_onnxruntime(made, given)
