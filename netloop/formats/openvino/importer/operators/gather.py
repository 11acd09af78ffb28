"""Gather and scatter."""

from typing import Any

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, operator
from netloop.formats.shared.word_tables import SCATTER_REDUCTIONS
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import GatherMode, ReduceOperation, TripLimit


def _signed(call: LayerCall, indices: ITensor) -> ITensor:
    """The indices as int32 or int64: OpenVINO takes integers of any type, and networks only these."""
    return indices if indices.type.is_index else call.make.cast(indices, np.int64)


@operator("Gather", "opset1", "opset7", "opset8")
def gather(call: LayerCall, x: ITensor, indices: ITensor, axis: ITensor) -> ITensor:
    """Slices along an axis, selected by index, optionally for each batch item."""
    make, along = call.make, call.known_axis(axis, x.type.rank)
    batch = call.int("batch_dims", 0)
    batch += indices.type.rank if batch < 0 else 0
    require(0 <= batch <= min(along, indices.type.rank), f"batch_dims is {batch}, and the axis {along}")
    layer = make.network.add_gather_v2(x, _signed(call, indices), GatherMode.DEFAULT)
    layer.axis, layer.num_elementwise_dims = along, batch
    return make.output(layer)


@operator("GatherElements", "opset6")
def gather_elements(call: LayerCall, x: ITensor, indices: ITensor) -> ITensor:
    """Elements along an axis, one index for each output element."""
    return call.make.gather_elements(x, indices, call.axis(x))


@operator("GatherND", "opset8")
def gather_nd(call: LayerCall, x: ITensor, indices: ITensor) -> ITensor:
    """Slices selected by index tuples."""
    return call.make.gather_nd(x, _signed(call, indices), call.int("batch_dims", 0))


@operator("GatherND", "opset5")
def gather_nd_of_joined_batch(call: LayerCall, x: ITensor, indices: ITensor) -> ITensor:
    """Slices selected by index tuples; the batch axes are merged."""
    make, batch = call.make, call.int("batch_dims", 0)
    result = make.gather_nd(x, _signed(call, indices), batch)
    if batch < 2:
        return result
    lengths = [make.length(result, axis) for axis in range(batch, result.type.rank)]
    return make.reshape(result, [-1, *lengths])


@operator("GatherTree", "opset1")
def gather_tree(call: LayerCall, steps: ITensor, parents: ITensor, max_lengths: ITensor, end: ITensor) -> ITensor:
    """Whole beams from the tokens and parent beams of each step, filled with the end token."""
    make, end = call.make, call.make.scalar(end)
    time, beams = make.tensor(make.length(steps, 0)), make.length(steps, 2)
    loop = make.network.add_loop()
    loop.name = call.layer.name
    loop.add_trip_limit(time, TripLimit.COUNT)
    token, parent = (loop.add_iterator(tensor, 0, True).outputs[0] for tensor in (steps, parents))
    shape = make.list_tensor([make.length(steps, 1), beams])
    beam = loop.add_recurrence(make.broadcast_to(make.arange(beams), shape))
    step = make.sub(make.sub(time, 1), make.counter(loop).outputs[0])
    within = make.expand_dims(make.less(step, make.cast(max_lengths, np.int64)), [1])
    place = beam.outputs[0]
    result = make.where(within, make.gather_elements(token, place, 1), end)
    before = make.cast(make.gather_elements(parent, place, 1), np.int64)
    beam.set_input(1, make.where(within, before, place))
    return _filled_after_end(call, make.stacked(loop, result, time, reverse=True), end)


def _filled_after_end(call: LayerCall, rows: ITensor, end: ITensor) -> ITensor:
    """Sequences along axis 0, filled with the end token after its first occurrence."""
    make = call.make
    ends = make.cast(make.equal(rows, end), np.int64)
    return make.where(make.greater(make.cumulative_sum(ends), 0), end, rows)


# ---------------------------------------------------------------------------- scatter

ND_REDUCTIONS = {name: op for name, op in SCATTER_REDUCTIONS.openvino.read.items() if name != "mean"}
ND_REDUCTIONS["sub"] = ReduceOperation.SUM


@operator("ScatterUpdate", "opset3")
def scatter_update(call: LayerCall, x: ITensor, indices: ITensor, updates: ITensor, axis: ITensor) -> ITensor:
    """The input with slices along an axis replaced."""
    make, rank, along = call.make, x.type.rank, call.known_axis(axis, x.type.rank)
    indices = _signed(call, indices)
    own = range(along, along + indices.type.rank)
    order = [along, *(index for index in range(rank) if index != along)]
    first = [*own, *(index for index in range(updates.type.rank) if index not in own)]
    written = make.scatter_nd(
        make.transpose(x, order), make.expand_dims(indices, [indices.type.rank]), make.transpose(updates, first)
    )
    return make.transpose(written, np.argsort(order).tolist())


