import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

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
