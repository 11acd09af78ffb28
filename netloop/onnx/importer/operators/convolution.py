"""Windows that slide: what convolutions and poolings have in common, and the convolutions."""

from collections.abc import Sequence

import numpy as np

from netloop.diagnostics import require
from netloop.enums import PaddingMode, SampleMode
from netloop.formats import windows
from netloop.formats.windows import Sliding
from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.types import TINY, UNKNOWN

SAME = {"SAME_UPPER": PaddingMode.SAME_UPPER, "SAME_LOWER": PaddingMode.SAME_LOWER}
"""The padding that follows from the lengths."""


def sliding(call: Call, axes: int) -> Sliding:
    """The steps and the padding that the attributes tell of a window."""
    auto = call.attribute("auto_pad", "NOTSET")
    before, after = padding_of(call, axes) if auto == "NOTSET" else ([0] * axes, [0] * axes)
    strides, dilations = (call.attribute(name, [1] * axes) for name in ("strides", "dilations"))
    return Sliding(strides, dilations, before, after, SAME.get(auto))


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


def filled(make: FormulaBuilder, x: ITensor, starts: Sequence[int], sizes: ITensor) -> ITensor:
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
    window = window_of(call, kernel)
    return windows.convolved(call.make, x, kernel, call.attribute("group", 1), sliding(call, len(window)), bias)


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


def centred(make: FormulaBuilder, x: ITensor, zero: ITensor | None, axis: int = 0) -> ITensor:
    """Small integers less the one that stands for 0, int32, or float8 as float32; a 1-D ``zero`` is along an axis."""
    dtype = np.int32 if x.type.is_integer or x.type.dtype in TINY else np.float32
    wide = make.cast(x, dtype)
    return wide if zero is None else make.sub(wide, make.along(make.cast(zero, dtype), wide.type.rank, axis))


@operator("ConvTranspose")
def conv_transpose(call: Call, x: ITensor, kernel: ITensor, bias: ITensor | None = None) -> ITensor:
    """A window of weights written for each element of the input."""
    make, axes = call.make, len(window_of(call, kernel))
    more, wanted = call.attribute("output_padding", [0] * axes), call.attribute("output_shape")
    slides = sliding(call, axes)
    made = windows.deconvolved(make, x, kernel, call.attribute("group", 1), slides, more, wanted)
    return made if bias is None else make.add(made, make.along(bias, made.type.rank, 1))
