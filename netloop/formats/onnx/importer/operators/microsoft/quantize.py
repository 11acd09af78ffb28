"""Quantization of onnxruntime (com.microsoft)."""

from typing import Any

import numpy as np

from netloop.formats.onnx.importer.operators.convolution import centred
from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.quantize import quantized_conv, to_type
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType


def floats_of(make: FormulaBuilder, x: ITensor, scale: ITensor, zero: Maybe) -> ITensor:
    """The floating-point numbers that a quantized tensor stands for."""
    return make.mul(make.cast(centred(make, x, zero), np.float32), scale)


def quantized(make: FormulaBuilder, x: ITensor, scale: ITensor, zero: Maybe, dtype: np.dtype[Any]) -> ITensor:
    """``x / scale``, rounded, plus the zero point."""
    return to_type(make, make.div(x, scale), zero, dtype, True)


# ---------------------------------------------------------------------------- functions of elements


@microsoft("QLinearAdd")
def quantized_add(
    call: NodeCall,
    a: ITensor,
    scale_of_a: ITensor,
    zero_of_a: Maybe,
    b: ITensor,
    scale_of_b: ITensor,
    zero_of_b: Maybe,
    scale: ITensor,
    zero: Maybe = None,
) -> ITensor:
    """Sum of quantized tensors."""
    make = call.make
    total = _zero(make, zero)  # added before the sum is rounded, like those of the terms
    for x, own, point in ((a, scale_of_a, zero_of_a), (b, scale_of_b, zero_of_b)):
        ratio = make.div(own, scale)
        shift = make.sub(total, make.mul(ratio, _zero(make, point)))
        total = make.add(make.mul(make.cast(x, np.float32), ratio), shift)
    return to_type(make, total, None, a.type.dtype, True)


def _zero(make: FormulaBuilder, zero: Maybe) -> ITensor:
    """A zero point as a floating-point number."""
    return make.constant(np.float32(0)) if zero is None else make.cast(zero, np.float32)


@microsoft("QLinearMul")
def quantized_mul(
    call: NodeCall,
    a: ITensor,
    scale_of_a: ITensor,
    zero_of_a: Maybe,
    b: ITensor,
    scale_of_b: ITensor,
    zero_of_b: Maybe,
    scale: ITensor,
    zero: Maybe = None,
) -> ITensor:
    """Product of the elements of quantized tensors."""
    make = call.make
    product = make.cast(make.mul(centred(make, a, zero_of_a), centred(make, b, zero_of_b)), np.float32)
    scaled = make.mul(product, make.div(make.mul(scale_of_a, scale_of_b), scale))
    return to_type(make, make.add(scaled, _zero(make, zero)), None, a.type.dtype, True)


@microsoft("QLinearSigmoid", "QLinearLeakyRelu")
def quantized_activation(
    call: NodeCall, x: ITensor, scale_of_x: ITensor, zero_of_x: Maybe, scale: ITensor, zero: Maybe = None
) -> ITensor:
    """Element-wise function of a quantized tensor."""
    make, wide = call.make, floats_of(call.make, x, scale_of_x, zero_of_x)
    if call.node.op == "QLinearSigmoid":
        tensor = make.activation(ActivationType.SIGMOID, wide)
    else:
        tensor = make.activation(ActivationType.LEAKY_RELU, wide, call.attribute("alpha"))
    return quantized(make, tensor, scale, zero, x.type.dtype)


@microsoft("QLinearWhere")
def quantized_where(
    call: NodeCall,
    condition: ITensor,
    a: ITensor,
    scale_of_a: ITensor,
    zero_of_a: ITensor,
    b: ITensor,
    scale_of_b: ITensor,
    zero_of_b: ITensor,
    scale: ITensor,
    zero: ITensor,
) -> ITensor:
    """Elements of one of two quantized tensors."""
    make = call.make
    chosen = make.where(condition, floats_of(make, a, scale_of_a, zero_of_a), floats_of(make, b, scale_of_b, zero_of_b))
    return quantized(make, chosen, scale, zero, a.type.dtype)


# ---------------------------------------------------------------------------- along axes


@microsoft("QLinearConcat")
def quantized_concat(call: NodeCall, scale: ITensor, zero: ITensor, *parts: ITensor) -> ITensor:
    """Concatenation of quantized tensors, each with a scale and zero point of its own."""
    make = call.make
    require(len(parts) % 3 == 0, f"there are {len(parts)} inputs for tensors, each of which has 3")
    triples = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    wide = [floats_of(make, *entry) for entry in triples]
    joined = make.concat(wide, call.axis(wide[0]))
    return quantized(make, joined, scale, zero, zero.type.dtype)


@microsoft("QLinearSoftmax")
def quantized_softmax(
    call: NodeCall, x: ITensor, scale_of_x: ITensor, zero_of_x: Maybe, scale: ITensor, zero: ITensor
) -> ITensor:
    """Softmax of a quantized tensor along an axis, or before version 13 over all axes from it on."""
    make, axis = call.make, call.axis(x)
    wide = floats_of(make, x, scale_of_x, zero_of_x)
    if call.attribute("opset") >= 13:
        tensor = make.softmax(wide, axis)
    else:
        tensor = make.reshape(make.softmax(make.merge_axes(wide, axis), 1), make.shape(wide))
    return quantized(make, tensor, scale, zero, x.type.dtype)


@microsoft("QLinearReduceMean")
def quantized_mean(
    call: NodeCall, x: ITensor, scale_of_x: ITensor, zero_of_x: Maybe, scale: ITensor, zero: Maybe = None
) -> ITensor:
    """Mean of a quantized tensor over axes."""
    make, wide = call.make, floats_of(call.make, x, scale_of_x, zero_of_x)
    tensor = make.mean(wide, call.attribute("axes"), call.flag("keepdims"))
    return quantized(make, tensor, scale, zero, x.type.dtype)


# ---------------------------------------------------------------------------- convolution


@microsoft("QLinearConv")
def quantized_convolution(call: NodeCall, x: ITensor, *rest: ITensor) -> ITensor:
    """Convolution of quantized tensors, whose channels may be the last axis."""
    if not call.attribute("channels_last"):
        return quantized_conv(call, x, *rest)
    return channels_last(call.make, quantized_conv(call, channels_first(call.make, x), *rest))


def channels_first(make: FormulaBuilder, x: ITensor) -> ITensor:
    """An image whose channels are the last axis, with the channels before the other axes."""
    rank = x.type.rank
    return make.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def channels_last(make: FormulaBuilder, x: ITensor) -> ITensor:
    """An image with the channels behind the other axes."""
    return make.transpose(x, [0, *range(2, x.type.rank), 1])
