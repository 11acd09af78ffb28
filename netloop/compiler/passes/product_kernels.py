"""Compute products with weights, and the element-wise layers behind them, by kernels of netloop's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.compiler.convolution.convolution import Convolution, WindowAxis
from netloop.compiler.machine_code.processor import processor
from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.convolution_kernels import ConvolutionKernelLayer, use_kernel
from netloop.compiler.passes.kernel_fusion import FusedLayers
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph.layer import Operation, layer
from netloop.model.graph.padded_axes import NO_NEUTRALS, Axes, Neutrals
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.values.enums import LayerType, MatrixOperation
from netloop.values.types import Shape, TensorType

LEAST_WORK = 1 << 8
"""The least multiplications. XLA computes 500 and fewer on the thread that calls, and others on another one."""
MOST_WORK = 1 << 18
"""The most multiplications of all products of a network: more take longer than a thread needs to begin, and XLA takes
the same time. A BERT of 4 x 256 and 128 tokens takes 1.05 times as long with kernels, a GPT-2 of one token 1.02."""
ONE = WindowAxis(1, 1, 1, 1, 0, 0)


@layer(LayerType.INTERNAL, "Product Kernel")
class ProductKernelLayer(ConvolutionKernelLayer):
    """A product of x [.., K] with weights, as a convolution of one element, and what is computed of it."""

    def of_shape(self, x: Shape) -> Convolution:
        return self.convolution.of_lengths(1, 1, math.prod(x[:-1]))

    def output_shape(self, x: Shape) -> Shape:
        return *x[:-1], self.convolution.maps

    def infer(self, x: TensorType, *others: TensorType) -> TensorType:
        return x.with_shape(self.output_shape(x.shape))

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return None if any(padded) else NO_NEUTRALS


class ProductKernels(Pass):
    """Compute a product with weights, and what follows it element by element, in one call.

    XLA hands a program of more than 1,000 operations to another thread, unless they are in calls of machine code. A
    perceptron of PyTorch, 784 x 256 x 128 x 10, takes 0.72 of the time for one row on one thread of an Intel Xeon with
    AVX-512, and one of scikit-learn 0.68; on two threads both take the same.
    """

    name = "product_kernels"
    level = 3
    platforms = frozenset({"cpu"})
    on_host = True
    # a product that is fused with others, folded away or of gates is another one
    after = ("horizontal_fusion", "embedding_folding", "gate_fusion")
    rule = (
        "On CPUs, where the extra `kernels` is installed: a float32 product outside of loops with a matrix of weights, "
        "of rows of a known number, is one call of machine code of netloop's own, with the element-wise layers behind "
        f"it, as in `convolution_kernels`. It has {LEAST_WORK:,} multiplications or more, and all products of the "
        f"network have at most {MOST_WORK:,}."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        products = [] if rewriter.is_pure else rewriter.layers(IMatrixMultiplyLayer)
        layers = [layer for layer in products if _may_be_a_kernel(rewriter, layer)]
        if layers and sum(map(_work, products)) > MOST_WORK:
            return False
        # most networks have products, but not all are on CPUs for which there are kernels
        own = processor() if layers else None
        if own is None:
            return False
        live = {*rewriter.layers(Operation)}
        for product in layers:
            fused = FusedLayers(rewriter, product, None, live)
            x, matrix, maps = operand(product, 0).type, operand(product, 1), fused.output.type.shape[-1]
            convolution = Convolution(1, x.shape[-1], maps, ONE, ONE, 1, fused.values, fused.kinds)
            weights = rewriter.make.reshape(matrix, [1, 1, *matrix.type.shape[-2:]])
            if product.op1 is MatrixOperation.TRANSPOSE:
                weights = rewriter.make.transpose(weights, [0, 1, 3, 2])
            live.add(use_kernel(rewriter, product, fused, convolution, weights, own, ProductKernelLayer))
            live -= fused.layers
        rewriter.note(f"{len(layers)} products are calls of machine code")
        return True


def _may_be_a_kernel(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> bool:
    """Whether a kernel can compute a product, and is worth its compilation."""
    x, matrix = operand(layer, 0), operand(layer, 1)
    if rewriter.scopes.depth(layer) or not x.type.is_fixed or x.type.dtype != np.float32 or x in rewriter.weights:
        return False
    is_plain = layer.op0 is MatrixOperation.NONE and layer.op1 is not MatrixOperation.VECTOR
    # one matrix for all batches
    if not is_plain or matrix not in rewriter.weights or matrix.type.volume != np.prod(matrix.type.shape[-2:]):
        return False
    return x.type.volume > 0 and _work(layer) >= LEAST_WORK


def _work(layer: IMatrixMultiplyLayer) -> int:
    """The multiplications of a product; none of lengths that only a run knows."""
    x, output = operand(layer, 0).type, layer.outputs[0].type
    depth = x.shape[-2 if layer.op0 is MatrixOperation.TRANSPOSE else -1]
    return output.volume * depth if x.is_fixed and output.is_fixed else 0
