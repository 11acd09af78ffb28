import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy.linalg import solve_triangular

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


SQUARE = normal(3, 3) + 3 * np.eye(3, dtype=np.float32)
LOOSE = {"rtol": 1e-3, "atol": 1e-4}


def test_cholesky():
    check_same(jnp.linalg.cholesky, SQUARE @ SQUARE.T, **LOOSE)


def test_solutions():
    def solved(a, b):
        return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a)

    check_same(solved, SQUARE, normal(3), **LOOSE)


@pytest.mark.slow
def test_solutions_of_a_batch():
    check_same(jnp.linalg.solve, normal(2, 3, 3) + 2 * np.eye(3, dtype=np.float32), normal(2, 3, 1), **LOOSE)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)])
def test_lu(shape):
    check_same(jax.lax.linalg.lu, normal(*shape), **LOOSE)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("left_side", [False, True])
def test_triangle(lower, trans, left_side):
    def solved(a, b):
        return lax.linalg.triangular_solve(a, b, left_side=left_side, lower=lower, transpose_a=bool(trans))

    check_same(solved, SQUARE, normal(3, 3), **LOOSE)


def test_tridiagonal_equations():
    diagonals = normal(3, 5)
    diagonals[1] += 4

    check_same(lambda d, b: lax.linalg.tridiagonal_solve(*d, b), diagonals, normal(5, 2), **LOOSE)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_matrices_without_elements(shape):
    def function(x):
        right = jnp.ones((*x.shape[:-1], 2), x.dtype)
        inverses = jnp.linalg.inv(x), jnp.linalg.cholesky(x), jnp.linalg.solve(x, right), jnp.linalg.det(x)
        return *inverses, jnp.linalg.eigvals(x).real, solve_triangular(x, right)

    check_same(function, np.zeros(shape, np.float32))


@pytest.mark.parametrize("shape", [(3, 0), (0, 3)])
def test_triangles_of_matrices_without_elements(shape):
    check_same(lax.linalg.lu, np.zeros(shape, np.float32))
