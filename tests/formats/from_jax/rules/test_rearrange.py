import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


X, Y = normal(3, 4), normal(3, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x.reshape(2, 6), x.ravel(), x.reshape(3, 1, 4), x[None, :, None]),
        lambda x, y: (lax.reshape(x, (2, 6), (1, 0)), lax.reshape(x[:3, :3], (3, 3), (1, 0))),
        lambda x, y: (x.T, jnp.swapaxes(x[None], 0, 2), jnp.moveaxis(x[None], 2, 0)),
        lambda x, y: (jnp.concatenate([x, y]), jnp.stack([x, y], 1), jnp.hstack([x, y])),
        lambda x, y: (jnp.broadcast_to(x, (2, 3, 4)), jnp.broadcast_to(x[:, :1], (3, 4))),
        lambda x, y: (jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 1), *jnp.split(x, 2, 1), *jnp.array_split(x, 2)),
        lambda x, y: (x[::-1], jnp.flip(x, (0, 1)), jnp.squeeze(x[None])),
        lambda x, y: (lax.broadcast_in_dim(y[0], (2, 4, 3), (1,)), jnp.zeros((2, 3)), jnp.full((30, 20), y[0, 0])),
        lambda x, y: (jnp.ones((3, 4)).T, jnp.ones((3, 4)).reshape(12), jnp.ones((3, 4))[1:, :2]),
    ],
)
def test_elements_move(function):
    check_same(function, X, Y)
