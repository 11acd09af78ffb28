"""Compute convolutions, and the element-wise layers behind them, by kernels of netloop's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.compiler.convolution.convolution import Convolution, WindowAxis
from netloop.compiler.convolution.convolve import convolve, packed, unpacked
from netloop.compiler.convolution.division import packed_size
from netloop.compiler.machine_code.processor import Processor, processor
from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.channels_last import USUAL_LENGTH
from netloop.compiler.passes.channels_last_layers import ChannelsLastConvolutionLayer, require_windows
from netloop.compiler.passes.kernel_functions import FUNCTIONS
from netloop.compiler.passes.kernel_fusion import FusedLayers
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph import ITensor
from netloop.model.graph.layer import Elementary, Operation, layer
from netloop.model.graph.padded_axes import Axes, Neutrals, neutral
from netloop.values.enums import LayerType
from netloop.values.types import UNKNOWN, Array, Shape, TensorType

LEAST_WORK = 1 << 16
"""The least multiplications: fewer take XLA microseconds, and a kernel takes a tenth of a second to compile."""
LEAST_MAPS = 4
"""The least maps of a group: fewer leave most of a vector empty, and XLA takes 0.84 to 0.9 of the time for 3."""


@layer(LayerType.INTERNAL, "Packed Kernel")
class PackedKernelLayer(Elementary):
    """A kernel [rows, columns, channels, maps] in the order in which machine code reads it, [size].

    Attributes:
        convolution: the convolution.
        processor: the vectors of the processor.
    """

    convolution: Convolution
    processor: Processor

    def infer(self, kernel: TensorType) -> TensorType:
        return kernel.with_shape((packed_size(self.convolution, self.processor),))

    def formula(self, xp: Any, kernel: Any) -> Any:
        return packed(xp, kernel, self.convolution, self.processor)


@layer(LayerType.INTERNAL, "Convolution Kernel")
class ConvolutionKernelLayer(Operation):
    """A convolution of x [N, .., C], and what is computed of it element by element.

    The inputs are x, the packed kernel, and the arrays of the values.

    Attributes:
        convolution: the convolution, of lengths that may be unknown.
        processor: the vectors of the processor for which the kernel is packed.
    """

    convolution: Convolution
    processor: Processor

    def of_shape(self, x: Shape) -> Convolution:
        """The convolution of an input of some shape."""
        return self.convolution.of_lengths(x[0], *(x[1:-1] if len(x) == 4 else (1, x[1])))

    def output_shape(self, x: Shape) -> Shape:
        """The shape of the output."""
        own = self.of_shape(x)
        return x[0], *[own.rows.count, own.columns.count][-len(x[1:-1]) :], own.maps

    def infer(self, x: TensorType, *others: TensorType) -> TensorType:
        shape, own = self.output_shape(x.shape), self.convolution
        require_windows(x, shape[1:-1], [(axis.before, axis.after) for axis in (own.rows, own.columns)][3 - x.rank :])
        return x.with_shape(shape)

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return None if types[0].rank - 1 in padded[0] or any(padded[1:]) else neutral(0, padded[0] - {0})

    def evaluate(self, x: Array, kernel: Array, *arrays: Array) -> Array:
        plain = unpacked(kernel, self.convolution, self.processor)
        result = self.of_shape(x.shape).evaluate(FUNCTIONS, x, plain, arrays)
        return result.reshape(self.output_shape(x.shape)).astype(x.dtype)

    def lower(self, *inputs: Any) -> Any:
        shape = inputs[0].shape
        return convolve(self.of_shape(shape), self.processor, inputs).reshape(self.output_shape(shape))


def _axes(layer: ChannelsLastConvolutionLayer) -> list[WindowAxis]:
    x, kernel = operand(layer, 0).type.shape, operand(layer, 1).type.shape
    entries = zip(x[1:-1], kernel[:-2], layer.stride_nd, layer.dilation_nd, layer.before, layer.after, strict=True)
    return [WindowAxis(*entry) for entry in entries]


def _convolution(layer: ChannelsLastConvolutionLayer, fused: FusedLayers) -> Convolution:
    x, maps, axes = operand(layer, 0).type.shape, operand(layer, 1).type.shape[-1], _axes(layer)
    rows, columns = axes if len(axes) == 2 else (WindowAxis(1, 1, 1, 1, 0, 0), axes[0])
    return Convolution(x[0], x[-1], maps, rows, columns, layer.num_groups, fused.values, fused.kinds)


def _may_be_a_kernel(rewriter: Rewriter, layer: ChannelsLastConvolutionLayer) -> bool:
    """Whether a kernel can compute a convolution, and is worth its compilation."""
    x, kernel, output = operand(layer, 0).type, operand(layer, 1), layer.outputs[0].type
    if x.dtype != np.float32 or kernel not in rewriter.weights or x.rank not in (3, 4):
        return False
    channels, maps = kernel.type.shape[-2], kernel.type.shape[-1] // layer.num_groups
    is_depthwise = layer.num_groups > 1 and channels == maps == 1
    if maps < LEAST_MAPS and not is_depthwise:
        return False
    lengths = (USUAL_LENGTH if length == UNKNOWN else length for length in output.shape)
    work = math.prod(lengths) * math.prod(kernel.type.shape[:-1])
    return work >= LEAST_WORK and all(axis.never_misses for axis in _axes(layer))


class ConvolutionKernels(Pass):
    """Compute convolutions, and what follows them element by element, in one call each.

    XLA copies windows for products, and writes and reads what a bias, an activation and a residual make of their sums.
    A depthwise convolution is a sum over padded copies there. MobileNetV3 takes 0.44 of the time on one thread of an
    Intel Xeon with AVX-512, and ResNet-50 0.7, and both compile in half the time.
    """

    name = "convolution_kernels"
    level = 3
    platforms = frozenset({"cpu"})
    on_host = True
    # it knows only convolutions with their channels last
    after = ("channels_last",)
    rule = (
        "On CPUs, where the extra `kernels` is installed: a float32 convolution with its channels last, by "
        f"weights, over one or two axes, with {LEAST_MAPS} maps or more for a group or as many "
        "groups as channels and maps, is one call of machine code of netloop's own, for which the weights are "
        "packed in advance. So are the element-wise layers behind it that nothing else needs: its bias, "
        "activations, and sums and products with numbers, with a number for each map, or with an array of its "
        f"shape. It has {LEAST_WORK:,} multiplications or more. Only in engines: not in what `to_jax` returns, in "
        "exported programs, on meshes and in slots. Only on Linux, on x86-64 processors with AVX2 and FMA or "
        "AVX-512."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        layers = [] if rewriter.is_pure else rewriter.layers(ChannelsLastConvolutionLayer)
        layers = [layer for layer in layers if _may_be_a_kernel(rewriter, layer)]
        # most networks have no convolution, and need no compiler imported
        own = processor() if layers else None
        if own is None:
            return False
        live = {*rewriter.layers(Operation)}
        for convolution in layers:
            fused = FusedLayers(rewriter, convolution, [*convolution.inputs, None][2], live)
            data, weights = _convolution(convolution, fused), operand(convolution, 1)
            live.add(use_kernel(rewriter, convolution, fused, data, weights, own))
            live -= fused.layers
        rewriter.note(f"{len(layers)} convolutions are calls of machine code")
        return True


def use_kernel(
    rewriter: Rewriter,
    layer: Operation,
    fused: FusedLayers,
    convolution: Convolution,
    weights: ITensor,
    own: Processor,
    kind: type[ConvolutionKernelLayer] = ConvolutionKernelLayer,
) -> ConvolutionKernelLayer:
    """Let a kernel compute layers, of which ``layer`` has the sums, from a kernel [rows, columns, channels, maps]."""
    add = rewriter.network.add
    packed_weights = add(PackedKernelLayer(convolution=convolution, processor=own), [weights]).outputs[0]
    kernel = kind(convolution=convolution, processor=own)
    add(kernel, [operand(layer, 0), packed_weights, *fused.arrays])
    kernel.name = layer.name
    vars(kernel)["source_location"] = layer.source_location
    rewriter.take_over(fused.output, kernel.outputs[0])
    return kernel
