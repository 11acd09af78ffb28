import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


X = normal(3, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x[1:], x[::2], x[:, 1:3], x[1], x[::-1], x[:, -1], x[1:1]),
        lambda x: (
            jnp.pad(x, ((1, 2), (0, 1))),
            lax.pad(x, 2.0, ((1, -1, 2), (-1, 2, 0))),
            lax.pad(x, 0.0, ((0, 0, 1),) * 2),
        ),
        lambda x: (
            jnp.pad(x, 1, mode="edge"),
            jnp.pad(x, 1, mode="reflect"),
            jnp.pad(x, ((1, 1), (2, 0)), mode="wrap"),
        ),
        lambda x: jnp.roll(x, 1, 1),
    ],
)
def test_static_part(function):
    check_same(function, X)


@pytest.mark.parametrize("start", [-9, -1, 0, 1, 2, 9])
def test_dynamic_window_stays_within_bounds(start):
    def windows(x, at):
        return (
            lax.dynamic_slice(x, (at, at), (2, 2)),
            x[at % 3],
            lax.dynamic_slice_in_dim(x, at, 2, 1),
            jnp.roll(x, at, 1),
        )

    check_same(windows, X, np.int32(start))


@pytest.mark.parametrize("start", [-9, 0, 1, 9])
def test_dynamic_window_is_written_within_bounds(start):
    def written(x, at):
        both = lax.dynamic_update_slice(x, jnp.ones((2, 2)), (at, 1))
        return (
            both,
            lax.dynamic_update_slice_in_dim(x, jnp.ones((3, 2)), at, 1),
            lax.dynamic_update_slice(x, x * 2, (at, at)),
        )

    check_same(written, X, np.int32(start))


def test_windows_of_each_row():
    starts = np.int32([0, 3, 1])

    check_same(lambda x, at: jax.vmap(lambda row, i: lax.dynamic_slice(row, (i,), (2,)))(x, at), X, starts)
    check_same(
        lambda x, at: jax.vmap(lambda row, i: lax.dynamic_update_slice(row, row[:2] * 2, (i,)))(x, at), X, starts
    )
