import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.examples import mostly_slow
from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)
LOOSE = {"rtol": 1e-3, "atol": 1e-4}
each_type = pytest.mark.parametrize("dtype", mostly_slow(1, [np.float32, np.complex64]))


def matrix(rows, columns, dtype=np.float32):
    made = DRAW.normal(size=(rows, columns, 2))
    return (made[..., 0] + 1j * made[..., 1]).astype(dtype) if dtype == np.complex64 else made[..., 0].astype(dtype)


def parts(results):
    """Results with complex numbers as pairs, as networks have them."""
    return [jnp.stack([result.real, result.imag], -1) if jnp.iscomplexobj(result) else result for result in results]


def check(function, *given):
    """Check a function of matrices, whose complex numbers are pairs for the network."""
    arrays = [np.stack([value.real, value.imag], -1) if np.iscomplexobj(value) else value for value in given]

    def of_parts(*arrays):
        joined = (
            lax.complex(array[..., 0], array[..., 1]) if np.iscomplexobj(one) else array
            for array, one in zip(arrays, given, strict=True)
        )
        return parts(jax.tree.leaves(function(*joined)))

    check_same(of_parts, *arrays, **LOOSE)


@pytest.mark.parametrize("mode", ["reduced", "complete", "raw"])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
def test_qr_has_the_signs_of_lapack(mode, shape):
    check(lambda a: jnp.linalg.qr(a, mode), matrix(*shape))


@pytest.mark.slow
def test_qr_of_complex_numbers():
    check(lambda a: jnp.linalg.qr(a), matrix(4, 3, np.complex64))


@pytest.mark.slow
def test_qr_of_a_batch():
    check(jnp.linalg.qr, np.stack([matrix(3, 2), np.zeros((3, 2), np.float32)]))


@each_type
def test_qr_takes_the_longest_columns_first(dtype):
    check(lambda a: lax.linalg.qr(a, pivoting=True, full_matrices=False), matrix(4, 3, dtype) * np.float32([1, 3, 2]))


@pytest.mark.skipif(not hasattr(lax.linalg, "ormqr"), reason="this JAX has no such function")
@each_type
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_product_with_reflections(left, transpose, dtype):
    a, taus = lax.linalg.geqrf(matrix(4, 2, dtype)) if hasattr(lax.linalg, "geqrf") else _geqrf(matrix(4, 2, dtype))
    other = matrix(4, 3, dtype) if left else matrix(3, 4, dtype)

    check(lambda a, t, c: lax.linalg.ormqr(a, t, c, left=left, transpose=transpose), *map(np.asarray, (a, taus, other)))


def _geqrf(a):
    raw, taus = jnp.linalg.qr(a, "raw")
    return raw.T, taus


@each_type
def test_hessenberg(dtype):
    check(lax.linalg.hessenberg, matrix(4, 4, dtype))


@each_type
@pytest.mark.parametrize("lower", [True, False])
def test_tridiagonal_form_of_a_triangle(lower, dtype):
    check(lambda a: lax.linalg.tridiagonal(a, lower=lower), matrix(4, 4, dtype))


def test_column_that_is_0_already_is_not_reflected():
    check(lax.linalg.hessenberg, np.diag(np.float32([2, -1, 3, 4])))


def test_rank_one_update_of_a_cholesky_factor():
    triangle = np.triu(matrix(3, 3)) + 3 * np.eye(3, dtype=np.float32)

    check(lax.linalg.cholesky_update, triangle, np.float32([1, 0, -2]))


def test_symmetric_product():
    check(lambda a, c: lax.linalg.symmetric_product(a, c, alpha=2.0, beta=-0.5), matrix(3, 2), np.ones((3, 3), "f"))
