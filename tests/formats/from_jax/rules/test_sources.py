import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


X = normal(3, 4)


def test_places_along_axes():
    check_same(lambda x: (x + jnp.arange(4), jnp.eye(3) @ x, jnp.linspace(0, 1, 4) + x, jnp.tril(x), jnp.triu(x, 1)), X)


def test_places_alone():
    check_same(lambda x: (lax.broadcasted_iota(np.int32, (2, 3), 1), lax.iota(np.uint8, 5), jnp.arange(500.0)), X)
