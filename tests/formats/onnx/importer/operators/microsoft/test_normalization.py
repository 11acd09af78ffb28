"""Normalizations of onnxruntime."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, floats
from tests.support.onnx_models import check_node, of_node, runs

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
    halves = [array.astype(np.float16) for array in (X, SKIP, SCALE, BIAS)]
    check_node(op, *halves, outputs=4, rtol=1e-3, atol=1e-3, **MICROSOFT)


@pytest.mark.parametrize("bias", [(), (BIAS,)])
def test_skip_simplified_layer_normalization_is_that_of_onnxruntime(bias):
    check_node("SkipSimplifiedLayerNormalization", X, SKIP, SCALE, *bias, outputs=4, **MICROSOFT)


@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified_layer_normalization_is_that_of_onnxruntime(axis):
    scale = floats(*X.shape[axis:])
    check_node("SimplifiedLayerNormalization", X, scale, outputs=2, axis=axis, epsilon=0.01)


# ---------------------------------------------------------------------------- groups: onnxruntime has no kernel on CPUs

IMAGE, FACTORS = floats(2, 3, 5, 4), floats(2, 4)


def group_normal(x, activation):
    groups = x.reshape(2, 15, 2, 2)
    mean, variance = (overload(groups, axis=(1, 3), keepdims=True) for overload in (np.mean, np.var))
    normal = ((groups - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * FACTORS[0] + FACTORS[1]
    return normal / (1 + np.exp(-normal)) if activation else normal


@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_groups_of_channels_are_normalized(last, activation):
    x = IMAGE if last else np.moveaxis(IMAGE, -1, 1)
    made = of_node("GroupNorm", x, *FACTORS, activation=activation, groups=2, channels_last=last, **MICROSOFT)
    (found,) = runs(*made)

    expected = group_normal(IMAGE, activation)
    np.testing.assert_allclose(found if last else np.moveaxis(found, 1, -1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("skip", [floats(2, 3, 5, 4, seed=1), floats(2, 4)], ids=["image", "channels"])
def test_groups_of_a_sum_are_normalized(skip):
    bias = floats(4)
    made = of_node("SkipGroupNorm", IMAGE, *FACTORS, skip, bias, outputs=2, activation=1, groups=2, **MICROSOFT)
    found, total = runs(*made)
    expected = IMAGE + (skip if skip.ndim == 4 else skip[:, None, None]) + bias

    np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, group_normal(expected, 1), rtol=1e-4, atol=1e-5)
