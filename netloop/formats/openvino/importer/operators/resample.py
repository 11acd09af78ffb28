"""Resizing."""

from collections.abc import Sequence

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.import_errors import present
from netloop.formats.shared.word_tables import COORDINATE_TRANSFORMATIONS, NEAREST_ROUNDINGS, RESIZE_MODES
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.resample import IResizeLayer
from netloop.values.diagnostics import require
from netloop.values.enums import ResizeSelector, SampleMode
from netloop.values.types import agree

BY_SCALES = {"sizes": False, "scales": True}


@operator("Interpolate", "opset4")
def interpolate(call: LayerCall, x: ITensor, sizes: ITensor, scales: ITensor, axes: Maybe = None) -> ITensor:
    """Interpolation to given sizes, or by scales."""
    by_scales = call.choice("shape_calculation_mode", BY_SCALES)
    return _resized(call, x, scales if by_scales else sizes, axes)


@operator("Interpolate", "opset11")
def interpolate_by_one(call: LayerCall, x: ITensor, sizes: ITensor, axes: Maybe = None) -> ITensor:
    """Interpolation to given sizes, or by scales."""
    return _resized(call, x, sizes, axes)


def _resized(call: LayerCall, x: ITensor, numbers: ITensor, axes: Maybe) -> ITensor:
    make, rank = call.make, x.type.rank
    pads = [call.ints(name, []) for name in ("pads_begin", "pads_end")]
    if any(map(any, pads)):
        before, after = ([*amount, *([0] * (rank - len(amount)))] for amount in pads)
        lengths = make.add(make.shape(x), np.add(before, after))
        x = make.slice(x, [-number for number in before], lengths, outside=SampleMode.FILL)
    along = range(rank) if axes is None else call.known_axes(axes, rank)
    fits = agree(numbers.type.shape, (len(along),))
    require(
        fits, f"the sizes or scales are {numbers.type}, but must be {len(along)} numbers", "there is one for each axis"
    )
    layer = make.network.add_resize(x)
    layer.resize_mode = call.choice("mode", RESIZE_MODES.openvino.read)
    way = call.text("coordinate_transformation_mode", "half_pixel").lower()
    transformations = COORDINATE_TRANSFORMATIONS.openvino.read
    layer.coordinate_transformation = call.choice("coordinate_transformation_mode", transformations, "half_pixel")
    if way == "pytorch_half_pixel":
        layer.selector_for_single_pixel = ResizeSelector.UPPER
    layer.nearest_rounding = call.choice("nearest_mode", NEAREST_ROUNDINGS.openvino.read, "round_prefer_floor")
    layer.cubic_coeff = call.number("cube_coeff", -0.75)
    # OpenVINO's linear widens its triangle wherever it shrinks; linear_onnx never does.
    layer.antialias = call.flag("antialias", False) and call.text("mode").lower() in ("linear", "cubic")
    if call.choice("shape_calculation_mode", BY_SCALES):
        layer.scales = _scales(call, numbers, along, rank)
    else:
        _set_sizes(call, layer, x, numbers, along)
    return make.output(layer)


def _scales(call: LayerCall, scales: ITensor, along: Sequence[int], rank: int) -> tuple[float, ...]:
    why = "the shape of the output would be unknown"
    value = present(call.make.known(scales), "the scales are not constant", why)
    factors = dict(zip(along, value.reshape(-1).tolist(), strict=True))
    return tuple(factors.get(axis, 1.0) for axis in range(rank))


def _set_sizes(call: LayerCall, layer: IResizeLayer, x: ITensor, numbers: ITensor, along: Sequence[int]) -> None:
    make, sizes = call.make, call.make.list_tensor(numbers)
    places = {axis: number for number, axis in enumerate(along)}
    lengths = [
        make.scalar(make.slice(sizes, [places[axis]], [1])) if axis in places else make.length(x, axis)
        for axis in range(x.type.rank)
    ]
    whole = make.list_tensor(lengths)
    dims = make.ints(whole)
    if dims is None:
        layer.set_input(1, whole)
    else:
        layer.shape = dims
