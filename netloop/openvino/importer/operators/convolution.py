"""Windows that slide: convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from netloop.diagnostics import require
from netloop.enums import DataType, PaddingMode, PoolingType
from netloop.formats.windows import Sliding, among_all, convolved, deconvolved, pooled
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator
from netloop.openvino.importer.operators.rearrange import known_ints
from netloop.openvino.importer.weights import element_type
from netloop.types import UNKNOWN, normal_axis

SAME: dict[str, PaddingMode | None] = {
    "explicit": None,
    "notset": None,
    "valid": None,
    "same_upper": PaddingMode.SAME_UPPER,
    "same_lower": PaddingMode.SAME_LOWER,
}
"""What ``auto_pad`` may be, and the padding that follows from the lengths."""


def _sliding(call: Call, axes: int) -> Sliding:
    """The steps and the padding that the attributes tell of a window."""
    ones, zeros = [1] * axes, [0] * axes
    valid = call.text("auto_pad", "explicit").lower() == "valid"
    lists = {name: call.ints(name, ones) for name in ("strides", "dilations")}
    lists |= {name: zeros if valid else call.ints(name, zeros) for name in ("pads_begin", "pads_end")}
    for name, given in lists.items():
        require(len(given) == axes, f"{name} is {list(given)}, and must have {axes} numbers, one for each axis")
    strides, dilations, before, after = lists.values()
    return Sliding(strides, dilations, before, after, call.choice("auto_pad", SAME, "explicit"))


def _ungrouped(call: Call, kernel: ITensor) -> tuple[ITensor, int]:
    """Weights of which the first axis is that of the groups as those of one convolution, and the groups."""
    groups, first, *rest = kernel.type.shape
    require(UNKNOWN not in kernel.type.shape, f"the kernel is {kernel.type}, and its shape must be known")
    return call.make.reshape(kernel, [groups * first, *rest]), groups


@operator("Convolution", "opset1")
def convolution(call: Call, x: ITensor, kernel: ITensor) -> ITensor:
    """A window of weights slid over the input."""
    _check_image(x, kernel)
    return convolved(call.make, x, kernel, 1, _sliding(call, x.type.rank - 2))


@operator("GroupConvolution", "opset1")
def group_convolution(call: Call, x: ITensor, kernel: ITensor) -> ITensor:
    """A window slid over the input, each group of channels with weights of its own."""
    _check_image(x, kernel, 1)
    weights, groups = _ungrouped(call, kernel)
    return convolved(call.make, x, weights, groups, _sliding(call, x.type.rank - 2))


@operator("ConvolutionBackpropData", "opset1")
def deconvolution(call: Call, x: ITensor, kernel: ITensor, shape: ITensor | None = None) -> ITensor:
    """A window of weights written for each element of the input; its output may have a given shape."""
    _check_image(x, kernel)
    return _deconvolved(call, x, kernel, 1, shape)


@operator("GroupConvolutionBackpropData", "opset1")
def group_deconvolution(call: Call, x: ITensor, kernel: ITensor, shape: ITensor | None = None) -> ITensor:
    """A window written for each element, each group of channels with weights of its own."""
    _check_image(x, kernel, 1)
    return _deconvolved(call, x, *_ungrouped(call, kernel), shape)


def _deconvolved(call: Call, x: ITensor, kernel: ITensor, groups: int, shape: ITensor | None) -> ITensor:
    axes = x.type.rank - 2
    more = call.ints("output_padding", []) or [0] * axes
    slides = _sliding(call, axes)
    wanted = None if shape is None else known_ints(call, shape, "lengths")
    # without the lengths of the output no padding follows from them; SAME_UPPER has more of it at the start here
    turned = PaddingMode.SAME_LOWER if slides.same is PaddingMode.SAME_UPPER else PaddingMode.SAME_UPPER
    slides = replace(slides, same=None if wanted is None else turned)
    return deconvolved(call.make, x, kernel, groups, slides, more, wanted)


def _check_image(x: ITensor, kernel: ITensor, more: int = 0) -> None:
    fits = kernel.type.rank == x.type.rank + more and x.type.rank > 2
    require(fits, f"the input is {x.type}, and the kernel {kernel.type}")


# ---------------------------------------------------------------------------- poolings

ROUNDS = {"floor": (False, False), "ceil": (True, False), "ceil_torch": (True, True)}
"""For each rounding, whether a last window may leave the input, and whether it may not start in the padding."""


def _window(call: Call, x: ITensor) -> Sequence[int]:
    window = call.ints("kernel")
    require(len(window) == x.type.rank - 2, f"the input is {x.type}, and the kernel {list(window)}")
    return window


@operator("AvgPool", "opset1", "opset14", "opset16")
def average_pool(call: Call, x: ITensor) -> ITensor:
    """The mean of a window, with the padding or without."""
    layer = call.make.network.add_pooling_nd(x, PoolingType.AVERAGE, _window(call, x))
    layer.average_count_excludes_padding = call.flag("exclude-pad")
    return pooled(call.make, x, layer, _sliding(call, x.type.rank - 2), *call.choice("rounding_type", ROUNDS, "floor"))


@operator("MaxPool", "opset1")
def max_pool(call: Call, x: ITensor) -> ITensor:
    """The maximum of a window."""
    layer = call.make.network.add_pooling_nd(x, PoolingType.MAX, _window(call, x))
    return pooled(call.make, x, layer, _sliding(call, x.type.rank - 2), *call.choice("rounding_type", ROUNDS, "floor"))


@operator("MaxPool", "opset8", "opset14")
def max_pool_with_places(call: Call, x: ITensor) -> list[ITensor]:
    """The maximum of a window, and where it is among all elements from an axis on."""
    make, slides = call.make, _sliding(call, x.type.rank - 2)
    layer = make.network.add_pooling_indices(x, _window(call, x), DataType.INT64)
    places = pooled(make, x, layer, slides, *call.choice("rounding_type", ROUNDS, "floor"))
    axis = normal_axis(call.int("axis", 0), x.type.rank)
    places = make.cast(among_all(make, x, places, axis), element_type(call.text("index_element_type", "i64")))
    return [max_pool(call, x), places]


LARGEST_MATRIX = 1 << 26
"""The means along an axis are a product with a matrix of no more elements."""


@operator("AdaptiveAvgPool", "opset8")
def adaptive_average_pool(call: Call, x: ITensor, shape: ITensor | None = None) -> ITensor:
    """The means of as many windows as the output is to have elements, which share the input evenly."""
    make = call.make
    require(shape is not None, "the shape of the output is an input")
    assert shape is not None
    wanted = known_ints(call, shape, "lengths")
    require(x.type.rank == len(wanted) + 2, f"the input is {x.type}, and the shape of the output {wanted}")
    for axis, count in enumerate(wanted, 2):
        length = x.type.shape[axis]
        require(length != UNKNOWN, f"the input is {x.type}, and its lengths must be known")
        require(count > 0 and length * count <= LARGEST_MATRIX, f"axis {axis} goes from {length} elements to {count}")
        places = np.arange(count)
        starts, ends = places * length // count, -(-(places + 1) * length // count)
        inside = (np.arange(length)[:, None] >= starts) & (np.arange(length)[:, None] < ends)
        weights = (inside / (ends - starts)).astype(x.type.dtype)
        order = [*(each for each in range(x.type.rank) if each != axis), axis]
        x = make.transpose(make.matmul(make.transpose(x, order), make.constant(weights)), np.argsort(order).tolist())
    return x
