import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


A = np.int32([[-5, 3, 77, 1 << 30], [0, -1, -(1 << 31), 6]])
BY = np.int32([[0, 1, 31, 32], [40, 3, 4, 2]])


@pytest.mark.parametrize("name", ["shift_left", "shift_right_logical", "shift_right_arithmetic"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_shift(name, dtype):
    check_same(getattr(lax, name), A.astype(dtype), BY.astype(dtype))


@pytest.mark.parametrize("function", [lax.population_count, lax.clz, lax.bitwise_not])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.uint8])
def test_function_of_bits(function, dtype):
    check_same(function, A.astype(dtype))


@pytest.mark.skipif(not hasattr(lax, "mulhi"), reason="this JAX has no such function")
def test_upper_half_of_products():
    check_same(lax.mulhi, A.view(np.uint32) * np.uint32(77777), A.view(np.uint32) * np.uint32(99991))


def test_next_number():
    check_same(lax.nextafter, np.float32([0, 1, -1, 2, np.inf, 3]), np.float32([-1, 2, 0, 2, 0, -np.inf]))


@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (4, 3), (8, 23)])
def test_reduced_precision(bits):
    values = np.float32([1.0009766, -1.7, 70000, 3e-5, np.inf, np.nan, 0, 65504, 65530])

    check_same(lambda x: lax.reduce_precision(x, *bits), values, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_bits_are_read_as_other_types_and_back(dtype):
    def there_and_back(x):
        parts = lax.bitcast_convert_type(x, dtype)
        return parts, lax.bitcast_convert_type(parts, np.float32)

    check_same(there_and_back, normal(3, 4), rtol=0, atol=0)
