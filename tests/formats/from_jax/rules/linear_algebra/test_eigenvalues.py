from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from netloop.formats.from_jax.rules.linear_algebra.eigenvalues import eigh, svd
from tests.support.examples import mostly_slow
from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)
LOOSE = {"rtol": 1e-3, "atol": 1e-4}


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def normal(dtype, *shape):
    made = DRAW.normal(size=(*shape, 2))
    return (
        (made[..., 0] + 1j * made[..., 1]).astype(dtype) if np.dtype(dtype).kind == "c" else made[..., 0].astype(dtype)
    )


def hard_cases(dtype, rows, columns):
    """A batch: random, graded, with repeated values, without full rank, of zeros, of ones, tiny and huge matrices."""
    some = normal(dtype, rows, columns)
    left, _, right = np.linalg.svd(some, full_matrices=False)
    size = min(rows, columns)
    graded, repeated = np.logspace(0, -6, size), np.repeat([2, 1], [size - size // 2, size // 2])
    parts = [left * array @ right for array in (graded, repeated, repeated - 1)]
    plain = [np.zeros((rows, columns)), np.ones((rows, columns)), 1e-25 * some, 1e25 * some]
    return np.stack([some, *parts, *plain]).astype(dtype)


def assert_small(error, given, factor=100):
    """An error, in units of the rounding of the largest element of each matrix."""
    scale = np.abs(given).max((-1, -2), keepdims=True) * given.shape[-1]
    unit = np.finfo(given.dtype).eps * np.where(scale == 0, 1, scale)
    assert (np.abs(error) <= factor * unit).all()


@pytest.mark.parametrize(
    ("size", "dtype"), mostly_slow(2, [(1, np.float32), (5, np.complex64), (2, np.complex64), (5, np.float32)])
)
def test_eigenvectors_and_eigenvalues(size, dtype):
    given = hard_cases(dtype, size, size)
    given = (given + adjoint(given)) / 2

    vectors, values = map(np.asarray, jax.jit(partial(eigh, lower=True))(given))

    assert_small(values[:, None] - np.linalg.eigvalsh(given.astype(np.complex128))[:, None], given)
    assert_small(given @ vectors - vectors * values[:, None], given)
    assert_small(adjoint(vectors) @ vectors - np.eye(size), np.ones_like(given))
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize(
    ("shape", "dtype", "fulls"),
    mostly_slow(
        2,
        [
            ((1, 1), np.float32, [False]),
            ((4, 4), np.complex64, [True]),
            ((4, 4), np.float32, [False]),
            ((5, 3), np.float32, [False, True]),
            ((5, 3), np.complex64, [False, True]),
        ],
    ),
)
def test_singular_values_and_vectors(shape, dtype, fulls):
    given = hard_cases(dtype, *shape)

    for full in fulls:
        values, left, right = map(np.asarray, jax.jit(partial(svd, full_matrices=full, compute_uv=True))(given))
        size = values.shape[-1]

        assert_small(values[:, None] - np.linalg.svd(given.astype(np.complex128), compute_uv=False)[:, None], given)
        assert_small(left[..., :size] * values[:, None] @ right[:, :size] - given, given)
        for array in (left, adjoint(right)):
            assert_small(adjoint(array) @ array - np.eye(array.shape[-1]), np.ones((1, *shape), dtype))
        assert (np.diff(values) <= 0).all()


def symmetric(size):
    made = normal(np.float32, size, size)
    return made + made.T + np.diag(np.arange(size, dtype=np.float32) * 3)


def test_network_of_eigenvalues():
    def function(x):
        values, vectors = jnp.linalg.eigh(x)
        return values, (vectors * jnp.exp(-values)) @ vectors.T

    check_same(function, symmetric(4), **LOOSE)


def test_triangle_that_is_not_read_has_no_effect():
    check_same(
        lambda x: jax.lax.linalg.eigh(x, lower=False, symmetrize_input=False)[1], normal(np.float32, 3, 3), **LOOSE
    )


@pytest.mark.slow
def test_network_of_eigenvalues_of_complex_numbers():
    def function(a, b):
        return jnp.linalg.eigvalsh(jax.lax.complex(a, b))

    check_same(function, symmetric(3), normal(np.float32, 3, 3), **LOOSE)


@pytest.mark.slow
def test_what_numpy_makes_of_singular_values():
    def function(x):
        return jnp.linalg.pinv(x), jnp.linalg.cond(x), jnp.linalg.norm(x, 2), jnp.linalg.matrix_rank(x)

    check_same(function, normal(np.float32, 4, 3), **LOOSE)


def test_least_squares():
    check_same(lambda a, b: jnp.linalg.lstsq(a, b)[0], normal(np.float32, 5, 2), normal(np.float32, 5), **LOOSE)


def test_singular_values_of_matrices_without_elements():
    check_same(lambda x: jnp.linalg.svd(x), np.zeros((3, 0), np.float32))


@pytest.mark.slow
def test_gradients_are_those_of_jax():
    def function(x):
        return jnp.linalg.eigvalsh(x)[-1] + jnp.sum(jnp.linalg.svd(x, compute_uv=False) ** 3)

    check_same(jax.grad(function), symmetric(3), **LOOSE)
