"""Resizing."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from netloop.formats.onnx_graph.layers import FLOAT, INT64, NodeBuilder, Value, exports
from netloop.formats.shared.word_tables import COORDINATE_TRANSFORMATIONS, NEAREST_ROUNDINGS, RESIZE_MODES
from netloop.model.layers.resample import IResizeLayer
from netloop.values.diagnostics import require
from netloop.values.enums import InterpolationMode, ResizeCoordinateTransformation, ResizeSelector
from netloop.values.types import UNKNOWN, Array, Shape

NEAREST, CUBIC = InterpolationMode.NEAREST, InterpolationMode.CUBIC


@exports(IResizeLayer)
def resize(
    layer: IResizeLayer, make: NodeBuilder, x: Value, size: Value | None = None, roi: Value | None = None
) -> Value:
    before, after = make.type(0).shape, make.out().shape
    if layer.coordinate_transformation is ResizeCoordinateTransformation.CROP:
        part = make.constant(layer.roi, np.float32) if roi is None else make.cast(roi, FLOAT)
        return _resize(layer, make, x, size, part)
    if UNKNOWN in (*before, *after):
        return _resize(layer, make, x, size)
    if 0 in after:
        return make.full(make.int64s(*after), 0, x.dtype)
    if _is_whole(layer, before, after):
        return _resize(layer, make, x, make.int64s(*after))
    value, by_scales = make.wide(x), size is None and bool(layer.scales)
    for axis, (length, new) in enumerate(zip(before, after, strict=True)):
        value = _along(layer, make, value, axis, _ResizedAxis(length, new, layer.scales[axis] if by_scales else None))
    return make.cast(value, x.dtype)


def _is_whole(layer: IResizeLayer, before: Shape, after: Shape) -> bool:
    """Whether axes of images grow by whole factors: then rounding moves no position, and every runtime can resize them.

    HALF_PIXEL_SYMMETRIC is left to ``_along``, because OpenVINO does not have it.
    """
    grown = [new // length if new % length == 0 else 0 for length, new in zip(before, after, strict=True)]
    planes = 4 if layer.resize_mode is CUBIC else 5
    of_images = 2 < len(before) <= planes and grown[:2] == [1, 1]
    is_known = layer.coordinate_transformation is not ResizeCoordinateTransformation.HALF_PIXEL_SYMMETRIC
    return is_known and 0 not in grown and of_images and list(layer.scales or grown) == grown


def _resize(layer: IResizeLayer, make: NodeBuilder, x: Value, size: Value | None, roi: Value | None = None) -> Value:
    require(
        layer.selector_for_single_pixel is ResizeSelector.FORMULA or 1 not in make.out().shape,
        f"{layer.name!r} has the selector UPPER, and lengths that are known only at run time",
        "ONNX's Resize has no selector for a single element",
        "fix the lengths of the input, or set selector_for_single_pixel to FORMULA",
    )
    if size is None and layer.scales:
        size = make.constant(layer.scales, np.float32)
    elif size is None:
        size = make.int64s(*layer.shape) if layer.shape else make.lengths(x, make.type(0))
    by_scales = size.dtype.kind == "f"
    return make.op(
        "Resize",
        x,
        roi,
        make.cast(size, FLOAT) if by_scales else None,
        None if by_scales else make.cast(size, INT64),
        mode=RESIZE_MODES.onnx.write[layer.resize_mode],
        coordinate_transformation_mode=COORDINATE_TRANSFORMATIONS.onnx.write[layer.coordinate_transformation],
        nearest_mode=NEAREST_ROUNDINGS.onnx.write[layer.nearest_rounding],
        cubic_coeff_a=layer.cubic_coeff,
        exclude_outside=int(layer.exclude_outside and (layer.resize_mode is CUBIC or layer.antialias)),
        extrapolation_value=layer.extrapolation_value,
        antialias=int(layer.antialias),
    )


class _ResizedAxis(NamedTuple):
    """The lengths of an axis before and after, and its scale if it is resized by one."""

    length: int
    size: int
    scale: float | None


def _along(layer: IResizeLayer, make: NodeBuilder, x: Value, axis: int, change: _ResizedAxis) -> Value:
    """Resize one axis exactly, by the indices or weights that the layer itself computes for it."""
    rank = make.type(0).rank
    if layer.resize_mode is NEAREST:
        elements = _resized(layer, np.arange(change.length).reshape(1, -1), change)[0]
        return x if elements.tolist() == list(range(change.length)) else make.gather(x, make.int64s(*elements), axis)
    weights = _resized(layer, np.eye(change.length), change)
    if np.array_equal(weights, np.eye(change.length)):
        return x
    rows = make.move_axis(x, rank, axis, rank - 1)
    return make.move_axis(make.op("MatMul", rows, make.constant(weights, x.dtype)), rank, rank - 1, axis)


def _resized(layer: IResizeLayer, rows: Array, change: _ResizedAxis) -> Array:
    """The resized rows, evaluated by the layer."""
    shape = (len(rows), change.size) if change.scale is None else ()
    scales = () if change.scale is None else (1.0, change.scale)
    return replace(layer, shape=shape, scales=scales, roi=()).evaluate(rows)
