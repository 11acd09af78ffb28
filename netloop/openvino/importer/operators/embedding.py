"""Embedding bags."""

import numpy as np

from netloop.enums import ReduceOperation
from netloop.formulas import FormulaBuilder, Length
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator

MEANS = {"sum": False, "mean": True}


@operator("EmbeddingBagPackedSum", "opset3")
@operator("EmbeddingBagPacked", "opset15")
def packed_bags(call: Call, table: ITensor, indices: ITensor, weights: ITensor | None = None) -> ITensor:
    """Sum or mean of bags of equally many embeddings, optionally weighted."""
    make, means = call.make, call.choice("reduction", MEANS, "sum")
    rows = _weighted(make, make.gather(table, indices), weights)
    return make.mean(rows, [1]) if means else make.sum(rows, [1])


@operator("EmbeddingBagOffsetsSum", "opset3")
@operator("EmbeddingBagOffsets", "opset15")
def bags_by_offsets(
    call: Call,
    table: ITensor,
    indices: ITensor,
    starts: ITensor,
    default: ITensor | None = None,
    weights: ITensor | None = None,
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
    call: Call,
    table: ITensor,
    indices: ITensor,
    numbers: ITensor,
    count: ITensor,
    default: ITensor | None = None,
    weights: ITensor | None = None,
) -> ITensor:
    """Sum of bags of embeddings, given the bag of each index."""
    make = call.make
    rows = _weighted(make, make.gather(table, indices), weights)
    known = make.ints(count)
    total = make.scalar(make.cast(count, np.int64)) if known is None else known[0]
    return _bags(call, table, rows, numbers, total, default)


def _weighted(make: FormulaBuilder, rows: ITensor, weights: ITensor | None) -> ITensor:
    if weights is None:
        return rows
    return make.mul(rows, make.expand_dims(weights, range(weights.type.rank, rows.type.rank)))


def _bags(
    call: Call, table: ITensor, rows: ITensor, numbers: ITensor, count: Length, default: ITensor | None
) -> ITensor:
    """The rows of each bag summed or averaged; an empty bag gets the default row, or zeros."""
    make, dtype = call.make, table.type.dtype
    rest = [make.length(table, axis) for axis in range(1, table.type.rank)]
    places = make.expand_dims(numbers, [1])
    zeros = make.broadcast_to(make.constant(np.zeros((), dtype)), make.list_tensor([count, *rest]))
    sums = make.scatter_nd(zeros, places, rows, ReduceOperation.SUM)
    none = make.broadcast_to(make.constant(np.zeros((), dtype)), make.list_tensor([count]))
    ones = make.broadcast_to(make.constant(np.ones((), dtype)), make.shape(numbers))
    sizes = make.expand_dims(make.scatter_nd(none, places, ones, ReduceOperation.SUM), range(1, table.type.rank))
    if call.choice("reduction", MEANS, "sum"):
        sums = make.div(sums, make.maximum(sizes, 1))
    if default is None:
        return sums
    number = make.scalar(default)
    row = make.gather(table, make.maximum(number, 0))
    row = make.where(make.less(number, 0), np.zeros((), dtype), row)
    return make.where(make.equal(sizes, 0), row, sums)
