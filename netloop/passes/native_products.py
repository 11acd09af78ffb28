"""Pack weight matrices for products in machine code of netloop's own."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.enums import LayerType, MatrixOperation
from netloop.graph.layer import Operation, layer
from netloop.graph.tensor import ITensor
from netloop.layers.matrix import IMatrixMultiplyLayer, reference_type
from netloop.native import packed_product, panel_width
from netloop.passes.base import OFF, Pass
from netloop.passes.rewriter import Rewriter, operand
from netloop.types import Array, TensorType

MIN_ELEMENTS = 1 << 14
"""A smaller matrix is multiplied in less time than a call of XLA takes."""


@layer(LayerType.INTERNAL, "Packed Product")
class PackedProductLayer(Operation):
    """The product of rows [.., k] and a matrix [k, columns], packed as [panels, k, width] with zeros at the end.

    Attributes:
        columns: the number of columns of the matrix.
    """

    columns: int

    def infer(self, rows: TensorType, panels: TensorType) -> TensorType:
        return rows.with_shape((*rows.shape[:-1], self.columns))

    def evaluate(self, rows: Array, panels: Array) -> Array:
        wide = reference_type(rows.dtype)
        matrix = panels.astype(wide).transpose(1, 0, 2).reshape(panels.shape[1], -1)[:, : self.columns]
        with np.errstate(all="ignore"):
            return (rows.astype(wide) @ matrix).astype(rows.dtype)

    def lower(self, rows: Any, panels: Any) -> Any:
        return packed_product(jnp.asarray(rows), panels, self.columns)


class NativeProducts(Pass):
    """Let products in loops read packed weights."""

    name = "native_products"
    level = 2
    platform = "cpu"
    is_pure = False
    alternatives = (OFF,)
    # the sizes that count are those of fused products, and a product that is folded away needs no packing
    after = ("matmul_recognition", "horizontal_fusion", "embedding_folding")
    rule = (
        "On CPUs, where the extra `native` is installed: a float32 product in a loop with a matrix of weights of "
        f"{MIN_ELEMENTS:,} elements or more is computed by machine code of netloop's own, for which the weights are "
        "packed in advance. Only in engines: not in what `to_jax` returns, in exported programs and on meshes. Only "
        "on Linux, on x86-64 processors with AVX2 and FMA or AVX-512."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        products = list(_products(rewriter))
        width = panel_width() if products else None
        if width is None:
            return False
        for each in products:
            columns = each.outputs[0].type.shape[-1]
            inputs = [operand(each, 0), _packed(rewriter, each, width)]
            rewriter.replace(
                each.outputs[0], rewriter.network.add(PackedProductLayer(columns=columns), inputs).outputs[0]
            )
            rewriter.note(f"the matrix of {each.name!r} is packed in advance")
        return True


def _products(rewriter: Rewriter) -> Iterator[IMatrixMultiplyLayer]:
    """The products in loops whose weights are worth packing."""
    for each in rewriter.layers(IMatrixMultiplyLayer):
        rows, weights = operand(each, 0), operand(each, 1)
        is_plain = each.op0 is not MatrixOperation.TRANSPOSE and each.op1 is not MatrixOperation.VECTOR
        if not is_plain or weights not in rewriter.weights or rows in rewriter.weights:
            continue
        is_large = weights.type.rank == 2 and weights.type.volume >= MIN_ELEMENTS and rows.type.dtype == np.float32
        if is_large and rewriter.scopes.depth(each.outputs[0]) and rewriter.may_replace(each.outputs[0]):
            yield each


def _packed(rewriter: Rewriter, product: IMatrixMultiplyLayer, width: int) -> ITensor:
    """The weights of a product in panels of ``width`` columns, the last of which ends with zeros."""
    make, matrix = rewriter.make, operand(product, 1)
    if product.op1 is MatrixOperation.TRANSPOSE:
        matrix = make.transpose(matrix, [1, 0])
    length, columns = matrix.type.shape
    panels = -(-columns // width)
    if columns % width:
        zeros = make.constant(np.zeros((length, panels * width - columns), np.float32))
        matrix = make.concat([matrix, zeros], 1)
    return make.transpose(make.reshape(matrix, [length, panels, width]), [1, 0, 2])
