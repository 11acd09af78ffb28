"""Convolution."""

from collections.abc import Sequence
from functools import reduce
from itertools import product

import numpy as np

from netloop.diagnostics import require
from netloop.enums import PaddingMode, ReduceOperation, UnaryOperation
from netloop.formats import windows
from netloop.formats.windows import Sliding
from netloop.formats.word_tables import AUTO_PADS
from netloop.formulas import FormulaBuilder, Length
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.types import TINY, UNKNOWN


def sliding(call: Call, axes: int) -> Sliding:
    """The strides, dilations and padding that the attributes give."""
    mode = call.choice("auto_pad", AUTO_PADS.onnx.read, "NOTSET")
    padded = call.attribute("auto_pad", "NOTSET") == "NOTSET"
    before, after = padding_of(call, axes) if padded else ([0] * axes, [0] * axes)
    strides, dilations = (call.attribute(name, [1] * axes) for name in ("strides", "dilations"))
    return Sliding(strides, dilations, before, after, None if mode is PaddingMode.EXPLICIT_ROUND_DOWN else mode)


def padding_of(call: Call, axes: int) -> tuple[list[int], list[int]]:
    """The padding before and after each axis of a window."""
    pads = call.attribute("pads", [0] * 2 * axes)
    require(len(pads) == 2 * axes, f"pads is {pads}, but must have {2 * axes} numbers", f"the window has {axes} axes")
    return pads[:axes], pads[axes:]


def window_of(call: Call, kernel: ITensor) -> list[int]:
    """The shape of a kernel's window."""
    window = call.attribute("kernel_shape", list(kernel.type.shape[2:]))
    require(UNKNOWN not in window, f"the kernel is {kernel.type}, and its shape must be known")
    return window


@operator("Conv")
def convolution(call: Call, x: ITensor, kernel: ITensor, bias: ITensor | None = None) -> ITensor:
    """Convolution, in groups of channels."""
    window = window_of(call, kernel)
    return windows.convolved(call.make, x, kernel, call.attribute("group", 1), sliding(call, len(window)), bias)


@operator("ConvInteger", since=10)
def conv_integer(
    call: Call, x: ITensor, kernel: ITensor, zero_of_x: ITensor | None = None, zero_of_kernel: ITensor | None = None
) -> ITensor:
    """Convolution of integers less their zero points, in int32."""
    return convolution(call, centred(call.make, x, zero_of_x), centred(call.make, kernel, zero_of_kernel))


def centred(make: FormulaBuilder, x: ITensor, zero: ITensor | None, axis: int = 0) -> ITensor:
    """``x`` less its zero point, small integers as int32 and float8 as float32; a 1-D ``zero`` is along an axis."""
    dtype = np.int32 if x.type.is_integer or x.type.dtype in TINY else np.float32
    wide = make.cast(x, dtype)
    return wide if zero is None else make.sub(wide, make.along(make.cast(zero, dtype), wide.type.rank, axis))


@operator("ConvTranspose")
def conv_transpose(call: Call, x: ITensor, kernel: ITensor, bias: ITensor | None = None) -> ITensor:
    """Transposed convolution."""
    make, axes = call.make, len(window_of(call, kernel))
    more, wanted = call.attribute("output_padding", [0] * axes), call.attribute("output_shape")
    slides = sliding(call, axes)
    output = windows.deconvolved(make, x, kernel, call.attribute("group", 1), slides, more, wanted)
    return output if bias is None else make.add(output, make.along(bias, output.type.rank, 1))


@operator("Col2Im", since=18)
def column_to_image(call: Call, x: ITensor, image: ITensor, block: ITensor) -> ITensor:
    """Inverse of im2col: columns, each a block of the image, summed where blocks overlap."""
    make = call.make
    image, block = make.list_tensor(image), make.list_tensor(block)
    rank = image.type.shape[0]
    pads = np.array(call.attribute("pads", [0] * 2 * rank)).reshape(2, rank)
    padded = make.add(image, pads.sum(0))
    places = _block_indices(call, padded, block)
    batch, channels = make.length(x, 0), make.floor_div(make.tensor(make.length(x, 1)), _product(call, block))
    columns = make.reshape(x, [batch, channels, -1])
    shape = make.list_tensor([batch, channels, _product(call, padded)])
    zeros = make.broadcast_to(make.constant(np.zeros((), x.type.dtype)), shape)
    targets = make.broadcast_to(places, make.shape(columns))
    added = make.scatter_elements(zeros, targets, columns, 2, ReduceOperation.SUM)
    whole = make.reshape(added, make.concat([make.list_tensor([batch, channels]), padded], 0))
    return make.slice(whole, pads[0], image, [1] * rank, range(2, 2 + rank))


def _product(call: Call, lengths: ITensor) -> ITensor:
    return call.make.reduce(ReduceOperation.PROD, lengths, [0])


def _block_indices(call: Call, image: ITensor, block: ITensor) -> ITensor:
    """The flat index in the image of each element of each block; the blocks are the inner axes."""
    make, rank = call.make, image.type.shape[0]
    strides, dilations = (call.attribute(name, [1] * rank) for name in ("strides", "dilations"))
    fits = len(strides) == len(dilations) == rank
    require(fits, f"strides are {list(strides)}, dilations {list(dilations)}, but must have {rank} numbers each")
    places = make.constant(0)
    for axis in range(rank):
        length, reach = (make.scalar(make.slice(each, [axis], [1])) for each in (image, block))
        rest = make.sub(make.sub(length, make.mul(make.sub(reach, 1), dilations[axis])), 1)
        blocks = make.add(make.floor_div(rest, strides[axis]), 1)
        inside = make.expand_dims(make.mul(make.arange(reach), dilations[axis]), range(1, 2 * rank - axis))
        first = make.expand_dims(make.mul(make.arange(blocks), strides[axis]), range(1, rank - axis))
        places = make.add(make.mul(places, length), make.add(inside, first))
    return make.flat(places)


