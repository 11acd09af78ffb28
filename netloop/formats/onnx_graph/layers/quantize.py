"""Quantization by QuantizeLinear and DequantizeLinear; scales of blocks along several axes are repeated."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.formats.onnx_graph.layers import FLOAT, NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import DOUBLE, E8M0
from netloop.model.layers.quantize import FORMATS, IDequantizeLayer, IDynamicQuantizeLayer, IQuantizeLayer
from netloop.values.diagnostics import require
from netloop.values.types import Shape, TensorType, numpy_type


def _scales(layer: IQuantizeLayer | IDequantizeLayer, make: NodeBuilder, scale: Value) -> tuple[Value, dict[str, Any]]:
    """The scale in a form that ONNX has, and its attributes."""
    x, own = make.type(0), make.type(1)
    if own.rank == 0:
        return scale, {}
    if own.rank == 1 and x.rank != 1:
        return (make.scalar(scale), {}) if layer.axis < 0 else (scale, {"axis": layer.axis})
    sizes = _sizes(layer, x, own)
    cut = [axis for axis, size in enumerate(sizes) if size > 1]
    if len(cut) == 1:
        return scale, {"axis": cut[0], "block_size": sizes[cut[0]]}
    if not cut and x.rank == 1:
        return scale, {"axis": 0}
    return _spread(make, scale, own.shape, sizes), {"axis": 0, "block_size": 1}


def _sizes(layer: IQuantizeLayer | IDequantizeLayer, x: TensorType, own: TensorType) -> list[int]:
    """The lengths of a block along each axis."""
    numbers: list[int] = list(layer.block_shape)
    if numbers and min(numbers) > 0 and sum(size > 1 for size in numbers) == 1:
        return numbers
    require(
        x.is_fixed and own.is_fixed,
        f"the blocks of {layer.name!r} have lengths that are known only at run time",
        "in ONNX the length of a block is an attribute",
        "fix the shapes of the input and of the scale",
    )
    return _ratios(x.shape, own.shape)


def _ratios(shape: Shape, blocks: Shape) -> list[int]:
    return [many // few if few else 1 for many, few in zip(shape, blocks, strict=True)]


def _spread(make: NodeBuilder, scale: Value, shape: Shape, sizes: Sequence[int]) -> Value:
    """The scale of its block for each element of a tensor."""
    if max(sizes, default=1) == 1:
        return scale
    rank = len(shape)
    apart = make.expand_dims(scale, range(1, 2 * rank, 2))
    wide = make.op("Expand", apart, make.int64s(*(n for pair in zip(shape, sizes, strict=True) for n in pair)))
    return make.reshape(wide, [few * size for few, size in zip(shape, sizes, strict=True)])


@exports(IQuantizeLayer)
def quantize(layer: IQuantizeLayer, make: NodeBuilder, x: Value, scale: Value, zero: Value | None = None) -> Value:
    to = numpy_type(layer.to_type)
    spread, attributes = _scales(layer, make, make.cast(scale, FLOAT))
    wide = make.cast(x, FLOAT)
    return make.op("QuantizeLinear", wide, spread, to=to, output_dtype=to, **attributes)


@exports(IDequantizeLayer)
def dequantize(layer: IDequantizeLayer, make: NodeBuilder, x: Value, scale: Value, zero: Value | None = None) -> Value:
    to = numpy_type(layer.to_type)
    require(
        to != DOUBLE,
        f"{layer.name!r} dequantizes to DOUBLE",
        "ONNX's DequantizeLinear has no such type",
        "dequantize to FLOAT, and convert that with add_cast",
    )
    spread, attributes = _scales(layer, make, make.cast(scale, FLOAT))
    return make.cast(make.op("DequantizeLinear", x, spread, to=FLOAT, **attributes), to)


@exports(IDynamicQuantizeLayer)
def dynamic_quantize(
    layer: IDynamicQuantizeLayer, make: NodeBuilder, x: Value, double: Value | None = None
) -> tuple[Value, Value]:
    source, scales = make.type(0), make.out(1)
    to = numpy_type(layer.to_type)
    require(
        scales.dtype != E8M0,
        f"the scales of {layer.name!r} are powers of two, E8M0",
        "ONNX has no operator that computes exponents exactly",
        "use scales of FLOAT",
    )
    require(
        source.is_fixed,
        f"the blocks of {layer.name!r} have lengths that are known only at run time",
        "their shapes must be constants of the model",
        "fix the shape of the input",
    )
    sizes = _ratios(source.shape, scales.shape)
    boxes = make.reshape(make.wide(x), [n for pair in zip(scales.shape, sizes, strict=True) for n in pair])
    largest = make.reduce("ReduceMax", make.op("Abs", boxes), range(1, 2 * source.rank, 2))
    scale = make.op("Div", largest, make.number_like(FORMATS[layer.to_type].most, largest))
    if double is not None:
        again = make.cast(double, scale.dtype)
        scale = _rounded(make, make.op("Div", scale, again), scales.dtype)
        factor = make.op("Mul", make.cast(scale, again.dtype), again)
    else:
        scale = factor = make.cast(scale, FLOAT)
    factor = make.cast(make.expand_dims(factor, range(1, 2 * source.rank, 2)), boxes.dtype)
    zero = make.number_like(0, factor)
    codes = make.where(make.compare("Greater", factor, zero), make.op("Div", boxes, factor), zero)
    return make.reshape(_rounded(make, codes, to), source.shape), scale


def _rounded(make: NodeBuilder, x: Value, to: np.dtype[Any]) -> Value:
    """The nearest numbers of an element type."""
    one = make.number(1, FLOAT)
    return make.op("QuantizeLinear", make.cast(x, FLOAT), one, to=to, output_dtype=to)
