"""Regions of images: the mean or maximum of interpolated samples in the cells of a grid."""

from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from itertools import product

import numpy as np

from netloop.model.formulas.formula_builder import FormulaBuilder
from netloop.model.formulas.rearrange import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ReduceOperation, TripLimit, UnaryOperation
from netloop.values.types import LARGEST_CONSTANT

MOST_SAMPLES = 1 << 10
"""The largest number of samples along an axis of a cell; the loop over samples has its square as trip count."""


class RoiSamples(Enum):
    """The way in which a cell reduces its samples.

    Attributes:
        MEAN: their mean.
        HIGHEST_NEIGHBOUR: the highest of the four pixels around each sample, times their weights, as in onnxruntime.
        HIGHEST: the highest of the samples and 0, as in OpenVINO.
    """

    MEAN = auto()
    HIGHEST_NEIGHBOUR = auto()
    HIGHEST = auto()


@dataclass(frozen=True)
class RoiGrid:
    """A grid over each region.

    Attributes:
        rows: the number of its cells along the height.
        columns: the number along the width.
        ratio: the number of samples along each axis of a cell; with 0, one for each pixel of the cell, rounded up.
        scale: the factor of the coordinates of regions.
        before: the number added to the coordinates before they are scaled.
        after: the number subtracted from them afterwards.
        is_wide: whether a region is at least one pixel wide and high.
    """

    rows: int
    columns: int
    ratio: int
    scale: float
    before: float
    after: float
    is_wide: bool


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


def roi_aligned(
    make: FormulaBuilder, x: ITensor, rois: ITensor, items: ITensor, grid: RoiGrid, combine: RoiSamples, name: str
) -> ITensor:
    """The samples in each cell of a grid over each region, combined; [region, channel, row, column].

    A loop iterates over the samples of a cell, taken in all cells at once.

    Args:
        make: the builder of layers.
        x: the images, [batch, channel, height, width].
        rois: the regions, [region, 4], each x1, y1, x2, y2.
        items: the image of each region, [region].
        grid: the cells.
        combine: how samples are combined.
        name: the name of the loop.
    """
    require(min(grid.rows, grid.columns) > 0, f"a region has {grid.rows} x {grid.columns} cells, but needs one or more")
    require(grid.ratio >= 0, f"sampling_ratio is {grid.ratio}, but must be 0 or more")
    require(grid.ratio <= MOST_SAMPLES, f"sampling_ratio is {grid.ratio}, but must be at most {MOST_SAMPLES}")
    cells = f"a region has {grid.rows} x {grid.columns} cells, but at most {LARGEST_CONSTANT} along an axis"
    require(max(grid.rows, grid.columns) <= LARGEST_CONSTANT, cells)
    dtype = x.type.dtype
    wide = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
    values = _CellSamples(make, make.cast(x, wide), make.cast(rois, wide), items, grid).combined(combine, name)
    return make.cast(make.transpose(values, [0, 3, 1, 2]), dtype)


class _CellSamples:
    """The samples of all cells, one after the other; the arguments are those of ``roi_aligned``."""

    def __init__(self, make: FormulaBuilder, x: ITensor, rois: ITensor, items: ITensor, grid: RoiGrid) -> None:
        self._make = make
        self._grid = grid
        self._pixels = make.reshape(make.transpose(x, [0, 2, 3, 1]), [-1, make.length(x, 1)])
        self._items = make.expand_dims(make.cast(items, np.int64), [1, 2])
        places = make.mul(make.add(rois, grid.before) if grid.before else rois, grid.scale)
        self._places = make.sub(places, grid.after) if grid.after else places
        self._rows = self._side(make.length(x, 2), grid.rows, 1)
        self._columns = self._side(make.length(x, 3), grid.columns, 0)

    def _side(self, length: Length, number: int, first: int) -> _RoiAxis:
        make, ratio = self._make, self._grid.ratio
        start, end = (make.gather(self._places, make.constant([number]), 1) for number in (first, first + 2))
        span = make.sub(end, start)
        cell = make.div(make.maximum(span, 1.0) if self._grid.is_wide else span, float(number))
        if ratio:
            count = make.full(make.shape(cell), ratio, np.int64)
        else:
            count = make.maximum(make.cast(make.unary(UnaryOperation.CEIL, cell), np.int64), 0)
        return _RoiAxis(make.tensor(length), number, start, cell, count)

    def combined(self, combine: RoiSamples, name: str) -> ITensor:
        """The samples of each cell, combined; [region, row, column, channel]."""
        make, loop, mean = self._make, self._make.network.add_loop(), combine is RoiSamples.MEAN
        loop.name = name
        down, across = (self._most(side) for side in (self._rows, self._columns))
        loop.add_trip_limit(make.mul(down, across), TripLimit.COUNT)
        iteration = make.counter(loop).outputs[0]
        sides = (self._rows, make.floor_div(iteration, across)), (self._columns, make.modulo(iteration, across))
        nothing = -np.inf if combine is RoiSamples.HIGHEST_NEIGHBOUR else 0.0
        recurrence = loop.add_recurrence(self._filled(nothing))
        taps = [self._taps(side, sample) for side, sample in sides]
        neighbours = [self._read(row, column) for row, column in product(*taps)]
        tensor = reduce(make.maximum if combine is RoiSamples.HIGHEST_NEIGHBOUR else make.add, neighbours)
        counted = make.logical_and(*(make.less(sample, side.count) for side, sample in sides))
        tensor = make.where(make.expand_dims(counted, [2, 3]), tensor, nothing)
        recurrence.set_input(1, (make.add if mean else make.maximum)(recurrence.outputs[0], tensor))
        total = make.expand_dims(make.mul(self._rows.count, self._columns.count), [2, 3])
        cells = make.last(loop, recurrence)
        if mean:
            return make.div(cells, make.cast(make.maximum(total, 1), cells.type.dtype))
        return make.where(make.equal(total, 0), np.zeros((), cells.type.dtype), cells)

    def _most(self, side: _RoiAxis) -> ITensor:
        """The largest number of samples in a cell of any region along an axis."""
        ratio = self._grid.ratio
        return self._make.constant(ratio) if ratio else self._make.reduce(ReduceOperation.MAX, side.count, [0, 1])

    def _filled(self, value: float) -> ITensor:
        make, dtype = self._make, self._pixels.type.dtype
        lengths = [make.length(self._items, 0), self._rows.cells, self._columns.cells, make.length(self._pixels, 1)]
        return make.full(lengths, value, dtype)

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
            [make.expand_dims(tensor, [axis]) for tensor in pair] for axis, pair in ((2, row), (1, column))
        )
        line = make.add(make.mul(self._items, self._rows.length), y)
        result = make.gather(self._pixels, make.add(make.mul(line, self._columns.length), x))
        return make.mul(result, make.expand_dims(make.mul(down, across), [3]))
