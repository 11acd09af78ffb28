"""Slices, parts and repetitions."""

from collections.abc import Sequence

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.rearrange import axis_count
from netloop.values.diagnostics import require
from netloop.values.enums import SampleMode
from netloop.values.types import UNKNOWN, normal_axis


@operator("Split", "opset1")
def split(call: LayerCall, x: ITensor, axis: ITensor) -> list[ITensor]:
    """Equal parts along an axis."""
    make, along, count = call.make, call.known_axis(axis, x.type.rank), call.int("num_splits")
    _require_parts(call, count)
    size = make.part_of(make.length(x, along), count)
    return make.split(x, along, make.list_tensor([size] * count))


@operator("VariadicSplit", "opset1")
def variadic_split(call: LayerCall, x: ITensor, axis: ITensor, sizes: ITensor) -> list[ITensor]:
    """Parts of given lengths along an axis; a length of -1 takes the remainder."""
    make, along = call.make, call.known_axis(axis, x.type.rank)
    sizes = make.list_tensor(sizes)
    require(sizes.type.is_fixed, f"the lengths are {sizes.type}, and their number must be known")
    _require_parts(call, sizes.type.volume)
    numbers = make.ints(sizes)
    if numbers is None or UNKNOWN in numbers:
        others = make.sum(make.maximum(sizes, 0), [0])
        rest = make.sub(make.tensor(make.length(x, along)), others)
        sizes = make.where(make.less(sizes, 0), rest, sizes)
    return make.split(x, along, sizes)


def _require_parts(call: LayerCall, count: int) -> None:
    outputs = len(call.layer.outputs)
    require(count == outputs, f"the axis is split into {count} parts, and the layer has {outputs} outputs")


@operator("Slice", "opset8")
def slice_(call: LayerCall, x: ITensor, starts: ITensor, ends: ITensor, steps: ITensor, axes: Maybe = None) -> ITensor:
    """A range of some axes, with steps; starts and ends past an end of an axis are clamped to it."""
    return call.make.slice_between(x, starts, ends, axes, steps)


@operator("SliceScatter", "opset15")
def slice_scatter(
    call: LayerCall, x: ITensor, updates: ITensor, starts: ITensor, ends: ITensor, steps: ITensor, axes: Maybe = None
) -> ITensor:
    """The input with a range of some axes replaced."""
    make = call.make
    places = make.reshape(make.arange(make.size(x)), make.shape(x))
    replaced = make.slice_between(places, starts, ends, axes, steps)
    whole = make.scatter_elements(make.flat(x), make.flat(replaced), make.flat(updates), 0)
    return make.reshape(whole, make.shape(x))


# ---------------------------------------------------------------------------- StridedSlice

MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


@operator("StridedSlice", "opset1")
def strided_slice(call: LayerCall, x: ITensor, begins: ITensor, ends: ITensor, strides: Maybe = None) -> ITensor:
    """A range of axes as in Python's brackets; masks mark open ends, new axes, single indices and the ellipsis."""
    make = call.make
    begins, ends = make.list_tensor(begins), make.list_tensor(ends)
    count = axis_count(begins.type)
    require(ends.type.shape == (count,), f"the begins are {begins.type}, the ends {ends.type}")
    strides = make.constant(np.ones(count, np.int64)) if strides is None else make.list_tensor(strides)
    require(strides.type.shape == (count,), f"the begins are {begins.type}, and the strides {strides.type}")
    begin, end, new, shrink, dots = (_mask(call, name, count) for name in MASKS)
    new = [flag and not ellipsis for flag, ellipsis in zip(new, dots, strict=True)]
    taken = [place for place in range(count) if not new[place] and not dots[place]]
    axes, added = _axes(x.type.rank, new, dots)
    single = [place for place in taken if shrink[place]]
    if taken:
        chosen = [make.gather(tensor, make.constant(taken, np.int64)) for tensor in (begins, ends, strides)]
        opened = [[mask[place] and not shrink[place] for place in taken] for mask in (begin, end)]
        first, last, by = _open(call, chosen, opened, [shrink[place] for place in taken])
        along = make.constant([axes[place] for place in taken], np.int64)
        x = make.slice_between(x, first, last, along, by)
    x = make.squeeze(x, [axes[place] for place in single]) if single else x
    return make.expand_dims(x, added) if added else x


