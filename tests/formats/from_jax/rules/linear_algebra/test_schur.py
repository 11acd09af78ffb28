from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.formats.from_jax.rules.linear_algebra.schur import eig, schur
from tests.formats.from_jax.rules.linear_algebra.test_eigenvalues import adjoint, assert_small, normal
from tests.support.examples import mostly_slow
from tests.support.jax_functions import check_same

LOOSE = {"rtol": 1e-3, "atol": 1e-4}


def hard_cases(dtype, size):
    """A batch: random, a triangle, a cycle, the identity, zeros, a defective and a huge matrix."""
    some = normal(dtype, size, size)
    cycle, defective = np.roll(np.eye(size), 1, 0), np.eye(size) + np.eye(size, k=1)
    made = [some, np.triu(some), cycle, np.eye(size), np.zeros((size, size)), defective, 1e20 * some]
    return np.stack(made).astype(dtype)


@pytest.mark.parametrize("size", [1, 5])
def test_schur_form(size):
    given = hard_cases(np.complex64, size)

    triangle, basis = map(np.asarray, jax.jit(partial(schur, compute_schur_vectors=True))(given))

    assert_small(basis @ triangle @ adjoint(basis) - given, given)
    assert_small(adjoint(basis) @ basis - np.eye(size), np.ones_like(given))
    np.testing.assert_array_equal(np.tril(triangle, -1), 0)


@pytest.mark.parametrize(("size", "dtype"), mostly_slow(2, [(1, np.complex64), (2, np.float32), (5, np.complex64)]))
def test_eigenvectors_on_both_sides(size, dtype):
    given = hard_cases(dtype, size)
    both = {"compute_left_eigenvectors": True, "compute_right_eigenvectors": True}

    values, left, right = map(np.asarray, jax.jit(partial(eig, **both))(given))

    assert_small(given @ right - right * values[:, None], given)
    assert_small(adjoint(left) @ given - values[..., None] * adjoint(left), given)
    for array in (left, right):
        np.testing.assert_allclose(np.linalg.norm(array, axis=-2), 1, rtol=1e-5)


def test_real_eigenvalues_of_real_numbers_have_no_imaginary_part():
    made = normal(np.float32, 4, 4)

    values = np.asarray(eig(made @ made.T, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0])

    np.testing.assert_array_equal(values.imag, 0)


@pytest.mark.slow
def test_network_of_eigenvalues():
    def function(x):
        values = jnp.linalg.eigvals(x)
        return jnp.sort(abs(values)), jnp.sum(values * values).real

    check_same(function, normal(np.float32, 4, 4), **LOOSE)


@pytest.mark.slow
def test_roots_of_a_polynomial():
    check_same(lambda p: jnp.sort(jnp.roots(p, strip_zeros=False).real), np.float32([1, -6, 11, -6]), **LOOSE)


@pytest.mark.slow
def test_square_root_of_a_matrix():
    def function(x):
        root = jax.scipy.linalg.sqrtm(x)
        return (root @ root).real

    made = normal(np.float32, 3, 3)
    check_same(function, made @ made.T + np.eye(3, dtype=np.float32), **LOOSE)


def test_schur_form_of_real_numbers_is_refused_with_a_way_out():
    with pytest.raises(trt.ModelError, match="the Schur form of real numbers") as raised:
        trt.from_jax(lambda x: jax.scipy.linalg.schur(x)[0], np.eye(2, dtype=np.float32))

    assert raised.value.findings[0].fix == "compute the complex one, jax.scipy.linalg.schur(a, output='complex')"
