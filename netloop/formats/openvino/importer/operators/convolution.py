"""Convolution."""

from dataclasses import replace

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.deformed import Deformed
from netloop.formats.shared.windows import Sliding, columns_to_image, convolved, deconvolved
from netloop.formats.shared.word_tables import AUTO_PADS
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.rearrange import axis_count
from netloop.values.diagnostics import require
from netloop.values.enums import PaddingMode
from netloop.values.types import UNKNOWN


def sliding(call: LayerCall, axes: int) -> Sliding:
    """The strides, dilations and padding that the attributes give."""
    ones, zeros = [1] * axes, [0] * axes
    valid = call.text("auto_pad", "explicit").lower() == "valid"
    lists = {name: call.ints(name, ones) for name in ("strides", "dilations")}
    lists |= {name: zeros if valid else call.ints(name, zeros) for name in ("pads_begin", "pads_end")}
    for name, numbers in lists.items():
        require(len(numbers) == axes, f"{name} is {list(numbers)}, but must have {axes} numbers, one for each axis")
    strides, dilations, before, after = lists.values()
    mode = call.choice("auto_pad", AUTO_PADS.openvino.read, "explicit")
    return Sliding(strides, dilations, before, after, None if mode is PaddingMode.EXPLICIT_ROUND_DOWN else mode)


def _ungrouped(call: LayerCall, kernel: ITensor) -> tuple[ITensor, int]:
    """Weights with a leading axis of groups as those of one convolution, and the number of groups."""
    groups, first, *rest = kernel.type.shape
    require(UNKNOWN not in kernel.type.shape, f"the kernel is {kernel.type}, and its shape must be known")
    return call.make.reshape(kernel, [groups * first, *rest]), groups


@operator("Convolution", "opset1")
def convolution(call: LayerCall, x: ITensor, kernel: ITensor) -> ITensor:
    """Convolution."""
    _check_image(x, kernel)
    return convolved(call.make, x, kernel, 1, sliding(call, x.type.rank - 2))


@operator("GroupConvolution", "opset1")
def group_convolution(call: LayerCall, x: ITensor, kernel: ITensor) -> ITensor:
    """Convolution in groups of channels."""
    _check_image(x, kernel, 1)
    weights, groups = _ungrouped(call, kernel)
    return convolved(call.make, x, weights, groups, sliding(call, x.type.rank - 2))


@operator("ConvolutionBackpropData", "opset1")
def deconvolution(call: LayerCall, x: ITensor, kernel: ITensor, shape: Maybe = None) -> ITensor:
    """Transposed convolution, optionally with a given output shape."""
    _check_image(x, kernel)
    return _deconvolved(call, x, kernel, 1, shape)


@operator("GroupConvolutionBackpropData", "opset1")
def group_deconvolution(call: LayerCall, x: ITensor, kernel: ITensor, shape: Maybe = None) -> ITensor:
    """Transposed convolution in groups of channels, optionally with a given output shape."""
    _check_image(x, kernel, 1)
    return _deconvolved(call, x, *_ungrouped(call, kernel), shape)


def _deconvolved(call: LayerCall, x: ITensor, kernel: ITensor, groups: int, shape: Maybe) -> ITensor:
    axes = x.type.rank - 2
    more = call.ints("output_padding", []) or [0] * axes
    slides = sliding(call, axes)
    wanted = None if shape is None else call.known_ints(shape, "lengths")
    # Without an output shape no padding follows from the dims; SAME_UPPER pads more at the start here.
    opposite = PaddingMode.SAME_LOWER if slides.same is PaddingMode.SAME_UPPER else PaddingMode.SAME_UPPER
    slides = replace(slides, same=None if wanted is None else opposite)
    return deconvolved(call.make, x, kernel, groups, slides, more, wanted)


def _check_image(x: ITensor, kernel: ITensor, more: int = 0) -> None:
    fits = kernel.type.rank == x.type.rank + more and x.type.rank > 2
    require(fits, f"the input is {x.type}, and the kernel {kernel.type}")


@operator("Col2Im", "opset15")
def column_to_image(call: LayerCall, x: ITensor, image: ITensor, block: ITensor) -> ITensor:
    """Inverse of im2col: columns, each a block of the image, summed where blocks overlap."""
    make, alone = call.make, x.type.rank == 2
    axes = axis_count(make.list_tensor(image).type)
    columns = make.expand_dims(x, [0]) if alone else x
    tensor = columns_to_image(
        make, columns, make.cast(image, np.int64), make.cast(block, np.int64), sliding(call, axes)
    )
    return make.squeeze(tensor, [0]) if alone else tensor


@operator("DeformableConvolution", "opset1", "opset8")
def deformable_convolution(
    call: LayerCall, x: ITensor, offset: ITensor, kernel: ITensor, mask: Maybe = None
) -> ITensor:
    """Convolution with an offset that shifts each tap of the window, and a mask that weights it."""
    slides, window = sliding(call, x.type.rank - 2), kernel.type.shape[2:]
    require(UNKNOWN not in window, f"the kernel is {kernel.type}, and its window must be known")
    require(slides.same is None, "auto_pad is not explicit", "the offsets are of positions that the padding decides")
    fades = call.flag("bilinear_interpolation_pad", False)
    deformed = Deformed(call.make, window, slides, call.int("group", 1), call.int("deformable_group", 1), fades)
    return deformed.convolution(x, kernel, offset, mask)
