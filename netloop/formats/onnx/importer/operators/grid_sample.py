"""Grid sampling."""

from typing import Any

import numpy as np

from netloop.formats.onnx.importer.operators import NodeCall, operator
from netloop.formats.shared.word_tables import GRID_SAMPLE_MODES, GRID_SAMPLE_PADDINGS
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.types import agree


@operator("AffineGrid", since=20)
def affine_grid(call: NodeCall, theta: ITensor, size: ITensor) -> ITensor:
    """The sampling grid of an affine map."""
    is_map = theta.type.rank == 3 and theta.type.shape[1] in (2, 3)
    require(is_map, f"theta is {theta.type}, but must be [N, 2, 3] or [N, 3, 4]")
    make, count = call.make, theta.type.shape[1]
    listed = make.list_tensor(size)
    require(agree(listed.type.shape, (count + 2,)), f"the size is {listed.type}, but must be {count + 2} numbers")
    lengths = make.slice(listed, [2], [count])
    columns = [make.slice(theta, [index], [1], axes=[2]) for index in range(count + 1)]
    grid, *maps = (make.expand_dims(make.squeeze(column, [2]), range(1, 1 + count)) for column in reversed(columns))
    for axis, own in enumerate(maps):
        length = make.scalar(make.slice(lengths, [axis], [1]))
        grid = make.add(grid, make.mul(own, _coordinates(call, length, theta.type.dtype, count - axis)))
    return grid


def _coordinates(call: NodeCall, length: ITensor, dtype: np.dtype[Any], behind: int) -> ITensor:
    """Coordinates from -1 to 1 of the elements of an axis, or of their centres, with axes of length 1 behind."""
    make = call.make
    scale = make.maximum(make.sub(length, 1), 1) if call.attribute("align_corners") else length
    doubled = make.add(make.mul(make.arange(length), 2), make.sub(1, length))
    coordinates = make.div(make.cast(doubled, dtype), make.cast(scale, dtype))
    return make.expand_dims(coordinates, range(1, 1 + behind))


@operator("GridSample", since=(16, 20))
def grid_sample(call: NodeCall, x: ITensor, grid: ITensor) -> ITensor:
    """An image interpolated at the coordinates of a grid."""
    make, dtype = call.make, x.type.dtype
    wide = dtype if x.type.is_float else np.dtype(np.float64)
    wide = grid.type.dtype if grid.type.dtype.itemsize > wide.itemsize else wide
    layer = make.network.add_grid_sample(make.cast(x, wide), make.cast(grid, wide))
    layer.interpolation_mode = call.choice("mode", GRID_SAMPLE_MODES.onnx.read, "linear")
    layer.sample_mode = call.choice("padding_mode", GRID_SAMPLE_PADDINGS.onnx.read, "zeros")
    layer.align_corners = call.flag("align_corners")
    return make.cast(make.output(layer), dtype)
