"""Grid sampling."""

from __future__ import annotations

from netloop.enums import (
    InterpolationMode,
    SampleMode,
)
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator

BORDERS = {"zeros": SampleMode.FILL, "border": SampleMode.CLAMP, "reflection": SampleMode.REFLECT}


GRID_MODES = {
    "bilinear": InterpolationMode.LINEAR,
    "bicubic": InterpolationMode.CUBIC,
    "nearest": InterpolationMode.NEAREST,
}


@operator("GridSample", "opset9")
def grid_sample(call: Call, x: ITensor, grid: ITensor) -> ITensor:
    """An image interpolated at the coordinates of a grid."""
    layer = call.make.network.add_grid_sample(x, grid)
    layer.interpolation_mode = call.choice("mode", GRID_MODES, "bilinear")
    layer.sample_mode = call.choice("padding_mode", BORDERS, "zeros")
    layer.align_corners = call.flag("align_corners", False)
    return call.make.made(layer)
