"""Resize, Upsample, GridSample and DeformConv against onnxruntime and PyTorch, in cases that ONNX's tests lack."""

import numpy as np
import pytest

import netloop
from tests.support.onnx_models import check_node, of_node, runs
from tests.support.peers import needs_torch, torch

IMAGE = np.random.default_rng(0).normal(size=(1, 2, 5, 7)).astype(np.float32)
BYTES = np.random.default_rng(1).integers(0, 255, (1, 1, 4, 6)).astype(np.uint8)
UP, DOWN, BOTH = np.float32([[1, 1, 2.6, 1.5], [1, 1, 0.7, 0.4], [1, 1, 2.6, 0.4]])


def sizes(*numbers):
    return np.array(numbers, np.int64)


# ---------------------------------------------------------------------------- resize


@pytest.mark.parametrize("transformation", ["half_pixel", "pytorch_half_pixel", "asymmetric", "half_pixel_symmetric"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_is_that_of_onnxruntime(mode, transformation):
    check_node(
        "Resize", IMAGE, None, BOTH, mode=mode, coordinate_transformation_mode=transformation, nearest_mode="floor"
    )


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_to_sizes_is_that_of_onnxruntime(mode):
    check_node(
        "Resize", IMAGE, None, None, sizes(1, 2, 9, 4), mode=mode, coordinate_transformation_mode="align_corners"
    )


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest_element_is_that_of_onnxruntime(rounding):
    check_node("Resize", IMAGE, None, np.float32([1, 1, 2, 2]), nearest_mode=rounding)


@pytest.mark.parametrize("outside", [0, 1])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_is_that_of_onnxruntime(mode, outside):
    check_node("Resize", IMAGE, None, DOWN, mode=mode, antialias=1, exclude_outside=outside)


@pytest.mark.parametrize(("policy", "shape"), [("not_larger", (1, 2, 6, 8)), ("not_smaller", (1, 2, 10, 14))])
def test_policy_keeps_the_proportions(policy, shape):
    made, given = of_node("Resize", IMAGE, None, None, sizes(10, 8), axes=[2, 3], keep_aspect_ratio_policy=policy)

    assert runs(made, given)[0].shape == shape


def test_crop_by_scales_is_that_of_onnxruntime():
    roi = np.float32([0, 0, 0.2, 0.1, 1, 1, 0.9, 1.3])
    check_node(
        "Resize", IMAGE, roi, UP, mode="linear", coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=-7.0,
    )  # fmt: skip


def test_integers_are_resized_through_floats():
    made, given = of_node("Resize", BYTES, None, np.float32([1, 1, 2, 2]), mode="linear")
    wide, _ = of_node("Resize", BYTES.astype(np.float32), None, np.float32([1, 1, 2, 2]), mode="linear")

    assert np.array_equal(
        runs(made, given)[0], runs(wide, {"x0": BYTES.astype(np.float32), "x2": given["x2"]})[0].astype(np.uint8)
    )


@pytest.mark.parametrize("scales", [(1, 1, 2, 3), (1, 1, 0.6, 0.6), (1, 1, 2, 0.5)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_first_resize_is_that_of_onnxruntime(mode, scales):
    check_node("Resize", IMAGE, np.float32(scales), mode=mode, opset=10)


def test_old_upsample_has_its_scales_in_attributes():
    check_node("Upsample", IMAGE, mode="nearest", scales=[1.0, 1.0, 2.0, 3.0], opset=7)


def test_first_upsample_scales_height_and_width():
    made, given = of_node("Upsample", IMAGE, mode="nearest", height_scale=2.0, width_scale=3.0, opset=1)

    assert np.array_equal(runs(made, given)[0], IMAGE.repeat(2, 2).repeat(3, 3))


def test_old_nearest_of_tensorflow_is_half_a_pixel_further_on():
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 1, 6)
    check_node(
        "Resize", x, np.float32([]), np.float32([1, 1, 1, 0.5]), opset=11, nearest_mode="floor",
        coordinate_transformation_mode="tf_half_pixel_for_nn",
    )  # fmt: skip


def test_resize_of_open_lengths_takes_any_image():
    made, given = of_node("Resize", IMAGE, None, UP, mode="linear", open_lengths=True)
    engine = netloop.compile(netloop.onnx.load(made))

    found = engine({**given, "x0": IMAGE[..., :3]})

    assert np.asarray(found["y0"]).shape == (1, 2, 13, 4)


@pytest.mark.parametrize(
    ("attributes", "arrays", "message"),
    [
        ({"mode": "quintic"}, (None, UP), "mode is 'quintic'"),
        ({"nearest_mode": "round"}, (None, UP), "nearest_mode is 'round'"),
        ({}, (None, UP, sizes(1, 2, 3, 4)), "either scales or sizes"),
        ({}, (), "either scales or sizes"),
        ({"axes": [2, 2]}, (None, UP[:2]), "names an axis twice"),
        ({"axes": [2]}, (None, UP), "must be 1"),
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, (None, UP), "there is no roi"),
        ({"keep_aspect_ratio_policy": "larger"}, (None, None, sizes(1, 2, 3, 4)), "keep_aspect_ratio_policy is"),
    ],
)
def test_resize_that_means_nothing_is_refused(attributes, arrays, message):
    made, _ = of_node("Resize", IMAGE, *arrays, **attributes)

    with pytest.raises(netloop.ModelError, match=message):
        netloop.onnx.load(made)


# ---------------------------------------------------------------------------- grids


@needs_torch
@pytest.mark.parametrize(
    ("mode", "border", "corners"),
    [
        ("bilinear", "zeros", 0),
        ("bilinear", "reflection", 1),
        ("nearest", "border", 1),
        ("bicubic", "reflection", 0),
        ("bicubic", "border", 1),
    ],
)
def test_grid_sample_is_that_of_pytorch(mode, border, corners):
    grid = np.random.default_rng(3).uniform(-1.3, 1.3, (1, 3, 4, 2)).astype(np.float32)
    made, given = of_node("GridSample", IMAGE, grid, mode=mode, padding_mode=border, align_corners=corners, opset=16)

    expected = torch.nn.functional.grid_sample(
        torch.tensor(IMAGE), torch.tensor(grid), mode=mode, padding_mode=border, align_corners=bool(corners)
    )
    assert np.allclose(runs(made, given)[0], expected.numpy(), atol=1e-5)


def test_grid_of_another_type_reads_images_in_its_own():
    grid = np.random.default_rng(3).uniform(-1, 1, (1, 3, 4, 2))
    made, given = of_node("GridSample", BYTES, grid, mode="nearest", opset=20)
    wide, _ = of_node("GridSample", BYTES.astype(np.float64), grid, mode="nearest", opset=20)

    assert np.array_equal(
        runs(made, given)[0], runs(wide, {**given, "x0": BYTES.astype(np.float64)})[0].astype(np.uint8)
    )


# ---------------------------------------------------------------------------- deformable convolution


def deformable(groups=1, shifts=1, masked=True, bias=True, **attributes):
    """Arrays for a kernel of 3 by 2, with fractional offsets."""
    draw = np.random.default_rng(5).normal
    x, kernel = draw(size=(2, 4, 6, 5)), draw(size=(6, 4 // groups, 3, 2))
    strides, pads = attributes.get("strides", [1, 1]), attributes.get("pads", [0, 0, 0, 0])
    out = [(length + pads[axis] + pads[axis + 2] - reach) // strides[axis] + 1
           for axis, (length, reach) in enumerate(((6, 3), (5, 2)))]  # fmt: skip
    offset, mask = draw(size=(2, shifts * 6 * 2, *out)), draw(size=(2, shifts * 6, *out))
    arrays = [x, kernel, offset, draw(size=6) if bias else None, mask if masked else None]
    return [None if array is None else array.astype(np.float32) for array in arrays]


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 1], "pads": [1, 0, 1, 2]},
        {"group": 2},
        {"offset_group": 2, "pads": [1, 1, 1, 1]},
        {"group": 2, "offset_group": 4},
    ],
    ids=str,
)
def test_deformable_convolution_is_that_of_onnxruntime(attributes):
    own = {name: attribute for name, attribute in attributes.items() if name in ("strides", "pads")}
    arrays = deformable(attributes.get("group", 1), attributes.get("offset_group", 1), **own)
    check_node("DeformConv", *arrays, kernel_shape=[3, 2], opset=19, atol=1e-4, **attributes)


def test_deformable_convolution_of_open_lengths_is_that_of_onnxruntime():
    check_node("DeformConv", *deformable(), kernel_shape=[3, 2], opset=19, atol=1e-4, open_lengths=True)


def test_deformable_convolution_without_offsets_is_the_convolution():
    x, kernel, offset, bias, _ = deformable()
    shifted, given = of_node("DeformConv", x, kernel, np.zeros_like(offset), bias, kernel_shape=[3, 2], opset=19)
    plain, _ = of_node("Conv", x, kernel, bias)

    expected = runs(plain, {"x0": x, "x1": kernel, "x2": bias})[0]
    assert np.allclose(runs(shifted, given)[0], expected, atol=1e-4)
