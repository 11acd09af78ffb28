"""The device of the tests, and what its numbers may be off by.

A test holds on every device. Where a number depends on the device, the tolerance is that of the device; forms and
faults of one kind of device are tested there only.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

EPSILONS = {np.dtype(np.float32): 100, np.dtype(np.float64): 100, np.dtype(np.float16): 4, np.dtype(jnp.bfloat16): 4}
"""The number of epsilons by which results of a type may differ from those of a CPU; those of half types are rounded."""


def on_cpu() -> bool:
    """Whether programs run on CPUs."""
    return jax.default_backend() == "cpu"


def only_on_cpus(reason: str) -> pytest.MarkDecorator:
    """A test of what XLA's CPU does, or of forms that only CPUs get; ``reason`` says which."""
    return pytest.mark.skipif(not on_cpu(), reason=f"only on CPUs: {reason}")


def tolerance(rtol: float, dtype: Any = np.float32) -> float:
    """The relative tolerance of results of an element type on this device, where ``rtol`` is that on CPUs.

    GPUs and TPUs add in another order, round products and sums once (fused multiply-add), and their square roots,
    quotients and exponentials are off by an ulp or two each. What has to be exact, by a tolerance of 0, is so there.
    """
    if on_cpu() or rtol == 0 or np.dtype(dtype) not in EPSILONS:
        return rtol
    return max(rtol, EPSILONS[np.dtype(dtype)] * float(jnp.finfo(dtype).eps))


def assert_allclose(got: Any, wanted: Any, rtol: float = 1e-7, atol: float = 0, **options: Any) -> None:
    """``numpy.testing.assert_allclose`` for numbers that a device has computed, with its tolerance."""
    dtype = getattr(got, "dtype", np.float32)  # Python's numbers are mostly those of float32 results
    np.testing.assert_allclose(got, wanted, rtol=tolerance(rtol, dtype), atol=tolerance(atol, dtype), **options)
