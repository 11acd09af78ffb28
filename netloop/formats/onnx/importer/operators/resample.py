"""Resizing."""

from collections.abc import Sequence

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.shared.import_errors import present
from netloop.formats.shared.word_tables import COORDINATE_TRANSFORMATIONS, NEAREST_ROUNDINGS, RESIZE_MODES
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.resample import IResizeLayer
from netloop.values.diagnostics import require
from netloop.values.enums import (
    InterpolationMode,
    ReduceOperation,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
    UnaryOperation,
)
from netloop.values.types import agree, normal_axis

HALF_A_PIXEL_ON = {"round_prefer_floor": ResizeRoundMode.CEIL, "floor": ResizeRoundMode.HALF_UP}
"""For each rounding the one that gives the same result half a pixel further on."""
POLICIES = {"not_larger": ReduceOperation.MIN, "not_smaller": ReduceOperation.MAX}


@operator("Resize", since=(11, 18, 19))
def resize(call: NodeCall, x: ITensor, roi: Maybe = None, scales: Maybe = None, sizes: Maybe = None) -> ITensor:
    """Interpolation to given sizes, or by scales."""
    make, rank = call.make, x.type.rank
    roi, scales, sizes = (
        None if tensor is None or tensor.type.shape == (0,) else tensor for tensor in (roi, scales, sizes)
    )
    require((scales is None) != (sizes is None), "either scales or sizes must be given, and not both")
    axes = [normal_axis(value, rank) for value in call.attribute("axes", list(range(rank)))]
    require(len(set(axes)) == len(axes), f"axes is {axes}, and names an axis twice")
    regions = _regions(call, roi, axes, rank)
    if sizes is not None:
        lengths = _of_all_axes(make, make.shape(x), _by_policy(call, x, axes, make.list_tensor(sizes)), axes)
    else:
        assert scales is not None
        lengths = _of_all_axes(make, make.constant(np.ones(rank, np.float32)), scales, axes)
        if regions is None and _cuts_corners(call, lengths):
            regions, lengths = _between_corners(make, x, lengths)
    mode = call.choice("mode", RESIZE_MODES.onnx.read, "nearest")
    exact = mode is InterpolationMode.NEAREST or x.type.is_float
    resized = _resized(call, x if exact else make.cast(x, np.float64), mode, regions, lengths)
    return make.cast(resized, x.type.dtype)


def _of_all_axes(make: FormulaBuilder, default: ITensor, numbers: ITensor, axes: Sequence[int]) -> ITensor:
    """A number for each axis: the given one, or else the default."""
    rank = default.type.shape[0]
    require(
        agree(numbers.type.shape, (len(axes),)),
        f"the numbers of the axes are {numbers.type}, but must be {len(axes)}",
        "each resized axis needs one number",
    )
    places = [rank + axes.index(axis) if axis in axes else axis for axis in range(rank)]
    return make.gather(make.concat([default, make.cast(numbers, default.type.dtype)], 0), make.constant(places))


def _by_policy(call: NodeCall, x: ITensor, axes: Sequence[int], sizes: ITensor) -> ITensor:
    """The sizes, optionally adjusted so that the axes keep their proportions."""
    policy = call.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return sizes
    make, op = call.make, call.choice("keep_aspect_ratio_policy", POLICIES, policy)
    lengths = make.cast(make.gather(make.shape(x), make.constant(axes, np.int64)), np.float64)
    scale = make.reduce(op, make.div(make.cast(sizes, np.float64), lengths), [0], True)
    return make.cast(make.unary(UnaryOperation.FLOOR, make.add(make.mul(lengths, scale), 0.5)), np.int64)


