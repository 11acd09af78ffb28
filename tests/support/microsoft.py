"""Nodes of onnxruntime's own domain."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.support.onnx_models import runs, session_gives

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
    return [np.float32(number) for number in numbers]


def as_constants(made, given, names):
    """Turn inputs of a model into initializers."""
    for name in names:
        made.graph.initializer.append(numpy_helper.from_array(given.pop(name), name))
    kept = [name for name in made.graph.input if name.name in given]
    del made.graph.input[:]
    made.graph.input.extend(kept)


def check_like_onnxruntime(made, given, rtol=1e-5, atol=1e-6):
    """Check that netloop computes a model like onnxruntime."""
    for found, expected in zip(runs(made, given), session_gives(made, given).values(), strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def slow(*values):
    """Parameters of a test that is marked ``slow``."""
    return pytest.param(*values, marks=pytest.mark.slow)
