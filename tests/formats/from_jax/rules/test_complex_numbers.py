import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop
from tests.support.examples import mostly_slow
from tests.support.jax_functions import check_same

PARTS = np.float32([[3, -4], [0, 2], [-1, 0], [3, -5], [0, 0], [-1e15, 1e15]])


def check(function, parts=PARTS, *others):
    """Check a function of complex numbers, given and returned as pairs."""

    def of_parts(parts, *others):
        made = function(lax.complex(parts[..., 0], parts[..., 1]), *others)
        return jnp.stack([made.real, made.imag], -1) if jnp.iscomplexobj(made) else made

    check_same(of_parts, parts, *others, rtol=1e-4, atol=1e-5)


def test_order_is_that_of_real_parts_and_then_of_imaginary_parts():
    check(jnp.sort)
    check(jnp.argsort)


def test_others_are_sorted_along_with_complex_keys():
    def function(x):
        keys, first, second = lax.sort((x, x.imag, x * 2), num_keys=1)
        return keys + first + second

    check(function)


def test_elements_at_places():
    check(lambda x: x.at[jnp.array([1, 9, 1])].add(2j, mode="drop").at[0].set(x[5]))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_convolution(padding):
    kernel = np.float32([[1, 2], [0, -1], [3, 0]])

    def function(x, kernel):
        return jnp.convolve(x, lax.complex(kernel[..., 0], kernel[..., 1]), mode=padding.lower())

    check(function, PARTS[:5], kernel)


def test_running_sum():
    check(jnp.cumsum)
    check(lambda x: lax.cumsum(x, reverse=True), PARTS[:5])


@pytest.mark.parametrize("function", [jnp.sqrt, lax.sign])
def test_function_of_each_number(function):
    check(function)


@pytest.mark.parametrize("function", [lax.rsqrt, jnp.sin, jnp.cos])
def test_function_of_each_small_number(function):
    check(function, PARTS[:4])


def test_gradient_of_a_function_of_complex_numbers():
    check_same(jax.grad(lambda x: jnp.sum(jnp.abs(jnp.sqrt(x + 1j)))), np.float32([1, 2, -3]), rtol=1e-4)


def test_conversions_between_real_and_complex_numbers():
    check(
        lambda x, y: x.real.astype(np.complex64) + y.astype(np.complex64), PARTS, np.float32([1, -2, np.inf, 0, 1, 2])
    )


MATRICES = np.float32([[[3, 1], [0, 2], [1, -1]], [[-1, 0], [2, -2], [0, 1]], [[1, 1], [1, -3], [4, 0]]])


@pytest.mark.parametrize("reverse", [False, True])
def test_running_product(reverse):
    check(lambda x: lax.cumprod(x, 0, reverse), PARTS[:5])


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_product(axis):
    check(lambda x: x.prod(axis), MATRICES)


def test_gradient_of_a_product():
    check(lambda x: jax.grad(lambda y: jnp.abs(y.prod()))(x), MATRICES[0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.at[1].multiply(2 - 1j),
        lambda x: x.at[1, 2].multiply(3j),
        lambda x: x.at[jnp.array([2, 0])].divide(1 + 1j, unique_indices=True),
        lambda x: x.at[jnp.array([0, 2, 0, 9])].multiply(x[0] + 1j, mode="drop"),
        lambda x: x.at[:, jnp.array([1, 1])].multiply(jnp.array([1j, 2])),
        lambda x: jax.vmap(lambda row: row.at[jnp.array([0, 2, 0])].multiply(jnp.array([2j, 3, 1 - 1j])))(x),
        lambda x: jax.ops.segment_prod(x, jnp.array([0, 1, 0]), 3),
    ],
)
def test_multiplied_elements(function):
    check(function, MATRICES)


@pytest.mark.parametrize("name", ["tan", "tanh", "sinh", "cosh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh",
                                  "arctanh", "log1p", "expm1", "exp2"])  # fmt: skip
def test_functions_agree_with_numpy(name):
    """JAX is not asked: these are formulas of their own, with numpy's functions as the oracle."""
    parts = np.random.default_rng(0).normal(0, 2, (500, 2)).astype(np.float32)
    network = netloop.from_jax(getattr(jnp, name), jax.ShapeDtypeStruct((500,), np.complex64))
    (y,) = netloop.evaluate(network, {network.get_input(0).name: parts}).values()
    expected = getattr(np, name)(parts[:, 0].astype(np.complex128) + 1j * parts[:, 1])

    np.testing.assert_allclose(y[:, 0] + 1j * y[:, 1], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [lambda x: x**x, lambda x: x**2.5, lambda x: 0 * x**0, jax.nn.sigmoid])
def test_powers_and_logistic_function(function):
    check(function, MATRICES)


def test_tangent_of_large_numbers_does_not_overflow():
    check(jnp.tanh, np.float32([[100, 1], [-100, 1], [100, 3e4]]))


@pytest.mark.parametrize("function", [jnp.maximum, jnp.minimum])
def test_larger_and_smaller_numbers(function):
    check(lambda x: function(x, x[::-1] + 1j * (x.real == x[::-1].real)), MATRICES)


def test_sums_of_windows():
    check(lambda x: lax.reduce_window(x, 0j, lax.add, (2, 1), (1, 1), "VALID"), MATRICES)


@pytest.mark.parametrize(
    "function",
    mostly_slow(
        2,
        [
            lambda x: jnp.linalg.cholesky(x @ x.conj().T + 3 * jnp.eye(3)),
            lambda x: jax.scipy.linalg.solve_triangular(x, x, trans="C"),
            lambda x: jnp.linalg.solve(x, x + 1),
            jnp.linalg.inv,
            jax.scipy.linalg.expm,
        ],
    ),
)
def test_equations(function):
    check(function, MATRICES)


def test_primitive_without_a_rule_for_pairs_says_so():
    with pytest.raises(netloop.ModelError, match="this primitive has no rule for pairs"):
        netloop.from_jax(lax.clamp_p.bind, 1j, 1j, 1j)


EQUAL_REAL_PARTS = np.float32([[3, -4], [-1, 2], [3, 1], [-1, -2], [0, 0], [2, 9]])


@pytest.mark.parametrize("extreme", [jnp.max, jnp.min])
def test_extreme_is_that_of_real_parts_and_then_of_imaginary_parts(extreme):
    check(extreme, EQUAL_REAL_PARTS)
    check(lambda x: extreme(x.reshape(2, 3), axis=0), EQUAL_REAL_PARTS)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("running", [lax.cummax, lax.cummin, lax.cumlogsumexp])
def test_running_extremes_and_logarithms_of_sums(running, reverse):
    check(lambda x: running(x, reverse=reverse), EQUAL_REAL_PARTS)


@pytest.mark.parametrize("fill", [None, 2 + 3j, 1.5])
def test_number_that_fills_what_is_out_of_bounds(fill):
    check(lambda x: x.at[jnp.array([1, 9])].get(mode="fill", fill_value=fill))
