"""Tests on a CPU as if it were a GPU: its passes, its forms, and its rounding. A plugin of pytest.

    python -m pytest -p tests.gpu.as_if tests/model/layers

XLA's quotients and roots of float32 are off by an ulp or two on NVIDIA GPUs (``div.full``, ``sqrt.approx``): here all
of them are too large by one. A test that fails so may also have met a fault of XLA's CPU, which forms for CPUs avoid;
or a division by a constant, which XLA makes a product on each device.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.interpreters import mlir
from jax.lax import platform_dependent

from netloop.compiler.lower.loop.kernel import triton
from tests.support import quick_programs

ROUNDED = lax.div_p, lax.sqrt_p, lax.rsqrt_p


def pytest_configure() -> None:
    """Name another backend before test files are imported, whose marks look at it."""
    quick_programs.known_options()  # those of the real one
    jax.default_backend = lambda: "gpu"
    lax.platform_dependent = form_of_gpu
    # but no kernel of a GPU runs here: JAX's interpreter of kernels does
    triton.platform_dependent = platform_dependent
    for primitive in ROUNDED:
        entry: Any = mlir._lowerings[primitive]
        mlir.register_lowering(primitive, off_by_one(getattr(entry, "rule", entry)), platform="cpu")


def form_of_gpu(*arguments: Any, default: Callable[..., Any] | None = None, **forms: Callable[..., Any]) -> Any:
    """``lax.platform_dependent``, for a GPU."""
    form = forms.get("cuda", default)
    assert form is not None
    return form(*arguments)


def off_by_one(lower: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering of a primitive whose results of float32 are the next larger numbers."""

    def lowered(ctx: Any, *operands: Any, **parameters: Any) -> Any:
        results = lower(ctx, *operands, **parameters)
        (aval,) = ctx.avals_out
        if aval.dtype != np.float32:
            return results
        return mlir.lower_fun(next_larger, multiple_results=False)(ctx.replace(avals_in=[aval]), *results)

    return lowered


def next_larger(x: Any) -> Any:
    """The numbers of float32 whose sizes are larger by an ulp; zeros, infinities and NaN as they are."""
    larger = lax.bitcast_convert_type(lax.bitcast_convert_type(x, np.int32) + 1, np.float32)
    return jnp.where((x == 0) | ~jnp.isfinite(x), x, larger)
