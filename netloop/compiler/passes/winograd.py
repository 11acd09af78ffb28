"""Convolve windows of 3 x 3 by Winograd's algorithm."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import lax

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.channels_last_layers import ChannelsLastConvolutionLayer, ChannelsLastWindow, padded, part
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph.layer import Elementary, layer
from netloop.model.layers import matrix
from netloop.values.enums import LayerType
from netloop.values.types import Array, Shape, TensorType

MIN_CHANNELS, MIN_MAPS = 32, 64
"""With fewer channels or maps, products do not pay for the sums around them."""
MIN_TILES = 16
"""Of fewer tiles, each product is one of few rows, and reads 16 / 9 of the weights."""
MIN_WORK = 100_000
"""The least channels times maps times tiles."""


@layer(LayerType.INTERNAL, "Winograd Kernel")
class WinogradKernelLayer(Elementary):
    """The kernel [16, C, K] of Winograd's algorithm for a kernel [3, 3, C, K], in float64 and rounded once."""

    def infer(self, kernel: TensorType) -> TensorType:
        return kernel.with_shape((16, *kernel.shape[2:]))

    def evaluate(self, *inputs: Array) -> Array:
        # a transposed kernel, which has its elements far from each other, takes three times as long
        return super().evaluate(*map(np.ascontiguousarray, inputs))

    def formula(self, xp: Any, kernel: Any) -> Any:
        rows = _spread(kernel.astype(np.float64))
        # the columns first, as they are in the tiles
        spread = [_spread(row) for row in rows]
        return xp.stack([spread[i][j].astype(kernel.dtype) for j in range(4) for i in range(4)])


@layer(LayerType.INTERNAL, "Winograd Convolution")
class WinogradConvolutionLayer(ChannelsLastWindow):
    """A convolution of x [N, H, W, C] by windows of 3 x 3 with the stride 1, and a kernel [16, C, K].

    It gives 2 x 2 elements of the output from 4 x 4 of the input with 16 products instead of 36 (Lavin and Gray, Fast
    Algorithms for Convolutional Neural Networks, 2015). The sums before and after the products cancel, so that an error
    is relative to the largest numbers of the 4 x 4.
    """

    def lengths(self, x: Shape, kernel: Shape) -> Shape:
        axes = zip(x[1:-1], self.before, self.after, strict=True)
        return tuple(length + before + after - 2 for length, before, after in axes)

    def maps(self, kernel: Shape) -> int:
        return kernel[-1]

    def summed(self, xp: Any, x: Any, kernel: Any) -> Any:
        height, width = self.lengths(x.shape, kernel.shape)
        down, along = -(-height // 2), -(-width // 2)
        # the last tiles may extend past the output
        around = self.before[0], self.after[0] + 2 * down - height, self.before[1], self.after[1] + 2 * along - width
        wide = padded(xp, x, [around[:2], around[2:]])
        rows = [part(xp, wide, [i, 0], [down, wide.shape[2]], [2, 1]) for i in range(4)]
        spread = xp.concatenate(_differences(rows))
        columns = [part(xp, spread, [0, j], [down, along], [1, 2]) for j in range(4)]
        # 4 transforms of the columns by 4 of the rows, which XLA compiles faster than 16 of both
        tiles = xp.concatenate(_differences(columns)).reshape(16, -1, x.shape[-1])
        result = _products(xp, tiles, kernel).reshape(4, 4, x.shape[0], down, along, -1)
        upper, lower = (xp.stack(_sums(sum_), 3) for sum_ in _sums([result[:, i] for i in range(4)]))
        # [N, rows, row of a tile, columns, column of a tile, K]
        whole = xp.stack([upper, lower], 2).reshape(x.shape[0], 2 * down, 2 * along, -1)
        return part(xp, whole, [0, 0], [height, width], [1, 1])


def _differences(four: Sequence[Any]) -> list[Any]:
    a, b, c, d = four
    return [a - c, b + c, c - b, b - d]


def _spread(three: Any) -> list[Any]:
    a, b, c = three
    return [a, (a + b + c) / 2, (a - b + c) / 2, c]


def _sums(four: Sequence[Any]) -> list[Any]:
    a, b, c, d = four
    return [a + b + c, b - c - d]


def _products(xp: Any, left: Any, kernel: Any) -> Any:
    if xp is np:
        return np.matmul(left, kernel)
    return lax.dot_general(left, kernel, (((2,), (1,)), ((0,), (0,))), matrix.PRECISION)


class Winograd(Pass):
    """Convolve by products of transformed tiles and kernels."""

    name = "winograd"
    level = 3
    platforms = frozenset({"cpu"})
    on_host = True
    # it knows only convolutions with their channels last; kernels take these as fast, and are more exact
    after = ("channels_last", "convolution_kernels")
    rule = (
        "On CPUs, float32 convolutions by windows of 3 x 3 with the stride 1 compute tiles of 2 x 2 by Winograd's "
        "algorithm: 16 products instead of 36. Errors are about as large as those of the sum of the 36, and at most "
        "16 times its bound if each number counts as the largest of its window. An infinity gives NaN, and so may "
        f"numbers above 1e37. Applies to {MIN_CHANNELS} channels, {MIN_MAPS} maps and {MIN_TILES} tiles or more, whose "
        f"product is {MIN_WORK:,} or more."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        layers = [convolution for convolution in rewriter.layers(ChannelsLastConvolutionLayer) if _gains(convolution)]
        for convolution in layers:
            x, _, *bias = convolution.inputs
            transformed = rewriter.network.add(WinogradKernelLayer(), [operand(convolution, 1)]).outputs[0]
            layer = WinogradConvolutionLayer(
                stride_nd=convolution.stride_nd,
                dilation_nd=convolution.dilation_nd,
                before=convolution.before,
                after=convolution.after,
            )
            result = rewriter.network.add(layer, [x, transformed, *bias])
            rewriter.take_over(convolution.outputs[0], result.outputs[0])
        if layers:
            rewriter.note(f"{len(layers)} convolutions by Winograd's algorithm")
        return bool(layers)


def _gains(layer: ChannelsLastConvolutionLayer) -> bool:
    """Whether a layer has a window of 3 x 3 with the stride 1, and enough channels, maps and tiles."""
    x, kernel, shape = operand(layer, 0).type, operand(layer, 1).type.shape, layer.outputs[0].type.shape
    if x.dtype != np.float32 or kernel[:-2] != (3, 3) or {*layer.stride_nd, *layer.dilation_nd} != {1}:
        return False
    tiles = shape[0] * math.prod(-(-length // 2) for length in shape[1:3])
    channels, maps = kernel[-2:]
    is_large = channels >= MIN_CHANNELS and maps >= MIN_MAPS and tiles >= MIN_TILES
    return layer.num_groups == 1 and is_large and channels * maps * tiles >= MIN_WORK
