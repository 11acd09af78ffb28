"""Convolution of integers, which ONNX's Conv and ConvTranspose do not have.

Of integers of 8 bits less their zero points it is ConvInteger, as in quantized models. Any other is a product of
matrices: the elements that the windows read, gathered along each axis, times the kernel.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from netloop.formats.onnx_graph.graph import Value
from netloop.formats.onnx_graph.node_builder import INT8, INT32, INT64, UINT8, NodeBuilder
from netloop.formats.onnx_graph.window_padding import padded
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.convolution import IConvolutionLayer, IDeconvolutionLayer, WeightedWindow
from netloop.model.layers.pointwise import ICastLayer, IElementWiseLayer
from netloop.model.layers.rearrange import Rearrangement
from netloop.values.enums import ElementWiseOperation

# ---------------------------------------------------------------------- integers of 8 bits


@dataclass(frozen=True)
class SmallIntegers:
    """Integers of 8 bits, and the number of the same type that is subtracted from all of them, if there is one."""

    numbers: Value
    zero: Value | None


def small_integers(make: NodeBuilder, value: Value, tensor: ITensor | None) -> SmallIntegers | None:
    """The 8-bit integers that an int32 tensor, which has a value, is computed from; None if it is not."""
    if value.dtype != INT32:
        return None
    if value.array is not None or tensor is None:
        return _small_constant(make, value)
    layer = tensor.producer
    if isinstance(layer, IElementWiseLayer) and layer.op is ElementWiseOperation.SUB:
        numbers, zero = layer.inputs
        return None if numbers is None or zero is None else _less_zero_point(make, numbers, zero)
    source = _before(make, tensor, ICastLayer)
    return SmallIntegers(make.value(source), None) if make.types[source].dtype in (INT8, UINT8) else None


def _small_constant(make: NodeBuilder, value: Value) -> SmallIntegers | None:
    """A constant of int32 whose numbers differ by less than 256, with a zero point of uint8 if it needs one."""
    if value.array is None or not value.array.size:
        return None
    least, most = min(0, int(value.array.min())), max(0, int(value.array.max()))
    if least >= np.iinfo(np.int8).min and most <= np.iinfo(np.int8).max:
        return SmallIntegers(make.constant(value.array, INT8), None)
    if most - least > np.iinfo(np.uint8).max:
        return None
    return SmallIntegers(make.constant(value.array - least, UINT8), make.number(-least, UINT8))


def _less_zero_point(make: NodeBuilder, tensor: ITensor, zero: ITensor) -> SmallIntegers | None:
    """The difference of a tensor and one number; None unless both are of one type of 8 bits.

    onnxruntime takes no zero point for each map.
    """
    source, point = _before(make, tensor, ICastLayer), _before(make, zero, ICastLayer, Rearrangement)
    types = [make.types[tensor].dtype for tensor in (source, point)]
    dtype = next((dtype for dtype in types if dtype in (INT8, UINT8)), None)
    if dtype is None or make.types[zero].volume != 1:
        return None
    numbers, number = _as_type(make, source, dtype), _as_type(make, point, dtype)
    return None if numbers is None or number is None else SmallIntegers(numbers, make.scalar(number))


def _before(make: NodeBuilder, tensor: ITensor, *kinds: type[ILayer]) -> ITensor:
    """The tensor that layers of some kinds reshape, and convert to int32."""
    while make.types[tensor].dtype == INT32 and isinstance(tensor.producer, kinds):
        (tensor,) = (source for source in tensor.producer.inputs[:1] if source is not None)
    return tensor


def _as_type(make: NodeBuilder, tensor: ITensor, dtype: np.dtype[Any]) -> Value | None:
    """A tensor of a type, or a constant whose numbers the type has; None for others."""
    value = make.value(tensor)
    if value.dtype == dtype:
        return value
    fits = value.array is not None and np.array_equal(value.array.astype(dtype), value.array)
    return make.constant(value.array, dtype) if fits else None


# ---------------------------------------------------------------------- products of matrices


def integer_convolution(layer: IConvolutionLayer, make: NodeBuilder, x: Value, kernel: Value) -> Value:
    """The convolution of x [N, C, ..] and a kernel [K, C / groups, ..]."""
    x = padded(layer, make, x, 0)
    for position, (size, step, dilation) in enumerate(_axes(layer)):
        taps = make.constant(np.arange(size) * dilation, INT64)
        last = make.op("Sub", make.shape(x, 2 + 2 * position, 3 + 2 * position), make.int64s((size - 1) * dilation + 1))
        count = make.op("Add", make.op("Div", last, make.int64s(step)), make.int64s(1))
        first = make.op("Mul", make.arange(count), make.int64s(step))
        x = make.gather(x, make.op("Add", make.expand_dims(first, [1]), taps), 2 + 2 * position)
    grouped = make.reshape(kernel, [layer.num_groups, layer.num_output_maps // layer.num_groups, -1])
    return _product(layer, make, x, grouped)


def integer_deconvolution(layer: IDeconvolutionLayer, make: NodeBuilder, x: Value, kernel: Value) -> Value:
    """The transposed convolution of x [N, C, ..] and a kernel [C, K / groups, ..].

    Along each axis the elements that are written to a place are gathered, and zeros from behind the last element for
    the places of the window where there is none.
    """
    axes = len(layer.window)
    lengths = [make.shape(x, 2 + axis, 3 + axis) for axis in range(axes)]
    x = make.op("Pad", x, make.int64s(*[0] * (axes + 4), *[1] * axes), make.number_like(0, x))
    for position, (size, step, dilation) in enumerate(_axes(layer)):
        place = layer.places([1] * axes)[position]
        count = make.op("Add", make.op("Mul", lengths[position], make.int64s(step)), make.int64s(place.length - step))
        reached = make.op("Add", make.arange(count), make.int64s(place.before))
        taps = make.constant(np.arange(size) * dilation, INT64)
        read = make.op("Sub", make.expand_dims(reached, [1]), taps)
        x = make.gather(x, _sources(make, read, step, lengths[position]), 2 + 2 * position)
    maps = layer.num_output_maps // layer.num_groups
    shape = make.concat([make.int64s(layer.num_groups, -1, maps), make.constant(layer.window, INT64)], 0)
    grouped = make.transpose(make.reshape(kernel, shape), [0, 2, 1, *range(3, 3 + axes)])
    return _product(layer, make, x, make.reshape(grouped, [layer.num_groups, maps, -1]))


def _axes(layer: WeightedWindow) -> list[tuple[int, int, int]]:
    """The size, stride and dilation of the window along each axis."""
    return list(zip(layer.window, layer.stride_nd, layer.dilation_nd, strict=True))


def _sources(make: NodeBuilder, read: Value, step: int, length: Value) -> Value:
    """The element of the input that is written to each position, or its length, the index of a zero, for none."""
    element = make.op("Div", read, make.int64s(step))
    is_element = make.compare("Equal", make.op("Mul", element, make.int64s(step)), read)
    is_inside = make.op(
        "And", make.compare("GreaterOrEqual", read, make.int64s(0)), make.compare("Less", element, length)
    )
    return make.where(make.op("And", is_element, is_inside), element, length)


def _product(layer: WeightedWindow, make: NodeBuilder, x: Value, kernel: Value) -> Value:
    """The product of windows [N, C, places, taps, places, taps ..] and a kernel [groups, maps, channels and taps]."""
    axes, groups = len(layer.window), layer.num_groups
    places, taps = [2 + 2 * axis for axis in range(axes)], [3 + 2 * axis for axis in range(axes)]
    lengths = [make.shape(x, axis, axis + 1) for axis in places]
    batch = make.shape(x, 0, 1)
    count = make.op("ReduceProd", make.concat(lengths, 0), keepdims=1)
    columns = make.transpose(x, [0, 1, *taps, *places])
    inner = make.shape(kernel, 2, 3)
    columns = make.reshape(columns, make.concat([batch, make.int64s(groups), inner, count], 0))
    product = make.op("MatMul", kernel, columns)
    return make.reshape(product, make.concat([batch, make.int64s(layer.num_output_maps), *lengths], 0))