@operator("DeformConv", since=19)
def deformable_conv(
    call: Call, x: ITensor, kernel: ITensor, offset: ITensor, bias: ITensor | None = None, mask: ITensor | None = None
) -> ITensor:
    """Deformable convolution: an offset shifts each tap of the window, and a mask weights it.

    All taps of all positions are read at once, all channels of a group together, then multiplied by the weights.
    """
    make, window, shifts = call.make, window_of(call, kernel), call.attribute("offset_group", 1)
    batch, channels, *image = (make.length(x, axis) for axis in range(x.type.rank))
    out = [make.length(offset, axis) for axis in range(2, offset.type.rank)]
    require(len(window) == len(image) == len(out), f"X is {x.type}, the offset {offset.type} and W {kernel.type}")
    taps, own = int(np.prod(window)), _group_length(make, channels, shifts)
    pixels = make.reshape(x, [batch, shifts, own, make.product(image)])
    offset = make.reshape(offset, [batch, shifts, taps, len(window), *out])
    places = _tap_positions(call, offset, window)
    read = _interpolated(make, make.transpose(pixels, [0, 1, 3, 2]), places, image)
    if mask is not None:
        read = make.mul(read, make.reshape(mask, [batch, shifts, taps, *out, 1]))
    axes = len(out)
    read = make.transpose(read, [0, 1, 3 + axes, *range(2, 3 + axes)])
    groups = call.attribute("group", 1)
    columns = make.reshape(
        read, [batch, groups, make.product([_group_length(make, channels, groups), taps]), make.product(out)]
    )
    maps = make.length(kernel, 0)
    weights = make.reshape(kernel, [groups, _group_length(make, maps, groups), make.length(columns, 2)])
    output = make.reshape(make.matmul(weights, columns), [batch, maps, *out])
    return output if bias is None else make.add(output, make.along(bias, output.type.rank, 1))


def _group_length(make: FormulaBuilder, length: Length, groups: int) -> Length:
    """The length of a group of channels."""
    if isinstance(length, ITensor):
        return make.floor_div(length, groups)
    require(groups > 0 and length % groups == 0, f"{length} channels do not divide into {groups} groups")
    return length // groups


def _tap_positions(call: Call, offset: ITensor, window: Sequence[int]) -> list[ITensor]:
    """The positions of a window's taps along each axis of the image; [batch, group, tap, *positions]."""
    make, axes = call.make, len(window)
    strides, dilations = (call.attribute(name, [1] * axes) for name in ("strides", "dilations"))
    require(len(strides) == len(dilations) == axes, f"strides are {strides}, dilations {dilations}, of {axes} axes")
    before = padding_of(call, axes)[0]
    taps = np.stack(np.meshgrid(*map(np.arange, window), indexing="ij")).reshape(axes, -1, *[1] * axes)
    found: list[ITensor] = []
    for axis in range(axes):
        start = make.mul(make.arange(make.length(offset, 4 + axis)), strides[axis])
        start = make.sub(make.expand_dims(start, range(1, axes - axis)), before[axis])
        place = make.add(start, taps[axis] * dilations[axis])
        found.append(make.add(make.gather(offset, make.constant(axis), 3), make.cast(place, offset.type.dtype)))
    return found


def _interpolated(make: FormulaBuilder, pixels: ITensor, places: Sequence[ITensor], image: Sequence[Length]) -> ITensor:
    """Pixels interpolated linearly, 0 outside of the image.

    Args:
        make: the builder of layers.
        pixels: [batch, group, pixel, channel].
        places: the positions along each axis of the image; [batch, group, *positions].
        image: the lengths of its axes.

    Returns:
        [batch, group, *positions, channel].
    """
    sides = [_neighbours(make, place, length) for place, length in zip(places, image, strict=True)]
    lead = make.list_tensor([make.length(pixels, axis) for axis in (0, 1)])
    parts: list[ITensor] = []
    for corner in product(*sides):
        index, weight = corner[0]
        for (pixel, factor), length in zip(corner[1:], image[1:], strict=True):
            index, weight = make.add(make.mul(index, length), pixel), make.mul(weight, factor)
        flat = make.reshape(index, make.concat([lead, make.constant([-1, 1])], 0))
        found = make.gather_nd(pixels, flat, batch_axes=2)
        channel = make.list_tensor([make.length(pixels, 3)])
        found = make.reshape(found, make.concat([make.shape(index), channel], 0))
        parts.append(make.mul(found, make.expand_dims(weight, [weight.type.rank])))
    return reduce(make.add, parts)


def _neighbours(make: FormulaBuilder, place: ITensor, length: Length) -> list[tuple[ITensor, ITensor]]:
    """The two pixels around each position, each with its weight, which is 0 outside of the image."""
    low = make.unary(UnaryOperation.FLOOR, place)
    after = make.sub(place, low)
    pairs: list[tuple[ITensor, ITensor]] = []
    for pixel, weight in ((low, make.sub(1.0, after)), (make.add(low, 1.0), after)):
        last = make.sub(make.cast(make.tensor(length), place.type.dtype), 1.0)
        inside = make.clip(pixel, 0.0, last)
        there = make.cast(make.equal(inside, pixel), place.type.dtype)
        pairs.append((make.cast(inside, np.int64), make.mul(weight, there)))
    return pairs
