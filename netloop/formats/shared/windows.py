"""Sliding windows: convolutions, transposed convolutions and poolings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netloop.model.formulas.formula_builder import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.convolution import WeightedWindow
from netloop.model.layers.rearrange import axis_count
from netloop.model.layers.windows import SlidingWindow
from netloop.model.weights import Weights
from netloop.values.diagnostics import require
from netloop.values.enums import PaddingMode, ReduceOperation, SampleMode
from netloop.values.types import UNKNOWN


@dataclass(frozen=True)
class Sliding:
    """The strides, dilations and padding of a window.

    Attributes:
        strides: the strides.
        dilations: the dilations.
        before: the padding before each axis.
        after: the padding after it.
        same: SAME_UPPER or SAME_LOWER, for padding that follows from the dims; None for explicit padding.

    Raises:
        LayerError: a stride or dilation is not positive.
    """

    strides: Sequence[int]
    dilations: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    same: PaddingMode | None = None

    def __post_init__(self) -> None:
        what = f"strides are {list(self.strides)}, dilations {list(self.dilations)}, but must be positive"
        require(min((*self.strides, *self.dilations), default=1) > 0, what)

    def apply_to(self, layer: SlidingWindow) -> None:
        """Set the strides, dilations and padding of a layer."""
        layer.stride_nd, layer.dilation_nd = self.strides, self.dilations
        if self.same is not None:
            layer.padding_mode = self.same
        else:
            layer.pre_padding, layer.post_padding = self.before, self.after


def convolved(
    make: FormulaBuilder, x: ITensor, kernel: ITensor, groups: int, sliding: Sliding, bias: ITensor | None = None
) -> ITensor:
    """A convolution with a kernel of dims [maps, channels of a group, ...]."""
    maps, *window = kernel.type.shape[:1] + kernel.type.shape[2:]
    require(UNKNOWN not in (maps, *window), f"the kernel is {kernel.type}, and its shape must be known")
    layer = make.network.add_convolution_nd(x, maps, window, Weights())
    layer.num_groups = groups
    sliding.apply_to(layer)
    layer.set_input(1, kernel)
    if bias is not None:
        layer.set_input(2, bias)
    return make.output(layer)


def deconvolved(
    make: FormulaBuilder,
    x: ITensor,
    kernel: ITensor,
    groups: int,
    sliding: Sliding,
    more: Sequence[int],
    wanted: Sequence[int] | None,
) -> ITensor:
    """A transposed convolution with a kernel of dims [channels, maps of a group, ...].

    The padding of the window is trimmed off the output, then ``more`` elements, the output padding, are added to each
    axis. Where the dims of the output are given by ``wanted``, the padding follows from them.
    """
    maps, *window = kernel.type.shape[1:]
    require(UNKNOWN not in (maps, *window), f"the kernel is {kernel.type}, and its shape must be known")
    require(len(more) == len(window), f"the output padding is {more}, but must have {len(window)} numbers")
    layer = make.network.add_deconvolution_nd(x, maps * groups, window, Weights())
    layer.num_groups, layer.stride_nd, layer.dilation_nd = groups, sliding.strides, sliding.dilations
    before, after = _trimmed(x, layer, sliding, more, wanted)
    layer.pre_padding, layer.post_padding = ([max(0, number) for number in side] for side in (before, after))
    layer.set_input(1, kernel)
    return padded(make, make.output(layer), *([max(0, -number) for number in side] for side in (before, after)))


def _trimmed(
    x: ITensor, layer: WeightedWindow, sliding: Sliding, more: Sequence[int], wanted: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """The elements to trim off a transposed convolution, before and after each axis; below 0, elements to add."""
    before, after = list(sliding.before), list(sliding.after)
    if wanted or sliding.same is not None:
        total = [spare + extra for spare, extra in zip(_spare(x, layer, wanted), more, strict=True)]
        less = [number // 2 for number in total]
        remainder = [number - half for number, half in zip(total, less, strict=True)]
        before, after = (less, remainder) if sliding.same is PaddingMode.SAME_UPPER else (remainder, less)
    return before, [number - extra for number, extra in zip(after, more, strict=True)]


def _spare(x: ITensor, layer: WeightedWindow, wanted: Sequence[int] | None) -> list[int]:
    """The elements of each axis in excess of the dims wanted, by default the input's times the strides."""
    along = zip(layer.stride_nd, layer.spans, strict=True)
    if not wanted:
        return [span - stride for stride, span in along]
    dims, sizes = x.type.shape[2:], wanted[-len(layer.window) :]
    require(UNKNOWN not in dims, f"the input is {x.type}, but must be known if the output shape is given")
    require(len(sizes) == len(dims), f"the shape of the output is {wanted}, but must have {len(dims)} numbers")
    whole = zip(dims, sizes, along, strict=True)
    return [(length - 1) * stride + span - size for length, size, (stride, span) in whole]


