import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


EVERYWHERE = np.float32([-4, -2.5, -0.3, 1e-6, 0.7, 3, 9, 60])


@pytest.mark.parametrize("name", ["erfc", "expm1", "lgamma", "digamma", "cbrt"])
def test_function_of_numbers(name):
    check_same(getattr(lax, name), EVERYWHERE, rtol=1e-4)


def test_logarithm_of_one_more():
    check_same(lax.log1p, np.float32([-0.9, -1e-7, 0, 1e-8, 0.3, 7, 1e30, np.inf]))


def test_inverse_of_erf():
    check_same(lax.erf_inv, np.float32([-1, -0.9999999, -0.99, -0.2, 0, 1e-6, 0.7, 0.9999, 1]))


def test_inverse_of_erf_in_float64():
    with jax.enable_x64(True):
        check_same(lax.erf_inv, np.float64([-0.99, -0.2, 0, 0.7, 0.9999]), rtol=1e-13)


@pytest.mark.parametrize("method", [*lax.RoundingMethod])
def test_rounding(method):
    check_same(lambda x: lax.round(x, method), np.float32([0.5, -0.5, 1.5, 2.49, 0.49999997, -2.5, 8388609.0]))


def test_angle_in_every_direction():
    numbers = np.float32([0, -0.0, 1, -1, np.inf, -np.inf, 2])

    check_same(lambda x: lax.atan2(*jnp.meshgrid(x, x)), numbers)
