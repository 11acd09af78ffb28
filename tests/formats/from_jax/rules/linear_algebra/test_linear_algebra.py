"""Decompositions as loops: other runtimes compute them from a file, and they have derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from tests.support import onnx_runtime, openvino_runtime
from tests.support.examples import mostly_slow

A = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
A = A @ A.T + np.eye(4, dtype=np.float32)
COUNTED = {
    "cholesky": jnp.linalg.cholesky,
    "lu": lambda x: lax.linalg.lu(x)[0],
    "qr": lambda x: jnp.linalg.qr(x)[1],
    "solve": lambda x: jnp.linalg.solve(x, jnp.ones((4, 1), np.float32)),
}
"""Functions whose loops have a known number of iterations."""
UNTIL_SMALL = {"eigvalsh": jnp.linalg.eigvalsh, "svd": lambda x: jnp.linalg.svd(x, compute_uv=False)}
"""Functions whose loops end when what is left is small."""
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.parametrize("runtime", [onnx_runtime, openvino_runtime])
@pytest.mark.parametrize("name", [*COUNTED, *UNTIL_SMALL])
def test_other_runtimes_compute_it_from_a_file(name, runtime):
    function = (COUNTED | UNTIL_SMALL)[name]
    network = trt.from_jax(function, A, names=["x"])

    results = runtime.run(runtime.export(network), {"x": A})

    np.testing.assert_allclose(results["output"], function(A), **CLOSE)


@pytest.mark.parametrize("name", mostly_slow(1, COUNTED))
def test_function_of_its_network_has_derivatives(name):
    function = COUNTED[name]
    restored, weights = trt.to_jax(trt.from_jax(function, A, names=["x"]))

    slopes = jax.grad(lambda x: jnp.sum(restored(weights, {"x": x})["output"] ** 2))(A)

    np.testing.assert_allclose(slopes, jax.grad(lambda x: jnp.sum(function(x) ** 2))(A), **CLOSE)
