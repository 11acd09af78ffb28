"""Normalization of onnxruntime (com.microsoft)."""

from functools import reduce

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.microsoft.quantize import channels_first, channels_last
from netloop.formats.onnx.importer.operators.normalization import (
    group_normalized,
    layer_normalization,
    simplified_layer_normalization,
    wide_of,
)
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType


@microsoft("SkipLayerNormalization")
def skip_layer_normalization(
    call: NodeCall, x: ITensor, skip: ITensor, scale: ITensor, offset: Maybe = None, bias: Maybe = None
) -> list[Maybe]:
    """Layer normalization of the sum of two tensors and a bias; also the mean, inverse deviation and sum."""
    make, total = call.make, _total(call, x, skip, bias)
    offset = None if offset is None else wide_of(make, offset)
    normal, *moments = layer_normalization(call, total, wide_of(make, scale), offset)
    return [make.cast(normal, x.type.dtype), *(moments or (None, None)), make.cast(total, x.type.dtype)]


@microsoft("SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(
    call: NodeCall, x: ITensor, skip: ITensor, scale: ITensor, bias: Maybe = None
) -> list[Maybe]:
    """RMS normalization of the sum of two tensors and a bias; also the inverse root mean square and the sum."""
    make, total = call.make, _total(call, x, skip, bias)
    normal, inverse = simplified_layer_normalization(call, total, wide_of(make, scale))
    mean = make.sub(inverse, inverse) if call.wants(1) else None  # onnxruntime has zeros there
    return [make.cast(normal, x.type.dtype), mean, inverse, make.cast(total, x.type.dtype)]


def _total(call: NodeCall, *terms: Maybe) -> ITensor:
    """The sum of the terms that are there; of half types in float32."""
    return reduce(call.make.add, (wide_of(call.make, term) for term in terms if term is not None))


@microsoft("GroupNorm")
def group_norm(call: NodeCall, x: ITensor, scale: ITensor, offset: ITensor) -> ITensor:
    """Normalization of groups of channels, the last axis by default, and a SiLU if ``activation`` is 1."""
    return _group_norm(call, wide_of(call.make, x), scale, offset, x)


@microsoft("SkipGroupNorm")
def skip_group_norm(
    call: NodeCall, x: ITensor, scale: ITensor, offset: ITensor, skip: ITensor, bias: Maybe = None
) -> list[ITensor]:
    """``GroupNorm`` of the sum of two images and a bias for each channel, and the sum."""
    make = call.make
    require(call.attribute("channels_last") == 1, "channels_last is 0, but must be 1")
    if skip.type.rank == 2:
        skip = make.expand_dims(skip, [1, 2])
    total = _total(call, x, skip, bias)
    return [_group_norm(call, total, scale, offset, x), make.cast(total, x.type.dtype)]


def _group_norm(call: NodeCall, wide: ITensor, scale: ITensor, offset: ITensor, like: ITensor) -> ITensor:
    make, last = call.make, call.flag("channels_last")
    image = channels_first(make, wide) if last else wide
    scale, offset = wide_of(make, scale), wide_of(make, offset)
    normal = group_normalized(call, image, scale, offset, call.attribute("groups"))
    if call.attribute("activation"):
        normal = make.mul(normal, make.activation(ActivationType.SIGMOID, normal))
    return make.cast(channels_last(make, normal) if last else normal, like.type.dtype)