def _regions(call: NodeCall, roi: Maybe, axes: Sequence[int], rank: int) -> Maybe:
    """The starts of all axes, then their ends; None if the whole input is read."""
    if call.attribute("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize":
        return None
    roi = present(roi, "there is no roi", "tf_crop_and_resize reads this region of the input")
    make, count = call.make, len(axes)
    require(agree(roi.type.shape, (2 * count,)), f"roi is {roi.type}, but must be {2 * count} numbers")
    starts, ends = (make.slice(roi, [first], [count]) for first in (0, count))
    default = [make.constant(np.full(rank, number, roi.type.dtype)) for number in (0, 1)]
    parts = [_of_all_axes(make, tensor, own, axes) for tensor, own in zip(default, (starts, ends), strict=True)]
    return make.concat(parts, 0)


def _cuts_corners(call: NodeCall, scales: ITensor) -> bool:
    """Whether scales may give fractional lengths, whose last element falls short of the last corner."""
    factors = call.make.known(scales)
    by_corners = call.attribute("coordinate_transformation_mode", "half_pixel") == "align_corners"
    return by_corners and (factors is None or bool((factors % 1).any()))


def _between_corners(make: FormulaBuilder, x: ITensor, scales: ITensor) -> tuple[ITensor, ITensor]:
    """The regions and sizes of axes whose corners are a fractional length apart."""
    widths = make.mul(make.cast(make.shape(x), np.float32), scales)
    sizes = make.unary(UnaryOperation.FLOOR, widths)
    part = make.div(make.sub(sizes, 1.0), make.sub(widths, 1.0))
    zeros = make.constant(np.zeros(x.type.rank, np.float32))
    regions = make.concat([zeros, make.where(make.greater(widths, 1.0), part, zeros)], 0)
    return regions, make.cast(sizes, np.int64)


def _resized(call: NodeCall, x: ITensor, mode: InterpolationMode, regions: Maybe, lengths: ITensor) -> ITensor:
    """The input resized to lengths or by scales, a region of it or the whole."""
    layer, make = call.make.network.add_resize(x), call.make
    layer.resize_mode = mode
    layer.cubic_coeff = call.attribute("cubic_coeff_a", -0.75)
    layer.exclude_outside = call.flag("exclude_outside")
    layer.extrapolation_value = call.attribute("extrapolation_value", 0.0)
    layer.antialias = call.flag("antialias") and mode is not InterpolationMode.NEAREST
    _set_positions(call, layer)
    if regions is not None:
        layer.coordinate_transformation = ResizeCoordinateTransformation.CROP
        region = make.known(regions)
        if region is None:
            layer.set_input(2, regions)
        else:
            layer.roi = tuple(region.tolist())
    return _to_lengths(make, layer, lengths)


def _set_positions(call: NodeCall, layer: IResizeLayer) -> None:
    """Set the coordinate transformation and the rounding of a layer."""
    name, transformations = "coordinate_transformation_mode", COORDINATE_TRANSFORMATIONS.onnx.read
    word = call.attribute(name, "half_pixel")
    layer.coordinate_transformation = call.choice(name, transformations, word)
    layer.nearest_rounding = call.choice("nearest_mode", NEAREST_ROUNDINGS.onnx.read, "round_prefer_floor")
    if word == "pytorch_half_pixel":
        layer.selector_for_single_pixel = ResizeSelector.UPPER
    if word == "tf_half_pixel_for_nn":
        require(layer.resize_mode is InterpolationMode.NEAREST, f"{word} reads nearest elements only")
        layer.nearest_rounding = call.choice("nearest_mode", HALF_A_PIXEL_ON, "round_prefer_floor")


def _to_lengths(make: FormulaBuilder, layer: IResizeLayer, lengths: ITensor) -> ITensor:
    """The output of a layer, given scales or sizes."""
    numbers = make.known(lengths)
    if numbers is None:
        layer.set_input(1, lengths)
    elif lengths.type.is_float:
        layer.scales = tuple(numbers.tolist())
    else:
        layer.shape = tuple(numbers.tolist())
    return make.output(layer)


@operator("Upsample")
def upsample_image(call: NodeCall, x: ITensor) -> ITensor:
    """Upsampling of the last two axes."""
    scales = [1.0, 1.0, call.attribute("height_scale"), call.attribute("width_scale")]
    return _by_scales(call, x, call.make.constant(scales, np.float32), ResizeRoundMode.FLOOR)


@operator("Upsample", since=(7, 9))
def upsample(call: NodeCall, x: ITensor, scales: Maybe = None) -> ITensor:
    """Upsampling by scales."""
    scales = call.make.constant(call.attribute("scales"), np.float32) if scales is None else scales
    return _by_scales(call, x, scales, ResizeRoundMode.FLOOR)


@operator("Resize", since=10)
def resize_by_scales(call: NodeCall, x: ITensor, scales: ITensor) -> ITensor:
    """Resizing by scales; the nearest element is the one before in growing axes, the one after in shrinking."""
    make = call.make
    if call.attribute("mode", "nearest") != "nearest":
        return _by_scales(call, x, scales, ResizeRoundMode.FLOOR)
    shrunk = _by_scales(call, x, make.minimum(scales, 1.0), ResizeRoundMode.CEIL)
    return _by_scales(call, shrunk, make.maximum(scales, 1.0), ResizeRoundMode.FLOOR)


def _by_scales(call: NodeCall, x: ITensor, scales: ITensor, rounding: ResizeRoundMode) -> ITensor:
    layer = call.make.network.add_resize(x)
    layer.resize_mode, layer.nearest_rounding = call.choice("mode", RESIZE_MODES.onnx.read, "nearest"), rounding
    return _to_lengths(call.make, layer, scales)
