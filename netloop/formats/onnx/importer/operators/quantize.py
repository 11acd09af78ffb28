"""Quantization."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.onnx.importer.operators.convolution import centred, convolution
from netloop.formats.onnx.tensors import element_type
from netloop.model.formulas import FormulaBuilder, as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.quantize import FORMATS
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType, UnaryOperation
from netloop.values.types import HALVES, numpy_type

SYMMETRIC = {numpy_type(format_) for format_ in FORMATS}
"""The types of the quantization layers, which take no zero point."""


def _broadcastable(call: NodeCall, factor: ITensor, x: ITensor) -> ITensor:
    """A scale or zero point in a shape that broadcasts to the shape of ``x``."""
    make, rank, axis = call.make, x.type.rank, call.attribute("axis", 1)
    block = call.attribute("block_size", 0)
    require(block >= 0, f"block_size is {block}, but must not be negative")
    if not block:
        return make.along(factor, rank, axis) if rank else make.scalar(factor)
    require(factor.type.rank == rank, f"the scale is {factor.type}, but must have the {rank} axes of the input")
    axis %= rank
    shape = make.shape(factor)
    ones = np.where(np.arange(rank + 1) == axis + 1, block, 1)
    many = make.broadcast_to(make.expand_dims(factor, [axis + 1]), ones)
    lengths = make.mul(shape, np.where(np.arange(rank) == axis, block, 1))
    return make.take_first(make.reshape(many, lengths), make.tensor(make.length(x, axis)), axis)


def _fits_layers(make: FormulaBuilder, scale: ITensor, zero: Maybe) -> bool:
    """Whether the quantization layers take a scale and a zero point: ONNX allows any scale, as some tools write."""
    factor, offset = make.known(scale), None if zero is None else make.known(zero)
    is_positive = factor is None or bool((factor.astype(np.float32) > 0).all())
    return is_positive and (zero is None or (offset is not None and not offset.astype(np.float32).any()))


@operator("QuantizeLinear", since=(10, 13, 19, 21, 23))
def quantize(call: NodeCall, x: ITensor, scale: ITensor, zero: Maybe = None) -> ITensor:
    """``x / scale``, rounded, plus the zero point, within the range of the output type."""
    make = call.make
    code = call.attribute("output_dtype", 0)
    dtype = np.dtype(np.uint8) if zero is None else zero.type.dtype
    dtype = element_type(code) if code else dtype
    precision = call.attribute("precision", 0)
    divided = (
        element_type(precision) if precision else scale.type.dtype if scale.type.is_float else np.dtype(np.float32)
    )
    x, scale = make.cast(x, divided), make.cast(scale, divided)
    saturates = call.flag("saturate", True)
    if dtype in SYMMETRIC and divided == np.float32 and _fits_layers(make, scale, zero) and saturates and x.type.rank:
        return _by_layer(call, make.network.add_quantize(x, _layer_scale(call, scale, x), as_dtype(dtype)), x)
    quotient = make.div(x, _broadcastable(call, scale, x))
    return to_type(make, quotient, None if zero is None else _broadcastable(call, zero, x), dtype, saturates)


def _layer_scale(call: NodeCall, scale: ITensor, x: ITensor) -> ITensor:
    """A scale as the quantization layers take it: a list of one element becomes a scalar."""
    return call.make.scalar(scale) if scale.type.shape == (1,) and not call.attribute("block_size", 0) else scale


def _by_layer(call: NodeCall, layer: Any, x: ITensor) -> ITensor:
    rank, block = x.type.rank, call.attribute("block_size", 0)
    axis = call.attribute("axis", 1)
    layer.axis = axis % rank if layer.get_input(1).type.rank == 1 else -1
    if block:
        layer.block_shape = [block if index == axis % rank else 1 for index in range(rank)]
    return call.make.output(layer)


def to_type(make: FormulaBuilder, x: ITensor, zero: Maybe, dtype: np.dtype[Any], saturates: bool) -> ITensor:
    """``x`` rounded to a type, around its zero point."""
    wide = make.cast(x, np.float32) if x.type.dtype in HALVES else x
    if jnp.issubdtype(dtype, jnp.integer):
        rounded = make.unary(UnaryOperation.ROUND, wide)
        if zero is not None:
            rounded = make.add(rounded, make.cast(make.cast(zero, np.int32), wide.type.dtype))
        limits = jnp.iinfo(dtype)
        # limits that are no weights, so that a pass may rely on them
        limited = make.activation(ActivationType.CLIP, rounded, float(limits.min), float(limits.max))
        return make.cast(make.cast(limited, np.int32), dtype)
    most = float(jnp.finfo(dtype).max)
    return make.cast(make.activation(ActivationType.CLIP, wide, -most, most) if saturates else wide, dtype)


@operator("DequantizeLinear", since=(10, 13, 21, 23))
def dequantize(call: NodeCall, x: ITensor, scale: ITensor, zero: Maybe = None) -> ITensor:
    """``(x - zero point) * scale``."""
    make, code = call.make, call.attribute("output_dtype", 0)
    dtype = element_type(code) if code else scale.type.dtype
    if x.type.dtype in SYMMETRIC and _fits_layers(make, scale, zero) and x.type.rank:
        return _by_layer(call, make.network.add_dequantize(x, _layer_scale(call, scale, x), as_dtype(dtype)), x)
    difference = centred(make, x, None if zero is None else _broadcastable(call, zero, x))
    wide = np.float64 if np.float64 in (dtype, scale.type.dtype) else np.float32
    return make.cast(make.mul(make.cast(difference, wide), make.cast(_broadcastable(call, scale, x), wide)), dtype)


# ---------------------------------------------------------------------------- products


def _requantized(call: NodeCall, product: ITensor, factors: list[ITensor], zero: ITensor) -> ITensor:
    """An integer product times the scales of its factors over the scale of the output, quantized."""
    make = call.make
    first, second, output = (make.cast(factor, np.float32) for factor in factors)
    scaled = make.mul(make.cast(product, np.float32), make.div(make.mul(first, second), output))
    return to_type(make, scaled, zero, zero.type.dtype, True)


@operator("QLinearMatMul", since=10)
def quantized_matmul(
    call: NodeCall,
    a: ITensor,
    scale_of_a: ITensor,
    zero_of_a: ITensor,
    b: ITensor,
    scale_of_b: ITensor,
    zero_of_b: ITensor,
    scale: ITensor,
    zero: ITensor,
) -> ITensor:
    """Product of quantized matrices; lists of scales or zero points are per row of a, or per column of b."""
    make = call.make
    factors = [make.along(scale_of_a, 2, 0), make.along(scale_of_b, 2, 1), scale]
    product = make.matmul(centred(make, a, zero_of_a, -2), centred(make, b, zero_of_b, -1))
    return _requantized(call, product, factors, zero)


@operator("QLinearConv", since=10)
def quantized_conv(
    call: NodeCall,
    x: ITensor,
    scale_of_x: ITensor,
    zero_of_x: ITensor,
    kernel: ITensor,
    scale_of_kernel: ITensor,
    zero_of_kernel: ITensor,
    scale: ITensor,
    zero: ITensor,
    bias: Maybe = None,
) -> ITensor:
    """Convolution of quantized tensors; the kernel's scale and zero point are for all maps, or for each."""
    make = call.make
    product = convolution(call, centred(make, x, zero_of_x), centred(make, kernel, zero_of_kernel), bias)
    return _requantized(call, product, [scale_of_x, make.along(scale_of_kernel, x.type.rank, 1), scale], zero)