@operator("ScatterNDUpdate", "opset4", "opset15")
def scatter_nd_update(call: LayerCall, x: ITensor, indices: ITensor, updates: ITensor) -> ITensor:
    """The input with slices written, or combined with updates, by index tuples."""
    make, op = call.make, call.choice("reduction", ND_REDUCTIONS, "none")
    subtracts = call.text("reduction", "none").lower() == "sub"
    return make.scatter_nd(x, indices, make.sub(0, updates) if subtracts else updates, op)


@operator("ScatterElementsUpdate", "opset3", "opset12")
def scatter_elements_update(call: LayerCall, x: ITensor, indices: ITensor, updates: ITensor, axis: ITensor) -> ITensor:
    """The input with elements along an axis written, or combined with updates, by index.

    With ``use_init_val`` the replaced elements count too.
    """
    make, along = call.make, call.known_axis(axis, x.type.rank)
    indices = _signed(call, indices)
    op = call.choice("reduction", SCATTER_REDUCTIONS.openvino.read, "none")
    if op is ReduceOperation.NONE:
        return make.scatter_elements(x, indices, updates, along)
    counts_own = call.flag("use_init_val", True)
    start = x if counts_own else _with_neutral(call, x, indices, along, op)
    if op is not ReduceOperation.AVG:
        return make.scatter_elements(start, indices, updates, along, op)
    total = make.scatter_elements(start, indices, updates, along, ReduceOperation.SUM)
    ones = make.full(make.shape(x), 1, x.type.dtype)
    base = ones if counts_own else make.scatter_elements(ones, indices, make.sub(updates, updates), along)
    more = make.full(make.shape(updates), 1, x.type.dtype)
    counts = make.scatter_elements(base, indices, more, along, ReduceOperation.SUM)
    return make.floor_div(total, counts) if x.type.is_integer else make.div(total, counts)


def _with_neutral(call: LayerCall, x: ITensor, indices: ITensor, axis: int, op: ReduceOperation) -> ITensor:
    """The tensor with the neutral element of a reduction at all indices."""
    make, dtype = call.make, x.type.dtype
    return make.scatter_elements(x, indices, make.full(make.shape(indices), NEUTRAL[op](dtype), dtype), axis)


def _highest(dtype: np.dtype[Any]) -> float:
    return np.iinfo(dtype).max if dtype.kind in "iu" else float("inf")


def _lowest(dtype: np.dtype[Any]) -> float:
    return np.iinfo(dtype).min if dtype.kind in "iu" else float("-inf")


NEUTRAL = {
    ReduceOperation.SUM: lambda dtype: 0,
    ReduceOperation.AVG: lambda dtype: 0,
    ReduceOperation.PROD: lambda dtype: 1,
    ReduceOperation.MIN: _highest,
    ReduceOperation.MAX: _lowest,
}

# ---------------------------------------------------------------------------- indices

NEGATIVES = {"ignore_negative": False, "normalize": True}


@operator("OneHot", "opset1", "opset16")
def one_hot(call: LayerCall, indices: ITensor, depth: ITensor, on: ITensor, off: ITensor) -> ITensor:
    """One value at each index along a new axis, another elsewhere; negative indices select none, or count back."""
    make = call.make
    count, places = make.scalar(make.cast(depth, np.int64)), make.cast(indices, np.int64)
    if call.choice("negative_indices_mode", NEGATIVES, "ignore_negative"):
        places = make.where(make.less(places, 0), make.add(places, count), places)
    values = make.stack([make.scalar(off), make.scalar(on)], 0)
    return make.one_hot(places, count, values, call.int("axis"))


@operator("Bucketize", "opset3")
def bucketize(call: LayerCall, x: ITensor, bounds: ITensor) -> ITensor:
    """The number of bounds below each element, or up to it; the bounds are in order."""
    return _bounds_below(call, x, bounds, call.flag("with_right_bound", True))


@operator("SearchSorted", "opset15")
def search_sorted(call: LayerCall, bounds: ITensor, x: ITensor) -> ITensor:
    """The number of bounds in a row that are below each element, or up to it; the bounds are in order."""
    rows = bounds if bounds.type.rank == 1 else call.make.expand_dims(bounds, [bounds.type.rank - 1])
    return _bounds_below(call, x, rows, not call.flag("right_mode", False))


def _bounds_below(call: LayerCall, x: ITensor, bounds: ITensor, below: bool) -> ITensor:
    """The number of bounds along the last axis that are below each element, or up to it."""
    make = call.make
    column = make.expand_dims(x, [x.type.rank])
    passed = make.less(bounds, column) if below else make.less_equal(bounds, column)
    count = make.sum(make.cast(passed, np.int64), [passed.type.rank - 1])
    return make.cast(count, call.element_type("output_type", "i64"))
