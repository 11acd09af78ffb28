"""Compute products with weights, and the element-wise layers behind them, by kernels of netloop's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netloop.compiler.convolution.convolution import Convolution, WindowAxis
from netloop.compiler.machine_code.processor import processor
from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.convolution_kernels import use_kernel
from netloop.compiler.passes.kernel_fusion import FusedLayers
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph.layer import Operation
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.values.enums import MatrixOperation

LEAST_WORK = 1 << 8
"""The least multiplications. XLA computes 500 and fewer on the thread that calls, and others on another one."""
ONE = WindowAxis(1, 1, 1, 1, 0, 1)


class ProductKernels(Pass):
    """Compute a product with weights, and what follows it element by element, in one call.

    XLA packs weights in each call, and hands a program of more than 1,000 operations to another thread, unless they are
    in calls of machine code. Two products of one row by 64 x 64 take 13 instead of 23 us on one thread of an Intel Xeon
    with AVX-512, and on two 13 instead of 17 to 50; 128 rows by 768 x 3072 and back 0.75 of the time on one, and 0.86
    on two.
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
        f"it, as in `convolution_kernels`. It has {LEAST_WORK:,} multiplications or more."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        layers = [] if rewriter.is_pure else rewriter.layers(IMatrixMultiplyLayer)
        layers = [layer for layer in layers if _may_be_a_kernel(rewriter, layer)]
        # most networks have products, but not all are on CPUs for which there are kernels
        own = processor() if layers else None
        if own is None:
            return False
        live = {*rewriter.layers(Operation)}
        for product in layers:
            fused = FusedLayers(rewriter, product, None, live)
            x, matrix = operand(product, 0).type, operand(product, 1)
            axis = replace(ONE, length=x.volume // x.shape[-1], count=x.volume // x.shape[-1])
            convolution = Convolution(
                1, x.shape[-1], fused.output.type.shape[-1], ONE, axis, 1, fused.values, fused.kinds
            )
            weights = rewriter.make.reshape(matrix, [1, 1, *matrix.type.shape[-2:]])
            if product.op1 is MatrixOperation.TRANSPOSE:
                weights = rewriter.make.transpose(weights, [0, 1, 3, 2])
            use_kernel(rewriter, product, fused, convolution, weights, own)
            live -= fused.layers
        rewriter.note(f"{len(layers)} products are calls of machine code")
        return True


def _may_be_a_kernel(rewriter: Rewriter, layer: IMatrixMultiplyLayer) -> bool:
    """Whether a kernel can compute a product, and is worth its compilation."""
    x, matrix, output = operand(layer, 0), operand(layer, 1), layer.outputs[0]
    if rewriter.scopes.depth(layer) or not x.type.is_fixed or x.type.dtype != np.float32 or x in rewriter.weights:
        return False
    is_plain = layer.op0 is MatrixOperation.NONE and layer.op1 is not MatrixOperation.VECTOR
    # one matrix for all batches
    if not is_plain or matrix not in rewriter.weights or matrix.type.volume != np.prod(matrix.type.shape[-2:]):
        return False
    return x.type.volume > 0 and output.type.volume * x.type.shape[-1] >= LEAST_WORK
