"""Forms of the search for XLA's CPU, beside numpy."""

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from netloop.model.layers.numpy_forms import first_indices
from netloop.model.layers.selection_forms import LEAST_ROW, first_places

LENGTHS = 1, 7, 32, 33, 100, 1000, LEAST_ROW - 1, LEAST_ROW, LEAST_ROW + 77
TYPES = np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int32
FEW_LENGTHS = 33, LEAST_ROW + 77
"""The lengths of the fast tests of all types but one."""


def numbers(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Numbers of which many are equal."""
    drawn = np.random.default_rng(seed).integers(0, 100, shape)
    return (drawn if np.dtype(dtype).kind == "u" else drawn - 50).astype(dtype)


def found_in(keys: np.ndarray, count: int) -> np.ndarray:
    return np.asarray(jax.jit(lambda x: first_places(x, count))(keys))


@pytest.mark.parametrize(
    ("dtype", "length"),
    [
        pytest.param(dtype, length, marks=[] if dtype is TYPES[0] or length in FEW_LENGTHS else [pytest.mark.slow])
        for dtype in TYPES
        for length in LENGTHS
    ],
)
def test_the_first_places_are_those_of_a_stable_sort(dtype: Any, length: int):
    keys = numbers(length, 2, length, dtype=dtype)
    counts = [number for number in (1, 2, 4, 9, 60) if number <= length]
    for count, found in zip(counts, jax.jit(lambda x: [first_places(x, most) for most in counts])(keys), strict=True):
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, first_indices(keys, count, descending=True))


@pytest.mark.parametrize("length", [100, LEAST_ROW + 77])
def test_extreme_keys_are_found_in_order(length: int):
    """NaN come first, and infinities and the smallest integers of rows are no padding."""
    keys = np.full((2, length), -np.inf, np.float32)
    keys[:, -1], keys[1, length // 2] = np.inf, np.nan
    found = found_in(keys, 4)
    np.testing.assert_array_equal(found, [[length - 1, 0, 1, 2], [length // 2, length - 1, 0, 1]])
    least = np.full((1, length), np.iinfo(np.int32).min)
    np.testing.assert_array_equal(found_in(least.astype(np.int32), 3), [[0, 1, 2]])


def test_the_last_elements_of_the_last_block_are_found():
    keys = np.arange(3 * LEAST_ROW + 5, dtype=np.float32)
    np.testing.assert_array_equal(found_in(keys, 3), len(keys) - 1 - np.arange(3))


def test_rows_of_several_axes_and_mapped_rows():
    keys = numbers(5, 2, 3, LEAST_ROW)
    wanted = first_indices(keys, 4, descending=True)
    np.testing.assert_array_equal(found_in(keys, 4), wanted)
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda x: first_places(x, 4)))(keys), wanted)
