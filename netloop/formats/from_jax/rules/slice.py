"""Slices, parts and repetitions."""

from typing import Any

import numpy as np

from netloop.formats.from_jax.indices import Indices, Windows, differs
from netloop.formats.from_jax.rules import EquationCall, primitive
from netloop.formats.from_jax.rules.gather import written
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ReduceOperation


@primitive("slice", moves=True)
def slice_(call: EquationCall, x: ITensor) -> ITensor:
    """The elements between limits, with strides."""
    starts = call.params["start_indices"]
    strides = call.params["strides"] or (1,) * len(starts)
    before, after = call.operand(0).shape, call.result.shape
    axes = [axis for axis in range(len(starts)) if differs(before[axis], after[axis])]
    if not axes:
        return x
    first = call.lengths([starts[axis] for axis in axes])
    sizes = call.lengths([after[axis] for axis in axes])
    return call.make.slice(x, first, sizes, [int(strides[axis]) for axis in axes], axes)


@primitive("dynamic_slice")
def dynamic_slice(call: EquationCall, x: ITensor, *starts: ITensor) -> ITensor:
    """A window whose start is moved to where the window is within bounds."""
    before, after = call.operand(0).shape, call.result.shape
    axes = [axis for axis in range(len(before)) if differs(before[axis], after[axis])]
    if not axes:
        return x
    first = [_moved(call, starts[axis], before[axis], after[axis]) for axis in axes]
    result = call.make.slice(x, first, call.lengths([after[axis] for axis in axes]), [1] * len(axes), axes)
    if len(axes) == 1 and isinstance(first[0], ITensor) and result.type.shape[axes[0]] == 1:
        call.facts.picked[result] = x, first[0], axes[0]
    return result


def _moved(call: EquationCall, start: ITensor, length: Any, size: Any) -> Length:
    """The start of a window, moved within bounds."""
    make = call.make
    whole, part = call.lengths([length, size])
    last = whole - part if isinstance(whole, int) and isinstance(part, int) else make.sub(whole, part)
    numbers = make.ints(start)
    if numbers is not None and isinstance(last, int):
        return min(max(numbers[0], 0), last)
    wide = start if start.type.is_index else make.cast(start, np.int64)
    reach = call.facts.range_of(start)
    if reach is not None and reach[0] >= 0 and isinstance(last, int) and reach[1] <= last:
        return wide
    return make.clip(wide, 0, make.cast(last, wide.type.dtype) if isinstance(last, ITensor) else last)


@primitive("dynamic_update_slice")
def dynamic_update_slice(call: EquationCall, x: ITensor, update: ITensor, *starts: ITensor) -> ITensor:
    """A window written where its start, moved within bounds, says."""
    before, size = call.operand(0).shape, call.operand(1).shape
    axes = [axis for axis in range(len(before)) if differs(before[axis], size[axis])]
    if not axes:
        return update
    make = call.make
    first = [_moved(call, starts[axis], before[axis], size[axis]) for axis in axes]
    ints = [length for length in first if isinstance(length, int)]
    dtype = next((length.type.dtype for length in first if isinstance(length, ITensor)), np.dtype(np.int64))
    parts = [
        make.constant(np.asarray([length], dtype)) if isinstance(length, int) else make.flat(length) for length in first
    ]
    tensor = (
        make.constant(np.array(ints, np.int64))
        if len(ints) == len(first)
        else make.concat([make.cast(part, dtype) for part in parts], 0)
    )
    windows = Windows(before, tuple(size), tuple(axes), {}, frozenset(), True)
    order = [*axes, *(axis for axis in range(update.type.rank) if axis not in axes)]
    return written(call, x, Indices(call, windows, tensor, False), make.transpose(update, order), ReduceOperation.NONE)


@primitive("split")
def split(call: EquationCall, x: ITensor) -> list[ITensor]:
    """Consecutive parts of an axis."""
    sizes = np.array(call.ints("sizes"), np.int64)
    return call.make.split(x, int(call.params["axis"]), call.make.constant(sizes))


@primitive("tile", moves=True)
def tile(call: EquationCall, x: ITensor) -> ITensor:
    """The tensor repeated along each axis."""
    return call.make.tile(x, call.ints("reps"))
