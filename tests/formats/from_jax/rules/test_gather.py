import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


X = normal(3, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: (x[n], x[:, n], jnp.take(x, n, 0), x[n, n], x[n[:, None], n], x[n, None, n]),
        lambda x, n: (
            jnp.take(x, n, 1, mode="clip"),
            jnp.take(x, n, 0, mode="fill"),
            jnp.take(x, 9 * n, 0, mode="wrap"),
        ),
        lambda x, n: (x.at[5 * n].get(mode="fill", fill_value=7), x.at[5 * n].get(mode="clip"), x[:, None][n]),
        lambda x, n: jnp.take((4 * x).astype(np.int32), 5 * n, 1, mode="fill"),
        lambda x, n: jnp.take(x > 0, 5 * n, 1, mode="fill"),
    ],
)
def test_indices_read(function):
    check_same(function, X, np.int32([0, 2, -1]))


def test_index_along_an_axis_reads_element_by_element():
    at = DRAW.integers(0, 3, (3, 4)).astype(np.int32)

    network = check_same(lambda x, n: jnp.take_along_axis(x, n, 0, mode="promise_in_bounds"), X, at)
    check_same(lambda x, n: jnp.take_along_axis(x, n[:, :1], 1), X, at)

    assert "IGatherLayer" in [type(layer).__name__ for layer in network.layers]


def test_index_of_each_row_under_vmap():
    check_same(lambda x, n: jax.vmap(lambda row, i: row[i])(x, n), X, np.int32([0, 3, 1]))


WRITES = ["set", "add", "multiply", "min", "max", "subtract"]


@pytest.mark.parametrize(
    ("write", "at"),
    [
        *(("set", at) for at in ([1], [2])),  # the index is an input, and the networks of all numbers are alike
        *((write, [0, 2, 9, -8]) for write in WRITES),
        *(pytest.param(write, [-7], marks=pytest.mark.slow) for write in WRITES),
    ],
)
def test_updates_out_of_bounds_are_dropped(write, at):
    def written(x, n):
        return [getattr(value, write)(2.0) for value in (x.at[n], x.at[:, n], x.at[n, n], x.at[1, n])]

    check_same(written, X, np.int32(at))


def test_updates_are_moved_within_bounds():
    check_same(lambda x, n: (x.at[n].set(5.0, mode="clip"), x.at[:, n].add(5.0, mode="clip")), X, np.int32([-9]))


def test_static_updates():
    check_same(
        lambda x: (x.at[1:3, ::2].set(0.0), x.at[::2].add(1.0), x.at[1:, 2].mul(3.0), (x > 0).at[1].set(True)), X
    )


def test_updates_of_each_row_under_vmap():
    check_same(lambda x, n: jax.vmap(lambda row, i: row.at[i].set(0.0))(x, n), X, np.int32([0, 3, 1]))


def test_counts_and_sums_of_segments():
    at = np.int32([0, 2, 2])

    check_same(lambda x, n: (jax.ops.segment_sum(x, n, 5), jnp.bincount(n, length=5), jax.nn.one_hot(n, 4)), X, at)


def test_gradient_of_a_gather_is_a_scatter():
    check_same(lambda x, n: jax.grad(lambda x: (x[n] ** 2).sum())(x), X, np.int32([0, 2, 2]))


def test_elements_along_an_axis_of_length_1():
    check_same(lambda x, i: jnp.take_along_axis(x, i, 0, mode="clip"), np.float32([[0, 1, 2]]), np.int32([[0, 0, 0]]))
    check_same(lambda x, i: jnp.take_along_axis(x, i, 0), np.float32([[0, 1, 2]]), np.int32([[0, -1, 5], [0, 0, 1]]))
