"""Normalizations of onnxruntime."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, floats
from tests.support.onnx_models import check_node

X, SKIP = floats(2, 3, 4), floats(2, 3, 4, seed=1)
SCALE, OFFSET, BIAS = floats(3, 4)


@pytest.mark.parametrize("inputs", [(OFFSET, BIAS), (OFFSET,), (None, BIAS), ()])
def test_skip_layer_normalization_is_that_of_onnxruntime(inputs):
    check_node("SkipLayerNormalization", X, SKIP, SCALE, *inputs, outputs=4, epsilon=0.01, **MICROSOFT)


@pytest.mark.parametrize("skip", [SKIP[:1], SKIP[0]])
def test_skip_of_a_batch_is_broadcast(skip):
    check_node("SkipLayerNormalization", X, skip, SCALE, OFFSET, open_lengths=True, **MICROSOFT)


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_halves_are_summed_in_float32(op):
    halves = [each.astype(np.float16) for each in (X, SKIP, SCALE, BIAS)]
    check_node(op, *halves, outputs=4, rtol=1e-3, atol=1e-3, **MICROSOFT)


@pytest.mark.parametrize("bias", [(), (BIAS,)])
def test_skip_simplified_layer_normalization_is_that_of_onnxruntime(bias):
    check_node("SkipSimplifiedLayerNormalization", X, SKIP, SCALE, *bias, outputs=4, **MICROSOFT)


@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified_layer_normalization_is_that_of_onnxruntime(axis):
    scale = floats(*X.shape[axis:])
    check_node("SimplifiedLayerNormalization", X, scale, outputs=2, axis=axis, epsilon=0.01)
