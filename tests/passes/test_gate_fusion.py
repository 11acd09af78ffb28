"""Sigmoids are computed in their tanh form."""

import numpy as np
import pytest

from netloop.passes.gate_fusion import TANH_FORM_ERROR, FusedGatesLayer


@pytest.mark.parametrize("x", [-700.0, -20.0, -1.0, 0.0, 0.5, 30.0, 1e4])
def test_sigmoid_in_tanh_form_is_within_its_error(x):
    x = np.float32(x)
    exact = 1 / (1 + np.exp(-np.float64(x)))

    gate = FusedGatesLayer(axis=-1, sizes=[1], logistic=[1])

    assert abs(float(gate.lower(np.array([x]))[0]) - exact) <= TANH_FORM_ERROR
