"""Normalization of onnxruntime (com.microsoft)."""

from functools import reduce

from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import microsoft
from netloop.onnx.importer.operators.normalization import layer_normalization, simplified_layer_normalization, wide_of


@microsoft("SkipLayerNormalization")
def skip_layer_normalization(
    call: Call,
    x: ITensor,
    skip: ITensor,
    scale: ITensor,
    offset: ITensor | None = None,
    bias: ITensor | None = None,
) -> list[ITensor | None]:
    """Layer normalization of the sum of two tensors and a bias; also the mean, inverse deviation and sum."""
    make, total = call.make, _total(call, x, skip, bias)
    offset = None if offset is None else wide_of(make, offset)
    normal, *moments = layer_normalization(call, total, wide_of(make, scale), offset)
    return [make.cast(normal, x.type.dtype), *(moments or (None, None)), make.cast(total, x.type.dtype)]


@microsoft("SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(
    call: Call, x: ITensor, skip: ITensor, scale: ITensor, bias: ITensor | None = None
) -> list[ITensor | None]:
    """RMS normalization of the sum of two tensors and a bias; also the inverse root mean square and the sum."""
    make, total = call.make, _total(call, x, skip, bias)
    normal, inverse = simplified_layer_normalization(call, total, wide_of(make, scale))
    mean = make.sub(inverse, inverse) if call.wants(1) else None  # onnxruntime has zeros there
    return [make.cast(normal, x.type.dtype), mean, inverse, make.cast(total, x.type.dtype)]


def _total(call: Call, *terms: ITensor | None) -> ITensor:
    """The sum of the terms that are there; of half types in float32."""
    return reduce(call.make.add, (wide_of(call.make, each) for each in terms if each is not None))
