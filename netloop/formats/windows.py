"""Windows that slide: convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netloop.diagnostics import require
from netloop.dims import Weights
from netloop.enums import PaddingMode, ReduceOperation, SampleMode
from netloop.formulas.composer import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.layers.convolution import WeightedWindow
from netloop.layers.windows import SlidingWindow
from netloop.types import UNKNOWN


@dataclass(frozen=True)
class Sliding:
    """How a window slides.

    Attributes:
        strides: its steps.
        dilations: the steps inside it.
        before: the padding before the axes.
        after: the padding after them.
        same: SAME_UPPER or SAME_LOWER, the padding that follows from the lengths; None for that given.
    """

    strides: Sequence[int]
    dilations: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    same: PaddingMode | None = None

    def on(self, layer: SlidingWindow) -> None:
        """Let the window of a layer slide so."""
        layer.stride_nd, layer.dilation_nd = self.strides, self.dilations
        if self.same is not None:
            layer.padding_mode = self.same
        else:
            layer.pre_padding, layer.post_padding = self.before, self.after


def convolved(
    make: FormulaBuilder, x: ITensor, kernel: ITensor, groups: int, sliding: Sliding, bias: ITensor | None = None
) -> ITensor:
    """A window of weights, [maps, channels of a group, ...], slid over the input."""
    maps, *window = kernel.type.shape[:1] + kernel.type.shape[2:]
    require(UNKNOWN not in (maps, *window), f"the kernel is {kernel.type}, and its shape must be known")
    layer = make.network.add_convolution_nd(x, maps, window, Weights())
    layer.num_groups = groups
    sliding.on(layer)
    layer.set_input(1, kernel)
    if bias is not None:
        layer.set_input(2, bias)
    return make.made(layer)


def deconvolved(
    make: FormulaBuilder,
    x: ITensor,
    kernel: ITensor,
    groups: int,
    sliding: Sliding,
    more: Sequence[int],
    wanted: Sequence[int] | None,
) -> ITensor:
    """A window of weights, [channels, maps of a group, ...], written for each element of the input.

    Args:
        make: what adds layers.
        x: the input.
        kernel: the weights.
        groups: the number of groups of channels.
        sliding: how the window moves; its padding is trimmed off.
        more: how much longer the axes of the output are after that.
        wanted: the lengths of these axes, if they are told; the padding follows from them.
    """
    maps, *window = kernel.type.shape[1:]
    require(UNKNOWN not in (maps, *window), f"the kernel is {kernel.type}, and its shape must be known")
    require(len(more) == len(window), f"the output padding is {more}, and must have {len(window)} numbers")
    layer = make.network.add_deconvolution_nd(x, maps * groups, window, Weights())
    layer.num_groups, layer.stride_nd, layer.dilation_nd = groups, sliding.strides, sliding.dilations
    before, after = _trimmed(x, layer, sliding, more, wanted)
    layer.pre_padding, layer.post_padding = ([max(0, each) for each in side] for side in (before, after))
    layer.set_input(1, kernel)
    return padded(make, make.made(layer), *([max(0, -each) for each in side] for side in (before, after)))


def _trimmed(
    x: ITensor, layer: WeightedWindow, sliding: Sliding, more: Sequence[int], wanted: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """What is trimmed off the output of a transposed convolution, before and after; added where it is below 0."""
    before, after = list(sliding.before), list(sliding.after)
    if wanted or sliding.same is not None:
        total = [spare + extra for spare, extra in zip(_spare(x, layer, wanted), more, strict=True)]
        less = [each // 2 for each in total]
        rest = [each - half for each, half in zip(total, less, strict=True)]
        before, after = (less, rest) if sliding.same is PaddingMode.SAME_UPPER else (rest, less)
    return before, [each - extra for each, extra in zip(after, more, strict=True)]


def _spare(x: ITensor, layer: WeightedWindow, wanted: Sequence[int] | None) -> list[int]:
    """How many elements the output has more than is wanted; by default so many as input and strides tell."""
    along = zip(layer.stride_nd, layer.spans, strict=True)
    if not wanted:
        return [span - stride for stride, span in along]
    lengths, sizes = x.type.shape[2:], wanted[-len(layer.window) :]
    require(UNKNOWN not in lengths, f"the input is {x.type}, and must be known where the shape of the output is given")
    require(len(sizes) == len(lengths), f"the shape of the output is {wanted}, and must have {len(lengths)} numbers")
    whole = zip(lengths, sizes, along, strict=True)
    return [(length - 1) * stride + span - size for length, size, (stride, span) in whole]


def padded(make: FormulaBuilder, x: ITensor, before: Sequence[int], after: Sequence[int]) -> ITensor:
    """``x`` with zeros around its last axes."""
    if not any((*before, *after)):
        return x
    count = x.type.rank - len(before)
    starts = [0] * count + [-each for each in before]
    around = [0] * count + [a + b for a, b in zip(before, after, strict=True)]
    return make.slice(x, starts, make.add(make.shape(x), np.array(around, np.int64)), outside=SampleMode.FILL)


# ---------------------------------------------------------------------------- poolings


def pooled(
    make: FormulaBuilder, x: ITensor, layer: SlidingWindow, sliding: Sliding, up: bool, inside: bool = True
) -> ITensor:
    """What a window makes.

    Args:
        make: what adds layers.
        x: the input.
        layer: the window.
        sliding: how it moves.
        up: whether there is a last window that leaves the input and its padding.
        inside: whether there is none that starts in the padding after the input.
    """
    sliding.on(layer)
    if not up or sliding.same is not None:
        return make.made(layer)
    layer.padding_mode = PaddingMode.EXPLICIT_ROUND_UP
    made = make.made(layer)
    if not inside:
        return made
    lengths, counts = (make.slice(make.shape(each), [2], [len(layer.window)]) for each in (x, made))
    before = np.array(layer.pre_padding, np.int64) - 1
    starting = make.add(make.floor_div(make.add(lengths, before), np.array(layer.stride_nd, np.int64)), 1)
    kept = make.minimum(counts, starting)
    if make.ints(kept) == list(made.type.shape[2:]):
        return made
    return make.slice(made, [0] * len(layer.window), kept, axes=range(2, made.type.rank))


def among_all(make: FormulaBuilder, x: ITensor, places: ITensor, axis: int = 0) -> ITensor:
    """Places in an image of ``x`` as places among all elements from an axis on."""
    shape, rank = make.shape(x), x.type.rank
    if axis > 2:
        return make.modulo(places, make.reduce(ReduceOperation.PROD, make.slice(shape, [axis], [rank - axis]), [0]))
    volume = make.reduce(ReduceOperation.PROD, make.slice(shape, [2], [rank - 2]), [0])
    images = make.slice(shape, [axis], [2 - axis])
    numbers = make.arange(make.reduce(ReduceOperation.PROD, images, [0]))
    each = make.concat([images, make.constant(np.ones(rank - 2, np.int64))], 0)
    return make.add(places, make.reshape(make.mul(numbers, volume), each))
