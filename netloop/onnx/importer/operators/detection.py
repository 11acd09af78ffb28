"""Detection: boxes, regions, nonzero and unique elements."""

from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from netloop.diagnostics import require
from netloop.enums import DataType, ReduceOperation, TripLimit, UnaryOperation
from netloop.formats.nms import non_max_suppression
from netloop.formulas import FormulaBuilder, Length
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator

MOST_SAMPLES = 1 << 10
"""The largest sampling ratio of RoiAlign, whose loop has its square as trip count."""


@operator("NonMaxSuppression", since=(10, 11))
def nms(
    call: Call,
    boxes: ITensor,
    scores: ITensor,
    max_boxes: ITensor | None = None,
    max_iou: ITensor | None = None,
    min_score: ITensor | None = None,
) -> ITensor:
    """Non-maximum suppression: [batch item, class, box] of the boxes with the highest scores and little overlap."""
    make = call.make
    if max_boxes is None:
        return make.constant(np.zeros((0, 3), np.int64))
    max_iou = make.constant(0.0) if max_iou is None else max_iou
    min_score = make.constant(-np.inf) if min_score is None else min_score
    return non_max_suppression(
        make, boxes, scores, max_boxes, max_iou, min_score, bool(call.attribute("center_point_box"))
    )


# ---------------------------------------------------------------------------- RoiAlign


@operator("RoiAlign", since=(10, 16))
def roi_align(call: Call, x: ITensor, rois: ITensor, items: ITensor) -> ITensor:
    """The mean or maximum of interpolated samples in each cell of a grid over each region.

    A loop iterates over the samples of a cell, taken in all cells at once. The maximum is that of the weighted
    neighbours of the samples, as in onnxruntime.
    """
    mean = call.choice("mode", {"avg": True, "max": False})
    for name, minimum in (("output_height", 1), ("output_width", 1), ("sampling_ratio", 0)):
        given = call.attribute(name)
        require(given >= minimum, f"{name} is {given}, but must be {minimum} or more")
    ratio = call.attribute("sampling_ratio")
    require(ratio <= MOST_SAMPLES, f"sampling_ratio is {ratio}, but must be at most {MOST_SAMPLES}")
    make, dtype = call.make, x.type.dtype
    wide = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
    cells = _Samples(call, make.cast(x, wide), make.cast(rois, wide), items).combined(mean)
    return make.cast(make.transpose(cells, [0, 3, 1, 2]), dtype)


@dataclass(frozen=True)
class _RoiAxis:
    """The regions along an axis of the image, cut into cells.

    Attributes:
        length: the number of pixels of the axis; 0-D.
        cells: the number of cells of a region.
        start: the start of each region; [region, 1].
        cell: the length of its cells; [region, 1].
        count: the number of samples of a cell along the axis; [region, 1].
    """

    length: ITensor
    cells: int
    start: ITensor
    cell: ITensor
    count: ITensor


