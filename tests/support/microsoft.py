"""Nodes of onnxruntime's own domain."""

import numpy as np
from onnx import numpy_helper

MICROSOFT = {"domain": "com.microsoft", "opset": 1}
"""The domain and version of ``check_node``."""


def floats(*shape, seed=0):
    """Random float32 numbers."""
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def bytes_of(*shape, dtype=np.uint8, seed=0, most=None):
    """Random integers, of the whole range of their type or up to ±``most``."""
    limits = np.iinfo(dtype)
    least, most = (limits.min, limits.max) if most is None else (max(-most, limits.min), most)
    return np.random.default_rng([seed, *shape]).integers(least, most, shape, dtype, endpoint=True)


def scalars(*numbers):
    """Float32 scalars."""
    return [np.float32(each) for each in numbers]


def weights_as_constants(made, given):
    """Turn all inputs of a model but the first into initializers."""
    for name in list(given)[1:]:
        made.graph.initializer.append(numpy_helper.from_array(given.pop(name), name))
    del made.graph.input[1:]
