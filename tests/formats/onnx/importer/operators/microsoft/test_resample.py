"""Resizing of onnxruntime."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, floats
from tests.support.onnx_models import check_node

BOXES = np.float32([[0.1, 0.2, 0.8, 0.9], [-0.2, 0, 1.3, 1], [0.5, 0.5, 0.5, 0.5], [0.9, 0.1, 0.2, 0.8]])
IMAGES = np.int32([0, 1, 1, 0])


@pytest.mark.parametrize("size", [(3, 4), (1, 1)])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_boxes_are_interpolated_like_those_of_onnxruntime(mode, size):
    check_node(
        "CropAndResize", floats(2, 2, 6, 5), BOXES, IMAGES, np.array(size, np.int32), extrapolation_value=7.0,
        mode=mode, rtol=1e-4, atol=1e-5, **MICROSOFT
    )  # fmt: skip