class _Samples:
    """The samples of all cells, one after the other.

    Args:
        call: the node.
        x: the images, [batch, channel, height, width].
        rois: the regions, [region, 4], each x1, y1, x2, y2.
        items: the image of each region, [region].
    """

    def __init__(self, call: Call, x: ITensor, rois: ITensor, items: ITensor) -> None:
        self._call = call
        self._make = make = call.make
        self._pixels = make.reshape(make.transpose(x, [0, 2, 3, 1]), [-1, make.length(x, 1)])
        self._items = make.expand_dims(make.cast(items, np.int64), [1, 2])
        self._halves = call.attribute("coordinate_transformation_mode", "output_half_pixel") == "half_pixel"
        places = make.mul(rois, call.attribute("spatial_scale"))
        self._places = make.sub(places, 0.5) if self._halves else places
        self._rows = self._side(make.length(x, 2), "output_height", 1)
        self._columns = self._side(make.length(x, 3), "output_width", 0)

    def _side(self, length: Length, cells: str, first: int) -> _RoiAxis:
        make, number, ratio = self._make, self._call.attribute(cells), self._call.attribute("sampling_ratio")
        start, end = (make.gather(self._places, make.constant([each]), 1) for each in (first, first + 2))
        span = make.sub(end, start)
        cell = make.div(span if self._halves else make.maximum(span, 1.0), float(number))
        if ratio:
            count = make.broadcast_to(make.constant([[ratio]]), make.shape(cell))
        else:
            count = make.maximum(make.cast(make.unary(UnaryOperation.CEIL, cell), np.int64), 0)
        return _RoiAxis(make.tensor(length), number, start, cell, count)

    def combined(self, mean: bool) -> ITensor:
        """The mean or maximum of the samples of each cell; [region, row, column, channel]."""
        make, loop = self._make, self._make.network.add_loop()
        loop.name = self._call.node.name
        down, across = (self._most(side) for side in (self._rows, self._columns))
        loop.add_trip_limit(make.mul(down, across), TripLimit.COUNT)
        iteration = make.counter(loop).outputs[0]
        sides = (self._rows, make.floor_div(iteration, across)), (self._columns, make.modulo(iteration, across))
        combine, nothing = (make.add, 0.0) if mean else (make.maximum, -np.inf)
        result = loop.add_recurrence(self._filled(nothing))
        taps = [self._taps(side, sample) for side, sample in sides]
        found = reduce(combine, [self._read(row, column) for row, column in product(*taps)])
        counted = make.logical_and(*(make.less(sample, side.count) for side, sample in sides))
        result.set_input(1, combine(result.outputs[0], make.where(make.expand_dims(counted, [2, 3]), found, nothing)))
        total = make.expand_dims(make.mul(self._rows.count, self._columns.count), [2, 3])
        cells = make.last(loop, result)
        if mean:
            return make.div(cells, make.cast(make.maximum(total, 1), cells.type.dtype))
        return make.where(make.equal(total, 0), np.zeros((), cells.type.dtype), cells)

    def _most(self, side: _RoiAxis) -> ITensor:
        """The largest number of samples in a cell of any region along an axis."""
        ratio = self._call.attribute("sampling_ratio")
        return self._make.constant(ratio) if ratio else self._make.reduce(ReduceOperation.MAX, side.count, [0, 1])

    def _filled(self, value: float) -> ITensor:
        make, dtype = self._make, self._pixels.type.dtype
        lengths = [make.length(self._items, 0), self._rows.cells, self._columns.cells, make.length(self._pixels, 1)]
        return make.broadcast_to(make.constant(np.full((1, 1, 1, 1), value, dtype)), make.list_tensor(lengths))

    def _taps(self, side: _RoiAxis, sample: ITensor) -> list[tuple[ITensor, ITensor]]:
        """The two pixels around a sample, each with its weight; [region, cell]."""
        make, dtype = self._make, side.start.type.dtype
        inside = make.div(make.add(make.cast(sample, dtype), 0.5), make.cast(side.count, dtype))
        place = make.add(side.start, make.mul(side.cell, make.add(inside, np.arange(side.cells))))
        length = make.cast(side.length, dtype)
        near = make.cast(make.logical_and(make.greater_equal(place, -1.0), make.less_equal(place, length)), dtype)
        place = make.clip(place, 0.0, make.sub(length, 1.0))
        low = make.unary(UnaryOperation.FLOOR, place)
        high = make.minimum(make.add(low, 1.0), make.sub(length, 1.0))
        after = make.sub(place, low)
        weights = make.mul(make.sub(1.0, after), near), make.mul(after, near)
        return [(make.cast(pixel, np.int64), weight) for pixel, weight in zip((low, high), weights, strict=True)]

    def _read(self, row: tuple[ITensor, ITensor], column: tuple[ITensor, ITensor]) -> ITensor:
        """The pixels of all channels at a row and a column, times the weights of both."""
        make = self._make
        (y, down), (x, across) = (
            [make.expand_dims(each, [axis]) for each in pair] for axis, pair in ((2, row), (1, column))
        )
        line = make.add(make.mul(self._items, self._rows.length), y)
        found = make.gather(self._pixels, make.add(make.mul(line, self._columns.length), x))
        return make.mul(found, make.expand_dims(make.mul(down, across), [3]))


# ---------------------------------------------------------------------------- MaxRoiPool


@operator("MaxRoiPool")
def max_roi_pool(call: Call, x: ITensor, rois: ITensor) -> ITensor:
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


def _cells(call: Call, rois: ITensor, length: Length, axis: int, first: int) -> ITensor:
    """A mask of the pixels of an axis in each cell of each region; [region, cell, pixel]."""
    make, count = call.make, call.attribute("pooled_shape")[axis]
    corners = make.gather(rois, make.constant([first, first + 2]), 1)
    rounded = make.unary(UnaryOperation.FLOOR, make.add(make.mul(corners, call.attribute("spatial_scale")), 0.5))
    start, end = (make.gather(rounded, make.constant([each]), 1) for each in (0, 1))
    cell = make.div(make.maximum(make.add(make.sub(end, start), 1.0), 1.0), float(count))
    number = np.arange(count)
    low = make.add(start, make.unary(UnaryOperation.FLOOR, make.mul(cell, number)))
    high = make.add(start, make.unary(UnaryOperation.CEIL, make.mul(cell, number + 1)))
    low, high = (make.expand_dims(each, [2]) for each in (low, high))
    pixels = make.cast(make.arange(length), rois.type.dtype)
    return make.logical_and(make.greater_equal(pixels, low), make.less(pixels, high))


def _highest(make: FormulaBuilder, x: ITensor, cells: ITensor, axis: int) -> ITensor:
    """The maximum over each cell of an axis."""
    rank = x.type.rank
    among = make.expand_dims(cells, range(2, rank - axis + 1))
    chosen = make.where(among, make.expand_dims(x, [axis]), np.array(-np.inf, x.type.dtype))
    return make.reduce(ReduceOperation.MAX, chosen, [axis + 1])


@operator("NonZero", since=9)
def nonzero(call: Call, x: ITensor) -> ITensor:
    """The indices of all nonzero elements, [axis, element]."""
    return call.make.nonzero(x)


@operator("Unique", since=11)
def unique(call: Call, x: ITensor) -> list[ITensor]:
    """The distinct elements or slices along an axis, their first indices, the inverse indices, and the counts."""
    layer = call.make.network.add_unique(x, call.attribute("axis"), bool(call.attribute("sorted")), DataType.INT64)
    return [layer.outputs[each] for each in range(4)]
