"""The exporters, a file a family; importing them enters them."""

from netloop.onnx.save.layers import (
    affine,
    attention,
    cache,
    collective,
    detection,
    experts,
    gather,
    matrix,
    normalization,
    pointwise,
    quantize,
    rearrange,
    reduce,
    resample,
    slice,
    sources,
    window,
)

FAMILIES = (
    affine,
    attention,
    cache,
    collective,
    detection,
    experts,
    gather,
    matrix,
    normalization,
    pointwise,
    quantize,
    rearrange,
    reduce,
    resample,
    slice,
    sources,
    window,
)
"""The modules whose exporters are in the table."""