def padded(make: FormulaBuilder, x: ITensor, before: Sequence[int], after: Sequence[int]) -> ITensor:
    """Pad the last axes of ``x`` with zeros."""
    if not any((*before, *after)):
        return x
    count = x.type.rank - len(before)
    starts = [0] * count + [-number for number in before]
    around = [0] * count + [a + b for a, b in zip(before, after, strict=True)]
    return make.slice(x, starts, make.add(make.shape(x), np.array(around, np.int64)), outside=SampleMode.FILL)


# ---------------------------------------------------------------------------- poolings


def pooled(
    make: FormulaBuilder, x: ITensor, layer: SlidingWindow, sliding: Sliding, up: bool, inside: bool = True
) -> ITensor:
    """The output of a pooling layer.

    With ``up`` its size is rounded up, so that the last window may exceed the padding. With ``inside`` windows that
    start in the padding after the input are left out.
    """
    sliding.apply_to(layer)
    if not up or sliding.same is not None:
        return make.output(layer)
    layer.padding_mode = PaddingMode.EXPLICIT_ROUND_UP
    result = make.output(layer)
    if not inside:
        return result
    dims, counts = (make.slice(make.shape(tensor), [2], [len(layer.window)]) for tensor in (x, result))
    before = np.array(layer.pre_padding, np.int64) - 1
    starting = make.add(make.floor_div(make.add(dims, before), np.array(layer.stride_nd, np.int64)), 1)
    kept = make.minimum(counts, starting)
    if make.ints(kept) == list(result.type.shape[2:]):
        return result
    return make.slice(result, [0] * len(layer.window), kept, axes=range(2, result.type.rank))


def among_all(make: FormulaBuilder, x: ITensor, places: ITensor, axis: int = 0) -> ITensor:
    """Convert indices into an image of ``x`` to indices into all elements from an axis on."""
    shape, rank = make.shape(x), x.type.rank
    if axis > 2:
        return make.modulo(places, make.reduce(ReduceOperation.PROD, make.slice(shape, [axis], [rank - axis]), [0]))
    volume = make.reduce(ReduceOperation.PROD, make.slice(shape, [2], [rank - 2]), [0])
    images = make.slice(shape, [axis], [2 - axis])
    numbers = make.arange(make.reduce(ReduceOperation.PROD, images, [0]))
    output_dims = make.concat([images, make.constant(np.ones(rank - 2, np.int64))], 0)
    return make.add(places, make.reshape(make.mul(numbers, volume), output_dims))


# ---------------------------------------------------------------------------- columns


def columns_to_image(make: FormulaBuilder, x: ITensor, image: ITensor, block: ITensor, sliding: Sliding) -> ITensor:
    """Columns [batch, channels * block, blocks], each a block of the image, summed where blocks overlap.

    Args:
        make: the builder of layers.
        x: the columns.
        image: the lengths of the image's axes.
        block: the lengths of a block's axes.
        sliding: the strides, dilations and explicit padding of the blocks.
    """
    image, block = make.list_tensor(image), make.list_tensor(block)
    rank = axis_count(image.type)
    before, after = (np.array(entry, np.int64) for entry in (sliding.before, sliding.after))
    around = make.add(image, before + after)
    places = _block_indices(make, around, block, sliding)
    elements = make.reduce(ReduceOperation.PROD, block, [0])
    batch, channels = make.length(x, 0), make.floor_div(make.tensor(make.length(x, 1)), elements)
    columns = make.reshape(x, [batch, channels, -1])
    zeros = make.full([batch, channels, make.reduce(ReduceOperation.PROD, around, [0])], 0, x.type.dtype)
    targets = make.broadcast_to(places, make.shape(columns))
    added = make.scatter_elements(zeros, targets, columns, 2, ReduceOperation.SUM)
    whole = make.reshape(added, make.concat([make.list_tensor([batch, channels]), around], 0))
    return make.slice(whole, before, image, [1] * rank, range(2, 2 + rank))


def _block_indices(make: FormulaBuilder, image: ITensor, block: ITensor, sliding: Sliding) -> ITensor:
    """The flat index in the image of each element of each block; the blocks are the inner axes."""
    rank, strides, dilations = image.type.shape[0], sliding.strides, sliding.dilations
    fits = len(strides) == len(dilations) == rank
    require(fits, f"strides are {list(strides)}, dilations {list(dilations)}, but must have {rank} numbers each")
    places = make.constant(0)
    for axis in range(rank):
        length, reach = (make.scalar(make.slice(tensor, [axis], [1])) for tensor in (image, block))
        rest = make.sub(make.sub(length, make.mul(make.sub(reach, 1), dilations[axis])), 1)
        blocks = make.add(make.floor_div(rest, strides[axis]), 1)
        inside = make.expand_dims(make.mul(make.arange(reach), dilations[axis]), range(1, 2 * rank - axis))
        first = make.expand_dims(make.mul(make.arange(blocks), strides[axis]), range(1, rank - axis))
        places = make.add(make.mul(places, length), make.add(inside, first))
    return make.flat(places)
