import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


A, X = (DRAW.uniform(0.05, 9, 12).astype(np.float32) for _ in range(2))


def test_incomplete_gamma_functions():
    check_same(lambda a, x: (lax.igamma(a, x), lax.igammac(a, x)), A, X, rtol=3e-4, atol=1e-5)


@pytest.mark.slow
def test_derivative_of_the_incomplete_gamma_function_by_its_parameter():
    check_same(jax.grad(lambda a, x: jnp.sum(lax.igamma(a, x))), A, X, rtol=1e-3, atol=1e-5)


def test_incomplete_beta_function():
    check_same(lambda a, x: lax.betainc(a, x, x / 9), A, X, rtol=1e-3, atol=1e-5)


def test_zeta_function():
    check_same(lambda a, x: lax.zeta(a + 1.1, x), A, X, rtol=1e-4)


def test_derivatives_of_the_gamma_function():
    check_same(lambda x: lax.polygamma(jnp.float32([0, 1, 2, 3] * 3), x), X, rtol=1e-4)


def test_bessel_functions():
    check_same(lambda x: (lax.bessel_i0e(x), lax.bessel_i1e(x)), np.float32([0, -3, 7.9, 8.1, 100]))
