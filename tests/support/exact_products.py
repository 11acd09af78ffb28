"""Float32 products without rounding, which tests of numbers ask for on every device.

The tests say what a network means, to the last bits of float32; GPUs and TPUs round the operands of products by
default. What they make of that has tests of its own, which set JAX's precision themselves.
"""

import os
from functools import cache

import jax

VARIABLE = "JAX_DEFAULT_MATMUL_PRECISION"
"""The precision in processes that tests start."""


@cache
def ask_for_exact_products() -> None:
    """Set JAX to full float32 products in all threads, unless the run sets a precision or the device is a CPU."""
    if VARIABLE not in os.environ and jax.default_backend() != "cpu":
        os.environ[VARIABLE] = "highest"
        jax.config.update("jax_default_matmul_precision", "highest")
