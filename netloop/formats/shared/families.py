"""Operator families: the subjects that name the files of every importer and exporter.

An operator is in the file of its family, or in the folder of this name, whatever the format and the direction. A
family with layers of its own has the name of their file in ``netloop/model/layers/``.
"""

LAYER_FAMILIES = (
    "affine", "attention", "bits", "cache", "collective", "convolution", "detection", "experts", "fourier", "gather",
    "grid_sample", "image", "maps", "matrix", "normalization", "padding", "plugin", "pointwise", "pooling", "quantize",
    "rearrange", "reduce", "resample", "rotary", "sequence", "slice", "sources", "strings",
)  # fmt: skip
"""Families of layers with operators of the same meaning."""

COMPOSITE_FAMILIES = (
    "control", "ctc", "embedding", "linear_algebra", "ngrams", "random", "recurrent", "scan", "search",
    "special_functions", "state", "training",
)  # fmt: skip
"""Families of operators that become several layers, loops or conditionals."""

FAMILIES = frozenset(LAYER_FAMILIES + COMPOSITE_FAMILIES)
