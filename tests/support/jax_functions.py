"""The law of ``from_jax``: a network computes what its JAX function does."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import netloop as trt


def leaves(values: Any) -> list[Any]:
    """The arrays of a pytree; random keys as their words."""
    made: list[Any] = []
    for leaf in jax.tree.leaves(values):
        is_key = jax.dtypes.issubdtype(getattr(leaf, "dtype", np.float32), jax.dtypes.prng_key)
        made.append(np.asarray(jax.random.key_data(leaf) if is_key else jax.numpy.asarray(leaf)))
    return made


def check_same(
    function: Callable[..., Any], *examples: Any, rtol: float = 2e-5, atol: float = 1e-6, **given: Any
) -> Any:
    """Check that the network of a function agrees with it, in the reference and compiled; return the network."""
    network = trt.from_jax(function, *examples, **given)
    arrays = dict(zip((tensor.name for tensor in network.inputs), leaves(examples), strict=True))
    want = leaves(jax.jit(function)(*examples))
    for results in (trt.compile(network)(arrays), trt.evaluate(network, arrays)):
        for tensor, right in zip(network.outputs, want, strict=True):
            got = np.asarray(results[tensor.name])
            assert got.dtype == right.dtype
            assert got.shape == right.shape
            if right.dtype.kind in "biu":
                np.testing.assert_array_equal(got, right)
            else:
                np.testing.assert_allclose(got.astype(np.float64), right.astype(np.float64), rtol=rtol, atol=atol)
    return network
