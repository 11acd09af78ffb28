import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


IMAGE = normal(2, 3, 7, 8)


def maximum(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "SAME")


def total(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 2, 2), "SAME")


def minimum(x):
    return lax.reduce_window(x, jnp.inf, lax.min, (1, 1, 2, 2), (1, 1, 2, 1), "VALID")


@pytest.mark.parametrize("function", [maximum, total, minimum])
def test_windows_of_images_are_poolings(function):
    network = check_same(function, IMAGE)

    assert "IPoolingLayer" in [type(layer).__name__ for layer in network.layers]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        lambda x: lax.reduce_window(x[0, 0], 0.0, lax.add, (2, 3), (1, 2), ((0, 1), (1, 1)), (1, 1), (2, 1)),
        lambda x: lax.reduce_window(x[0, 0], 1.0, lax.mul, (2, 2), (1, 1), "SAME"),
        lambda x: lax.reduce_window(x[0, 0], 0.0, lax.add, (2, 2), (1, 1), "SAME", (2, 1)),
        lambda x: lax.reduce_window(x[0, 0] > 0, False, lax.bitwise_or, (2, 2), (1, 1), "VALID"),
    ],
)
def test_other_windows(function):
    check_same(function, IMAGE)


@pytest.mark.parametrize("function", [maximum, total, minimum])
def test_gradient(function):
    check_same(jax.grad(lambda x: (function(x) ** 2).sum()), IMAGE, rtol=1e-4)


def test_tangent():
    check_same(lambda x: jax.jvp(maximum, (x,), (x * 2,)), IMAGE)
