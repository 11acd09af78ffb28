"""Fourier transforms of onnxruntime, which has no kernels for them on CPUs."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, floats
from tests.support.onnx_models import of_node, runs

X = floats(2, 3, 4, 6)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_transforms_of_real_numbers_are_those_of_numpy(count):
    axes = range(4 - count, 4)
    spectrum = np.fft.rfftn(X, axes=axes)
    pairs = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
    (found,), (back,) = (
        runs(*of_node(op, x, signal_ndim=count, **MICROSOFT)) for op, x in (("Rfft", X), ("Irfft", pairs))
    )

    np.testing.assert_allclose(found, pairs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(back, X, rtol=1e-4, atol=1e-5)
