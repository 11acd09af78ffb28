"""Convolution."""

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.shared import windows
from netloop.formats.shared.deformed import Deformed
from netloop.formats.shared.windows import Sliding
from netloop.formats.shared.word_tables import AUTO_PADS
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.rearrange import axis_count
from netloop.values.diagnostics import require
from netloop.values.enums import PaddingMode
from netloop.values.types import TINY, UNKNOWN


def sliding(call: NodeCall, axes: int) -> Sliding:
    """The strides, dilations and padding that the attributes give."""
    mode = call.choice("auto_pad", AUTO_PADS.onnx.read, "NOTSET")
    padded = call.attribute("auto_pad", "NOTSET") == "NOTSET"
    before, after = padding_of(call, axes) if padded else ([0] * axes, [0] * axes)
    strides, dilations = (call.attribute(name, [1] * axes) for name in ("strides", "dilations"))
    return Sliding(strides, dilations, before, after, None if mode is PaddingMode.EXPLICIT_ROUND_DOWN else mode)


def padding_of(call: NodeCall, axes: int) -> tuple[list[int], list[int]]:
    """The padding before and after each axis of a window."""
    pads = call.attribute("pads", [0] * 2 * axes)
    require(len(pads) == 2 * axes, f"pads is {pads}, but must have {2 * axes} numbers", f"the window has {axes} axes")
    return pads[:axes], pads[axes:]


def window_of(call: NodeCall, kernel: ITensor) -> list[int]:
    """The shape of a kernel's window."""
    window = call.attribute("kernel_shape", list(kernel.type.shape[2:]))
    require(UNKNOWN not in window, f"the kernel is {kernel.type}, and its shape must be known")
    return window


@operator("Conv")
def convolution(call: NodeCall, x: ITensor, kernel: ITensor, bias: Maybe = None) -> ITensor:
    """Convolution, in groups of channels."""
    window = window_of(call, kernel)
    return windows.convolved(call.make, x, kernel, call.attribute("group", 1), sliding(call, len(window)), bias)


@operator("ConvInteger", since=10)
def conv_integer(
    call: NodeCall, x: ITensor, kernel: ITensor, zero_of_x: Maybe = None, zero_of_kernel: Maybe = None
) -> ITensor:
    """Convolution of integers less their zero points, in int32."""
    return convolution(call, centred(call.make, x, zero_of_x), centred(call.make, kernel, zero_of_kernel))


def centred(make: FormulaBuilder, x: ITensor, zero: Maybe, axis: int = 0) -> ITensor:
    """``x`` less its zero point, small integers as int32 and float8 as float32; a 1-D ``zero`` is along an axis."""
    dtype = np.int32 if x.type.is_integer or x.type.dtype in TINY else np.float32
    wide = make.cast(x, dtype)
    return wide if zero is None else make.sub(wide, make.along(make.cast(zero, dtype), wide.type.rank, axis))


@operator("ConvTranspose")
def conv_transpose(call: NodeCall, x: ITensor, kernel: ITensor, bias: Maybe = None) -> ITensor:
    """Transposed convolution."""
    make, axes = call.make, len(window_of(call, kernel))
    more, wanted = call.attribute("output_padding", [0] * axes), call.attribute("output_shape")
    slides = sliding(call, axes)
    output = windows.deconvolved(make, x, kernel, call.attribute("group", 1), slides, more, wanted)
    return output if bias is None else make.add(output, make.along(bias, output.type.rank, 1))


@operator("Col2Im", since=18)
def column_to_image(call: NodeCall, x: ITensor, image: ITensor, block: ITensor) -> ITensor:
    """Inverse of im2col: columns, each a block of the image, summed where blocks overlap."""
    axes = axis_count(call.make.list_tensor(image).type)
    strides, dilations = (call.attribute(name, [1] * axes) for name in ("strides", "dilations"))
    return windows.columns_to_image(call.make, x, image, block, Sliding(strides, dilations, *padding_of(call, axes)))


@operator("DeformConv", since=19)
def deformable_conv(
    call: NodeCall, x: ITensor, kernel: ITensor, offset: ITensor, bias: Maybe = None, mask: Maybe = None
) -> ITensor:
    """Deformable convolution: an offset shifts each tap of the window, and a mask weights it."""
    window = window_of(call, kernel)
    strides, dilations = (call.attribute(name, [1] * len(window)) for name in ("strides", "dilations"))
    slides = Sliding(strides, dilations, *padding_of(call, len(window)))
    deformed = Deformed(call.make, window, slides, call.attribute("group", 1), call.attribute("offset_group", 1))
    output = deformed.convolution(x, kernel, offset, mask)
    return output if bias is None else call.make.add(output, call.make.along(bias, output.type.rank, 1))
