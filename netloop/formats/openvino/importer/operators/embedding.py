"""Embedding bags, segments, and the sparse rows that select embeddings."""

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.model.formulas import FormulaBuilder, Length
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ReduceOperation, TopKOperation

# ---------------------------------------------------------------------------- bags

MEANS = {"sum": False, "mean": True}


@operator("EmbeddingBagPackedSum", "opset3")
@operator("EmbeddingBagPacked", "opset15")
def packed_bags(call: LayerCall, table: ITensor, indices: ITensor, weights: Maybe = None) -> ITensor:
    """Sum or mean of bags of equally many embeddings, optionally weighted."""
    make, means = call.make, call.choice("reduction", MEANS, "sum")
    rows = _weighted(make, make.gather(table, indices), weights)
    return make.mean(rows, [1]) if means else make.sum(rows, [1])


@operator("EmbeddingBagOffsetsSum", "opset3")
@operator("EmbeddingBagOffsets", "opset15")
def bags_by_offsets(
    call: LayerCall, table: ITensor, indices: ITensor, starts: ITensor, default: Maybe = None, weights: Maybe = None
) -> ITensor:
    """Sum or mean of bags of embeddings, given the start of each; an empty one gets a default row, or zeros."""
    make = call.make
    places = make.expand_dims(make.arange(make.length(indices, 0)), [1])
    begun = make.cast(make.less_equal(make.cast(starts, np.int64), places), np.int64)
    bags = make.sub(make.sum(begun, [1]), 1)
    rows = _weighted(make, make.gather(table, indices), weights)
    return _bags(call, table, rows, bags, make.length(starts, 0), default)


@operator("EmbeddingSegmentsSum", "opset3")
def bags_by_segments(
    call: LayerCall,
    table: ITensor,
    indices: ITensor,
    numbers: ITensor,
    count: ITensor,
    default: Maybe = None,
    weights: Maybe = None,
) -> ITensor:
    """Sum of bags of embeddings, given the bag of each index."""
    make = call.make
    rows = _weighted(make, make.gather(table, indices), weights)
    counts = make.ints(count)
    total = make.scalar(make.cast(count, np.int64)) if counts is None else counts[0]
    return _bags(call, table, rows, numbers, total, default)


def _weighted(make: FormulaBuilder, rows: ITensor, weights: Maybe) -> ITensor:
    if weights is None:
        return rows
    return make.mul(rows, make.expand_dims(weights, range(weights.type.rank, rows.type.rank)))


def _bags(call: LayerCall, table: ITensor, rows: ITensor, numbers: ITensor, count: Length, default: Maybe) -> ITensor:
    """The rows of each bag summed or averaged; an empty bag gets the default row, or zeros."""
    make, dtype = call.make, table.type.dtype
    rest = [make.length(table, axis) for axis in range(1, table.type.rank)]
    places = make.expand_dims(numbers, [1])
    zeros = make.full([count, *rest], 0, dtype)
    sums = make.scatter_nd(zeros, places, rows, ReduceOperation.SUM)
    none = make.full([count], 0, dtype)
    ones = make.full(make.shape(numbers), 1, dtype)
    sizes = make.expand_dims(make.scatter_nd(none, places, ones, ReduceOperation.SUM), range(1, table.type.rank))
    if call.choice("reduction", MEANS, "sum"):
        sums = make.div(sums, make.maximum(sizes, 1))
    if default is None:
        return sums
    number = make.scalar(default)
    row = make.gather(table, make.maximum(number, 0))
    row = make.where(make.less(number, 0), np.zeros((), dtype), row)
    return make.where(make.equal(sizes, 0), row, sums)


# ---------------------------------------------------------------------------- segments and sparse rows

FILLS = {"zero": False, "lowest": True}


@operator("SegmentMax", "opset16")
def segment_max(call: LayerCall, x: ITensor, numbers: ITensor, count: Maybe = None) -> ITensor:
    """Maximum of the rows of each segment, given the segment of each row; an empty one gets zeros or the lowest."""
    make, dtype = call.make, x.type.dtype
    info = np.finfo(dtype) if np.issubdtype(dtype, np.floating) else np.iinfo(dtype)
    numbers = make.cast(numbers, np.int64)
    above = make.concat([make.constant([-1]), numbers], 0)
    total = make.add(make.reduce(ReduceOperation.MAX, above, [0]), 1)
    wanted = total if count is None else make.cast(make.scalar(count), np.int64)
    rest = [make.length(x, axis) for axis in range(1, x.type.rank)]
    rows = make.maximum(total, wanted)
    lowest = make.full([rows, *rest], info.min, dtype)
    tensor = make.scatter_nd(lowest, make.expand_dims(numbers, [1]), x, ReduceOperation.MAX)
    if not call.choice("fill_mode", FILLS):
        empty = make.equal(_sizes(make, numbers, rows), 0)
        tensor = make.where(make.expand_dims(empty, range(1, x.type.rank)), np.zeros((), dtype), tensor)
    return make.take_first(tensor, wanted)


def _sizes(make: FormulaBuilder, numbers: ITensor, count: Length) -> ITensor:
    """How often each number occurs, of those below a count; int64."""
    none = make.full([count], 0, np.int64)
    ones = make.full(make.shape(numbers), 1, np.int64)
    return make.scatter_nd(none, make.expand_dims(numbers, [1]), ones, ReduceOperation.SUM)


@operator("SparseFillEmptyRows", "opset16")
def filled_rows(call: LayerCall, values: ITensor, shape: ITensor, indices: ITensor, default: ITensor) -> list[ITensor]:
    """The indices of a sparse matrix in order, its values, a default one in each empty row, and which are empty."""
    make, kind = call.make, indices.type.dtype
    shape, places = make.cast(shape, np.int64), make.cast(indices, np.int64)
    rows, columns = (make.scalar(make.slice(shape, [axis], [1])) for axis in (0, 1))
    empty = make.equal(_sizes(make, make.gather(places, make.constant(0), 1), rows), 0)
    added = make.transpose(make.nonzero(empty), [1, 0])
    places = make.concat([places, make.concat([added, make.mul(added, 0)], 1)], 0)
    defaults = make.broadcast_to(make.scalar(default), make.list_tensor([make.length(added, 0)]))
    values = make.concat([values, defaults], 0)
    row, column = (make.gather(places, make.constant(axis), 1) for axis in (0, 1))
    place = make.add(make.mul(row, columns), column)
    _, order = make.best(TopKOperation.MIN, place, make.length(place, 0), 0)
    return [make.cast(make.gather(places, order), kind), make.gather(values, order), empty]
