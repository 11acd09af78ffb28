"""NonMaxSuppression, RoiAlign and MaxRoiPool against onnxruntime, in cases that ONNX's own tests lack."""

import numpy as np
import pytest

import netloop
from tests.support.examples import mostly_slow
from tests.support.onnx_models import check_node, of_node

IMAGES = np.random.default_rng(0).normal(size=(2, 3, 8, 10)).astype(np.float32)
ROIS = np.float32([[0, 0, 6.3, 5.1], [2.2, 1.7, 9, 7.9], [-3, -2, 4, 3], [5, 5, 5.4, 5.2], [20, 20, 25, 30]])
ITEMS = np.array([0, 1, 1, 0, 1])


def boxes(batch=2, count=7):
    corners = np.random.default_rng(4).uniform(0, 4, (batch, count, 2))
    return np.concatenate([corners, corners + 2], -1).astype(np.float32)


SCORES = np.random.default_rng(5).uniform(-1, 1, (2, 3, 7)).astype(np.float32)


@pytest.mark.parametrize("opset", mostly_slow(1, [21, 10]))
@pytest.mark.parametrize("centres", [0, 1])
def test_suppression_is_that_of_onnxruntime(centres, opset):
    limits = np.array([3]), np.float32([0.3]), np.float32([-0.5])
    check_node("NonMaxSuppression", boxes(), SCORES, *limits, center_point_box=centres, opset=opset)


def test_suppression_without_a_score_threshold_keeps_scores_below_zero():
    check_node("NonMaxSuppression", boxes(), SCORES, np.array([10]), np.float32([0.5]))


def test_suppression_without_a_number_keeps_nothing():
    check_node("NonMaxSuppression", boxes(), SCORES)


@pytest.mark.parametrize("ratio", mostly_slow(1, [3, 0]))
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize(("mode", "images"), [("avg", IMAGES), ("max", -abs(IMAGES))], ids=["avg", "max"])
def test_roi_align_is_that_of_onnxruntime(mode, images, transformation, ratio):
    check_node(
        "RoiAlign", images, ROIS, ITEMS, mode=mode, coordinate_transformation_mode=transformation, output_height=3,
        output_width=2, sampling_ratio=ratio, spatial_scale=0.9, atol=1e-5,
    )  # fmt: skip


def test_first_roi_align_does_not_shift_pixels():
    check_node("RoiAlign", IMAGES, ROIS, ITEMS, output_height=2, output_width=2, sampling_ratio=2, opset=10, atol=1e-5)


def test_roi_align_of_no_region_is_empty():
    check_node("RoiAlign", IMAGES, ROIS[:0], ITEMS[:0], output_height=2, output_width=2, sampling_ratio=2)


def test_roi_align_of_open_lengths_is_that_of_onnxruntime():
    check_node("RoiAlign", IMAGES, ROIS, ITEMS, output_height=2, output_width=2, open_lengths=True, atol=1e-5)


def test_maximum_of_regions_is_that_of_onnxruntime():
    rois = np.concatenate([ITEMS[:4, None], np.round(ROIS[:4])], 1).astype(np.float32)

    check_node("MaxRoiPool", IMAGES, rois, pooled_shape=[2, 3], spatial_scale=0.7, opset=13)


def test_roi_align_of_another_mode_is_refused():
    made, _ = of_node("RoiAlign", IMAGES, ROIS, ITEMS, mode="min")

    with pytest.raises(netloop.ModelError, match="mode is 'min'"):
        netloop.onnx.load(made)
