"""Element-wise functions of onnxruntime."""

import math

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, floats
from tests.support.onnx_models import check_node, of_node, runs

X, BIAS = 3 * floats(2, 3, 4), floats(4)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Gelu", (X,), {}),
        ("BiasGelu", (X, BIAS), {}),
        ("FastGelu", (X,), {}),
        ("FastGelu", (X, BIAS), {}),
        ("QuickGelu", (X,), {}),
        ("QuickGelu", (X,), {"alpha": -0.5}),
    ],
)
def test_function_is_that_of_onnxruntime(op, inputs, attributes):
    check_node(op, *inputs, open_lengths=True, **attributes, **MICROSOFT)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def computed(op, *inputs):
    """The output of netloop, for operators that onnxruntime has no kernel for on CPUs."""
    (found,) = runs(*of_node(op, *inputs, **MICROSOFT))
    return found


def test_bias_split_gelu_multiplies_one_half_by_gelu_of_the_other():
    left, right = np.split(X + BIAS, 2, -1)

    np.testing.assert_allclose(computed("BiasSplitGelu", X, BIAS), left * gelu(right), rtol=1e-4, atol=1e-6)


def test_bias_add_adds_three_tensors():
    np.testing.assert_allclose(computed("BiasAdd", X, BIAS, X), 2 * X + BIAS, rtol=1e-6)


@pytest.mark.parametrize("axis", [1, 2])
def test_bias_softmax_is_over_all_axes_from_one_on(axis):
    made, given = of_node("BiasSoftmax", X, BIAS, axis=axis, is_inner_broadcast=1, **MICROSOFT)
    terms, axes = np.exp(X + BIAS), tuple(range(axis, 3))

    np.testing.assert_allclose(runs(made, given)[0], terms / terms.sum(axes, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("op", ["ComplexMul", "ComplexMulConj"])
def test_pairs_are_multiplied_as_complex_numbers(op):
    a, b = floats(3, 2), floats(1, 2)
    first, second = (array[:, 0] + 1j * array[:, 1] for array in (a, b))
    product = first * (second.conj() if op.endswith("Conj") else second)

    np.testing.assert_allclose(computed(op, a, b), np.stack([product.real, product.imag], -1), rtol=1e-5)


@pytest.mark.parametrize(
    ("numbers", "options", "finite"),
    [
        ([1.0, -2.0], {}, True),
        ([1.0, np.inf], {}, False),
        ([1.0, np.nan], {}, False),
        ([1.0, np.inf], {"isnan_only": 1}, True),
        ([1.0, np.nan], {"isinf_only": 1}, True),
        ([1.0, -np.inf], {"isinf_only": 1}, False),
    ],
)
def test_numbers_that_are_not_finite_are_found_as_the_schema_says(numbers, options, finite):
    # onnxruntime has a kernel in builds for training only
    (found,) = runs(*of_node("IsAllFinite", np.ones((2, 3), np.float32), np.float32(numbers), **options, **MICROSOFT))

    assert found.tolist() == [finite]