def _mask(call: LayerCall, name: str, count: int) -> list[bool]:
    """A mask with an element for each begin; missing ones are 0."""
    numbers = call.ints(name, [])
    return [bool(numbers[place]) if place < len(numbers) else False for place in range(count)]


def _axes(rank: int, new: Sequence[bool], dots: Sequence[bool]) -> tuple[dict[int, int], list[int]]:
    """The axis of the input for each index of the lists, and the new axes of the output."""
    require(sum(dots) <= 1, f"the ellipsis mask has {sum(dots)} ellipses, and may have one")
    plain = sum(not a and not b for a, b in zip(new, dots, strict=True))
    require(plain <= rank, f"{plain} axes are sliced, and the input has {rank} axes")
    axes: dict[int, int] = {}
    added: list[int] = []
    axis = output_axis = 0
    for place, (is_new, is_dots) in enumerate(zip(new, dots, strict=True)):
        if is_new:
            added.append(output_axis)
        if is_dots:
            axis, output_axis = axis + rank - plain, output_axis + rank - plain
        elif not is_new:
            axes[place] = axis
            axis += 1
        output_axis += not is_dots
    return axes, added


def _open(
    call: LayerCall, lists: Sequence[ITensor], opened: Sequence[Sequence[bool]], single: Sequence[bool]
) -> list[ITensor]:
    """Begins, ends and strides, with open ends beyond the axis and single indices as ranges of one."""
    make, (begins, ends, strides) = call.make, lists
    far = np.int64(np.iinfo(np.int32).max)
    forward = make.greater(strides, 0)
    begins = make.where(np.array(opened[0]), make.where(forward, make.constant(0), far), begins)
    ends = make.where(np.array(opened[1]), make.where(forward, make.constant(far), -far), ends)
    after = make.where(make.equal(begins, -1), far, make.add(begins, 1))
    chosen = np.array(single)
    return [begins, make.where(chosen, after, ends), make.where(chosen, make.constant(1), strides)]


# ---------------------------------------------------------------------------- repetition, reversal, rotation


@operator("Tile", "opset1")
def tile(call: LayerCall, x: ITensor, times: ITensor) -> ITensor:
    """Repetition of each axis; the shorter of shape and repeats is extended with leading ones."""
    make, times = call.make, call.make.list_tensor(times)
    count, rank = axis_count(times.type), x.type.rank
    x = make.expand_dims(x, range(count - rank))
    return make.tile(x, make.concat([make.constant(np.ones(max(0, rank - count), np.int64)), times], 0))


REVERSALS = {"index": False, "mask": True}


@operator("Reverse", "opset1")
def reverse(call: LayerCall, x: ITensor, axes: ITensor) -> ITensor:
    """Some axes reversed."""
    listed = call.known_ints(axes, "axes")
    if call.choice("mode", REVERSALS):
        listed = [axis for axis, flag in enumerate(listed) if flag]
    return call.make.backwards(x, [normal_axis(axis, x.type.rank) for axis in listed])


@operator("Roll", "opset7")
def roll(call: LayerCall, x: ITensor, shift: ITensor, axes: ITensor) -> ITensor:
    """Elements shifted along axes, with wrap-around."""
    make = call.make
    named = call.known_axes(axes, x.type.rank)
    shifts = make.list_tensor(shift)
    shifts = make.broadcast_to(shifts, [len(named)]) if shifts.type.shape == (1,) else shifts
    for number, axis in enumerate(named):
        x = _rolled(call, x, make.slice(shifts, [number], [1]), axis)
    return x


def _rolled(call: LayerCall, x: ITensor, shift: ITensor, axis: int) -> ITensor:
    make = call.make
    length = make.list_tensor([make.length(x, axis)])
    return make.slice(
        x, make.modulo(make.sub(0, shift), make.maximum(length, 1)), length, axes=[axis], outside=SampleMode.WRAP
    )
