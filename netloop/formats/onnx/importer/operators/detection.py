"""Detection: boxes, regions, nonzero and unique elements."""

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.shared.nms import non_max_suppression
from netloop.formats.shared.regions import RoiGrid, RoiSamples, roi_aligned
from netloop.model.formulas import FormulaBuilder, Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import DataType, ReduceOperation, TripLimit, UnaryOperation


@operator("NonMaxSuppression", since=(10, 11))
def nms(
    call: NodeCall, boxes: ITensor, scores: ITensor, most: Maybe = None, max_iou: Maybe = None, min_score: Maybe = None
) -> ITensor:
    """Non-maximum suppression: [batch item, class, box] of the boxes with the highest scores and little overlap."""
    make = call.make
    if most is None:
        return make.constant(np.zeros((0, 3), np.int64))
    max_iou = make.constant(0.0) if max_iou is None else max_iou
    min_score = make.constant(-np.inf) if min_score is None else min_score
    return non_max_suppression(make, boxes, scores, most, max_iou, min_score, call.flag("center_point_box"))


# ---------------------------------------------------------------------------- RoiAlign


@operator("RoiAlign", since=(10, 16))
def roi_align(call: NodeCall, x: ITensor, rois: ITensor, items: ITensor) -> ITensor:
    """The mean or maximum of interpolated samples in each cell of a grid over each region.

    The maximum is that of the weighted neighbours of the samples, as in onnxruntime.
    """
    mean = call.choice("mode", {"avg": True, "max": False})
    rows, columns, ratio = (call.attribute(name) for name in ("output_height", "output_width", "sampling_ratio"))
    halves = call.attribute("coordinate_transformation_mode", "output_half_pixel") == "half_pixel"
    grid = RoiGrid(rows, columns, ratio, call.attribute("spatial_scale"), 0.0, 0.5 if halves else 0.0, not halves)
    combine = RoiSamples.MEAN if mean else RoiSamples.HIGHEST_NEIGHBOUR
    return roi_aligned(call.make, x, rois, items, grid, combine, call.node.name)


# ---------------------------------------------------------------------------- MaxRoiPool


@operator("MaxRoiPool")
def max_roi_pool(call: NodeCall, x: ITensor, rois: ITensor) -> ITensor:
    """The maximum in each cell of a grid over each region, 0 in an empty cell; a loop over the regions."""
    shape = call.attribute("pooled_shape")
    require(len(shape) == 2 and min(shape) > 0, f"pooled_shape is {shape}, but must be a height and a width")
    require(x.type.rank == 4 and rois.type.rank == 2, f"X is {x.type}, rois is {rois.type}; they need 4 and 2 axes")
    make, loop = call.make, call.make.network.add_loop()
    loop.name = call.node.name
    count = make.tensor(make.length(rois, 0))
    loop.add_trip_limit(count, TripLimit.COUNT)
    item = make.cast(make.squeeze(make.gather(rois, make.constant([0]), 1), [1]), np.int64)
    image = make.gather(x, loop.add_iterator(item).outputs[0])
    for axis, first in ((1, 2), (2, 1)):
        cells = _cells(call, rois, make.length(x, axis + 1), axis - 1, first)
        image = _highest(make, image, loop.add_iterator(cells).outputs[0], axis)
    pooled = make.stacked(loop, image, count)
    return make.where(make.equal(pooled, -np.inf), np.zeros((), x.type.dtype), pooled)


def _cells(call: NodeCall, rois: ITensor, length: Length, axis: int, first: int) -> ITensor:
    """A mask of the pixels of an axis in each cell of each region; [region, cell, pixel]."""
    make, count = call.make, call.attribute("pooled_shape")[axis]
    corners = make.gather(rois, make.constant([first, first + 2]), 1)
    rounded = make.unary(UnaryOperation.FLOOR, make.add(make.mul(corners, call.attribute("spatial_scale")), 0.5))
    start, end = (make.gather(rounded, make.constant([number]), 1) for number in (0, 1))
    cell = make.div(make.maximum(make.add(make.sub(end, start), 1.0), 1.0), float(count))
    number = np.arange(count)
    low = make.add(start, make.unary(UnaryOperation.FLOOR, make.mul(cell, number)))
    high = make.add(start, make.unary(UnaryOperation.CEIL, make.mul(cell, number + 1)))
    low, high = (make.expand_dims(tensor, [2]) for tensor in (low, high))
    pixels = make.cast(make.arange(length), rois.type.dtype)
    return make.logical_and(make.greater_equal(pixels, low), make.less(pixels, high))


def _highest(make: FormulaBuilder, x: ITensor, cells: ITensor, axis: int) -> ITensor:
    """The maximum over each cell of an axis."""
    rank = x.type.rank
    among = make.expand_dims(cells, range(2, rank - axis + 1))
    chosen = make.where(among, make.expand_dims(x, [axis]), np.array(-np.inf, x.type.dtype))
    return make.reduce(ReduceOperation.MAX, chosen, [axis + 1])


@operator("NonZero", since=9)
def nonzero(call: NodeCall, x: ITensor) -> ITensor:
    """The indices of all nonzero elements, [axis, element]."""
    return call.make.nonzero(x)


@operator("Unique", since=11)
def unique(call: NodeCall, x: ITensor) -> list[ITensor]:
    """The distinct elements or slices along an axis, their first indices, the inverse indices, and the counts."""
    layer = call.make.network.add_unique(x, call.attribute("axis"), call.flag("sorted"), DataType.INT64)
    return [layer.outputs[index] for index in range(4)]
