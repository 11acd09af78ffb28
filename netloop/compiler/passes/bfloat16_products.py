"""Multiply quantized numbers as bfloat16, which has all of them, on CPUs that multiply it faster than float32."""

import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.channels_last_layers import ChannelsLastConvolutionLayer
from netloop.compiler.passes.integers_as_floats import LimitedLayer
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph import ITensor, Operation, layer
from netloop.model.layers.pointwise import IElementWiseLayer
from netloop.model.layers.quantize import IDequantizeLayer
from netloop.model.layers.rearrange import IShuffleLayer
from netloop.values.enums import ElementWiseOperation, LayerType
from netloop.values.types import Array, TensorType

MOST = 256
"""Bfloat16 has every integer up to this."""
MIN_LENGTH = 32
"""With fewer channels, the conversion takes longer than the product gains."""
MIN_POSITIONS = 16
"""Fewer rows are no product for XLA's library."""
CPU_INFO = Path("/proc/cpuinfo")
FEATURES = {"avx512_bf16", "amx_bf16"}
"""Linux's names of the instructions for products of bfloat16."""


@cache
def multiplies_bfloat16() -> bool:
    """Whether the CPU has instructions for products of bfloat16; only Linux on x86 lists them."""
    try:
        lines = CPU_INFO.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(line.startswith("flags") and not FEATURES.isdisjoint(line.split()) for line in lines)


@layer(LayerType.INTERNAL, "Integer Product")
class IntegerProductLayer(Operation):
    """A product of integers x [N, .., C] up to 256 and a kernel [C, K] of them, times a scale [K], plus a bias [K].

    The products of the integers are exact in bfloat16, and so are their sums in float32 as long as they are below 2^24.
    """

    HAS_PRODUCTS = True
    REQUIRED_INPUTS = 3
    MAX_INPUTS = 4

    def infer(self, x: TensorType, kernel: TensorType, scale: TensorType, bias: TensorType | None = None) -> TensorType:
        return x.with_shape((*x.shape[:-1], kernel.shape[-1]))

    def evaluate(self, x: Array, kernel: Array, scale: Array, bias: Array | None = None) -> Array:
        # the sums of the integers are exact in float64 too, so that only the scale rounds
        result = np.matmul(x.astype(np.float64), kernel.astype(np.float64)) * scale.astype(np.float64)
        return (result if bias is None else result + bias.astype(np.float64)).astype(x.dtype)

    def lower(self, x: Any, kernel: Any, scale: Any, bias: Any = None) -> Any:
        rows = jnp.reshape(x, (-1, x.shape[-1])).astype(jnp.bfloat16)
        result = lax.dot_general(rows, kernel, (((1,), (0,)), ((), ())), preferred_element_type=np.float32) * scale
        return (result if bias is None else result + bias).reshape(*x.shape[:-1], -1)


class BFloat16Products(Pass):
    """Multiply quantized numbers before they are scaled."""

    name = "bfloat16_products"
    level = 3
    platforms = frozenset({"cpu"})
    on_host = True
    # it knows only convolutions with their channels last, of integers in float32
    after = ("channels_last", "integers_as_floats")
    rule = (
        "On CPUs with instructions for products of bfloat16, convolutions by windows of one element of 8-bit quantized "
        "numbers by 8-bit weights multiply the integers, which bfloat16 has, sum them in float32, and apply the scales "
        "afterwards. Results differ from those of scaled numbers by roundings of float32. Applies to "
        f"{MIN_LENGTH} channels and {MIN_POSITIONS} positions or more."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        if not multiplies_bfloat16():
            return False
        products = [
            product for product in map(_found, rewriter.layers(ChannelsLastConvolutionLayer)) if product is not None
        ]
        for product in products:
            _multiply(rewriter, product)
        if products:
            rewriter.note(f"{len(products)} convolutions multiply integers as bfloat16")
        return bool(products)


class _Quantized(NamedTuple):
    """Integers times a scale."""

    integers: ITensor
    scale: ITensor


class _Product(NamedTuple):
    """A convolution of quantized numbers by quantized weights."""

    layer: ChannelsLastConvolutionLayer
    x: _Quantized
    kernel: _Quantized


def _found(layer: ChannelsLastConvolutionLayer) -> _Product | None:
    x, kernel = operand(layer, 0).type, operand(layer, 1).type
    # only then are the windows the rows of x, which need no copy
    is_plain = math.prod(kernel.shape[:-2]) == layer.num_groups == 1 and {*layer.stride_nd} == {1}
    if x.dtype != np.float32 or not is_plain or any(map(any, layer.padding)):
        return None
    if x.shape[-1] < MIN_LENGTH or math.prod(x.shape[:-1]) < MIN_POSITIONS:
        return None
    numbers, weights = _numbers(operand(layer, 0)), _weights(operand(layer, 1))
    return _Product(layer, numbers, weights) if numbers and weights else None


def _numbers(x: ITensor) -> _Quantized | None:
    """Small integers and the scale that a tensor is the product of."""
    maker = x.producer
    if not isinstance(maker, IElementWiseLayer) or maker.op is not ElementWiseOperation.PROD:
        return None
    integers, scale = operand(maker, 0), operand(maker, 1)
    limited = integers.producer
    # numbers of 8 bits less a zero point are from -255 to 255
    if not isinstance(limited, LimitedLayer) or max(-limited.low, limited.high) > MOST or scale.type.volume != 1:
        return None
    return _Quantized(integers, scale)


def _weights(kernel: ITensor) -> _Quantized | None:
    """The integers [K, C, ..] and the scale, for all or for each of K, that a kernel [.., C, K] is the product of."""
    moved = kernel.producer
    maker = operand(moved, 0).producer if isinstance(moved, IShuffleLayer) else None
    if not isinstance(maker, IDequantizeLayer) or operand(maker, 0).type.dtype != np.int8 or maker.block_shape:
        return None
    integers, scale = operand(maker, 0), operand(maker, 1)
    of_maps = scale.type.rank == 0 or (scale.type.rank == 1 and maker.axis == 0)
    # channels_last has moved the axes of the kernel, whose integers are still [K, C, ..]
    is_moved = integers.type.shape[:2] == kernel.type.shape[:-3:-1]
    return _Quantized(integers, scale) if of_maps and is_moved and scale.type.dtype == np.float32 else None


def _multiply(rewriter: Rewriter, product: _Product) -> None:
    make: FormulaBuilder = rewriter.make
    integers, of_kernel = product.kernel
    maps, channels = integers.type.shape[:2]
    # it follows from weights only, so that load time computes it
    matrix = make.cast(make.transpose(make.reshape(integers, [maps, channels]), [1, 0]), jnp.bfloat16)
    scale = make.mul(make.reshape(product.x.scale, [1]), make.reshape(of_kernel, [-1]))
    if scale.type.shape != (maps,):
        scale = make.broadcast_to(scale, [maps])
    result = rewriter.network.add(IntegerProductLayer(), [product.x.integers, matrix, scale, *product.layer.inputs[2:]])
    rewriter.take_over(product.layer.outputs[0], result.outputs[0])
