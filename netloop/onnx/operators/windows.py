"""Windows that slide: what convolutions and poolings have in common, and the convolutions."""

from collections.abc import Sequence

import numpy as np

from netloop.compose import Composer
from netloop.diagnostics import require
from netloop.dims import Weights
from netloop.enums import PaddingMode, SampleMode
from netloop.graph.tensor import ITensor
from netloop.layers.convolution import SlidingWindow, WeightedWindow
from netloop.onnx.call import Call
from netloop.onnx.operators.table import operator
from netloop.types import TINY, UNKNOWN

SAME = {"SAME_UPPER": PaddingMode.SAME_UPPER, "SAME_LOWER": PaddingMode.SAME_LOWER}
"""The padding that follows from the lengths."""


def slide(call: Call, layer: SlidingWindow) -> None:
    """Give a window the steps and the padding that the attributes tell."""
    axes = len(layer.window)
    layer.stride_nd = call.attribute("strides", [1] * axes)
    layer.dilation_nd = call.attribute("dilations", [1] * axes)
    auto = call.attribute("auto_pad", "NOTSET")
    if auto in SAME:
        layer.padding_mode = SAME[auto]
    elif auto == "NOTSET":
        layer.pre_padding, layer.post_padding = padding_of(call, axes)


def padding_of(call: Call, axes: int) -> tuple[list[int], list[int]]:
    """The padding before and after the axes of a window."""
    pads = call.attribute("pads", [0] * 2 * axes)
    require(len(pads) == 2 * axes, f"pads is {pads}, and must have {2 * axes} numbers", f"the window has {axes} axes")
    return pads[:axes], pads[axes:]


def window_of(call: Call, kernel: ITensor) -> list[int]:
    """The shape of the window that a kernel has."""
    window = call.attribute("kernel_shape", list(kernel.type.shape[2:]))
    require(UNKNOWN not in window, f"the kernel is {kernel.type}, and its shape must be known")
    return window


def padded(make: Composer, x: ITensor, before: Sequence[int], after: Sequence[int]) -> ITensor:
    """``x`` with zeros around its last axes."""
    if not any((*before, *after)):
        return x
    count = x.type.rank - len(before)
    starts = [0] * count + [-each for each in before]
    around = [0] * count + [a + b for a, b in zip(before, after, strict=True)]
    return filled(make, x, starts, make.add(make.shape(x), np.array(around, np.int64)))


def filled(make: Composer, x: ITensor, starts: Sequence[int], sizes: ITensor) -> ITensor:
    """What is found at some places of ``x``, and zeros where they are outside of it."""
    known = make.ints(sizes)
    layer = make.network.add_slice(x, starts, known or [], [1] * x.type.rank)
    layer.mode = SampleMode.FILL
    if known is None:
        layer.set_input(2, sizes)
    return make.made(layer)


# ---------------------------------------------------------------------------- convolutions


def convolved(call: Call, x: ITensor, kernel: ITensor, bias: ITensor | None = None) -> ITensor:
    """The convolution that the attributes of a node tell of."""
    maps, window = kernel.type.shape[0], window_of(call, kernel)
    require(maps != UNKNOWN, f"the kernel is {kernel.type}, and the number of its maps must be known")
    layer = call.make.network.add_convolution_nd(x, maps, window, Weights())
    return _weighted(call, layer, kernel, bias)


def _weighted(call: Call, layer: WeightedWindow, kernel: ITensor, bias: ITensor | None) -> ITensor:
    layer.num_groups = call.attribute("group", 1)
    slide(call, layer)
    layer.set_input(1, kernel)
    if bias is not None:
        layer.set_input(2, bias)
    return call.make.made(layer)


@operator("Conv")
def conv(call: Call, x: ITensor, kernel: ITensor, bias: ITensor | None = None) -> ITensor:
    """A window of weights slid over the input."""
    return convolved(call, x, kernel, bias)


@operator("ConvInteger", since=10)
def conv_integer(
    call: Call, x: ITensor, kernel: ITensor, zero_of_x: ITensor | None = None, zero_of_kernel: ITensor | None = None
) -> ITensor:
    """The same of integers, each less the one that stands for 0; int32."""
    return convolved(call, centred(call.make, x, zero_of_x), centred(call.make, kernel, zero_of_kernel))


def centred(make: Composer, x: ITensor, zero: ITensor | None, axis: int = 0) -> ITensor:
    """Small integers less the one that stands for 0, int32, or float8 as float32; a 1-D ``zero`` is along an axis."""
    dtype = np.int32 if x.type.is_integer or x.type.dtype in TINY else np.float32
    wide = make.cast(x, dtype)
    return wide if zero is None else make.sub(wide, make.along(make.cast(zero, dtype), wide.type.rank, axis))


@operator("ConvTranspose")
def conv_transpose(call: Call, x: ITensor, kernel: ITensor, bias: ITensor | None = None) -> ITensor:
    """A window of weights written for each element of the input."""
    make, window, groups = call.make, window_of(call, kernel), call.attribute("group", 1)
    maps = kernel.type.shape[1]
    require(maps != UNKNOWN, f"the kernel is {kernel.type}, and the number of its maps must be known")
    layer = make.network.add_deconvolution_nd(x, maps * groups, window, Weights())
    layer.num_groups = groups
    layer.stride_nd = call.attribute("strides", [1] * len(window))
    layer.dilation_nd = call.attribute("dilations", [1] * len(window))
    before, after = _trimmed(call, x, layer)
    layer.pre_padding, layer.post_padding = ([max(0, each) for each in side] for side in (before, after))
    layer.set_input(1, kernel)
    more = [[max(0, -each) for each in side] for side in (before, after)]
    made = padded(make, make.made(layer), *more)
    return made if bias is None else make.add(made, make.along(bias, made.type.rank, 1))


def _trimmed(call: Call, x: ITensor, layer: WeightedWindow) -> tuple[list[int], list[int]]:
    """What is trimmed off the output of a transposed convolution, before and after; added where it is below 0."""
    axes, auto, wanted = len(layer.window), call.attribute("auto_pad"), call.attribute("output_shape")
    more = call.attribute("output_padding", [0] * axes)
    require(len(more) == axes, f"output_padding is {more}, and must have {axes} numbers, one for each axis")
    if wanted or auto in SAME:
        total = [spare + extra for spare, extra in zip(_spare(x, layer, wanted), more, strict=True)]
        less = [each // 2 for each in total]
        rest = [each - half for each, half in zip(total, less, strict=True)]
        before, after = (less, rest) if auto == "SAME_UPPER" else (rest, less)
    else:
        before, after = padding_of(call, axes) if auto == "NOTSET" else ([0] * axes, [0] * axes)
    return before, [each - extra for each, extra in zip(after, more, strict=True)]


def _spare(x: ITensor, layer: WeightedWindow, wanted: Sequence[int] | None) -> list[int]:
    """How many elements the output has more than is wanted; by default so many as input and strides tell."""
    along = zip(layer.stride_nd, layer.spans, strict=True)
    if not wanted:
        return [span - stride for stride, span in along]
    lengths, sizes = x.type.shape[2:], wanted[-len(layer.window) :]
    require(UNKNOWN not in lengths, f"the input is {x.type}, and must be known where output_shape is given")
    require(len(sizes) == len(lengths), f"output_shape is {wanted}, and must have {len(lengths)} numbers")
    whole = zip(lengths, sizes, along, strict=True)
    return [(length - 1) * stride + span - size for length, size, (stride, span) in whole]
