"""Pooling of onnxruntime (com.microsoft)."""

import numpy as np

from netloop.formats.onnx.importer.operators.convolution import centred
from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.microsoft.quantize import (
    channels_first,
    channels_last,
    floats_of,
    quantized,
)
from netloop.formats.onnx.importer.operators.pooling import average_pool, max_pool
from netloop.formats.onnx.importer.operators.quantize import to_type
from netloop.model.graph.tensor import ITensor


@microsoft("QLinearGlobalAveragePool")
def quantized_global_average_pool(
    call: NodeCall, x: ITensor, scale_of_x: ITensor, zero_of_x: ITensor, scale: ITensor, zero: ITensor
) -> ITensor:
    """Average over the spatial axes of a quantized image."""
    make, rank = call.make, x.type.rank
    axes = range(1, rank - 1) if call.attribute("channels_last") else range(2, rank)
    count = make.cast(make.tensor(make.product([make.length(x, axis) for axis in axes])), np.float32)
    total = make.cast(make.sum(centred(make, x, zero_of_x), axes, keep=True), np.float32)
    return to_type(make, make.mul(total, make.div(scale_of_x, make.mul(scale, count))), zero, x.type.dtype, True)


@microsoft("QLinearAveragePool")
def quantized_average_pool(
    call: NodeCall, x: ITensor, scale_of_x: ITensor, zero_of_x: Maybe, scale: ITensor, zero: Maybe = None
) -> ITensor:
    """Average of each window of a quantized image."""
    make, wide = call.make, floats_of(call.make, x, scale_of_x, zero_of_x)
    if call.attribute("channels_last"):
        tensor = channels_last(make, average_pool(call, channels_first(make, wide)))
    else:
        tensor = average_pool(call, wide)
    return quantized(make, tensor, scale, zero, x.type.dtype)


@microsoft("NhwcMaxPool")
def max_pool_of_channels_last(call: NodeCall, x: ITensor) -> ITensor:
    """Maximum of each window of an image whose channels are the last axis."""
    most, *_ = max_pool(call, channels_first(call.make, x))
    assert most is not None
    return channels_last(call.make, most)
