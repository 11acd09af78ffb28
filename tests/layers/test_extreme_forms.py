"""Forms of maxima and minima for XLA's CPU, beside numpy: where XLA's own are slow or lose NaN."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from netloop.enums import CumulativeOperation, PoolingType, ReduceOperation, TopKOperation
from netloop.graph.layer import Operation
from netloop.layers.extreme_forms import LOSES_NAN, WINDOW, extremes, extremes_of_blocks, highest_of_rows
from netloop.layers.pooling import IPoolingLayer
from netloop.layers.reduce import ICumulativeLayer, IReduceLayer, ISoftMaxLayer, ITopKLayer

SHAPES = [
    *[((3, 1000), [1]), ((WINDOW, WINDOW + 1), [-1]), ((7, 5), [0]), ((5, 1001), [1]), ((3000, 3), [1])],
    *[((64, 64), [0]), ((64, 64), [1]), ((64, 64), [0, 1]), ((LOSES_NAN - 1,), [0]), ((LOSES_NAN + 1,), [0])],
    *[((2, 33, 7, 19), [1, 3]), ((2, 33, 7, 19), [0, 2])],
]


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).integers(-1000, 1000, shape).astype(dtype)


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("is_max", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int8])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_extremes_are_those_of_numpy(shape: tuple[int, ...], axes: list[int], dtype: Any, is_max: bool, keepdims: bool):
    x = numbers(shape, dtype)
    found = jax.jit(lambda x: extremes(x, axes, is_max, keepdims))(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, (np.max if is_max else np.min)(x, tuple(axes), keepdims=keepdims))


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_every_element_counts_and_nan_wins(shape: tuple[int, ...], axes: list[int]):
    largest, least = (jax.jit(lambda x, is_max=is_max: extremes(x, axes, is_max)) for is_max in (True, False))
    for seed in range(20):
        place = np.unravel_index(np.random.default_rng(seed).integers(np.prod(shape)), shape)
        for value in 2000, np.inf, np.nan:
            x = numbers(shape)
            x[place] = value
            np.testing.assert_array_equal(largest(x), x.max(tuple(axes)))
            np.testing.assert_array_equal(least(-x), (-x).min(tuple(axes)))


@pytest.mark.parametrize("length", [0, 1, WINDOW, WINDOW + 1, 1000, LOSES_NAN])
def test_the_highest_of_rows(length: int):
    x = numbers((3, length))
    np.testing.assert_array_equal(jax.jit(highest_of_rows)(x), x.max(-1, keepdims=True, initial=-np.inf))


def test_the_extremes_of_blocks():
    x = numbers((2, 46, 69))
    x[1, 30, 40] = np.nan
    found = jax.jit(lambda x: extremes_of_blocks(x, (1, 2, 3), True))(x)
    np.testing.assert_array_equal(found, x.reshape(2, 23, 2, 23, 3).max((2, 4)))


def test_derivatives_are_those_of_a_plain_maximum():
    """Equal elements share the derivative."""
    x = np.zeros((2, 100), np.float32)
    np.testing.assert_allclose(jax.grad(lambda x: extremes(x, [1], True).sum())(x), np.full((2, 100), 1 / 100))
    x[1, 7] = 1
    wanted = np.full((2, 100), 1 / 100)
    wanted[1] = np.arange(100) == 7
    np.testing.assert_allclose(jax.grad(lambda x: extremes(x, [1], True).sum())(x), wanted)
    np.testing.assert_allclose(jax.jacfwd(lambda x: extremes(x, [1], True).sum())(x), wanted)


@pytest.mark.parametrize("size", [100, LOSES_NAN])
def test_only_cpus_fold(size: int):
    def text(platform: str) -> str:
        row = jax.ShapeDtypeStruct((1, size), np.float32)
        return jax.jit(lambda x: extremes(x, [1], True)).trace(row).lower(lowering_platforms=(platform,)).as_text()

    assert "stablehlo.slice" in text("cpu")
    assert "stablehlo.slice" not in text("cuda")


LAYERS = [
    IReduceLayer(op=ReduceOperation.MAX, axes=1 << 3, keep_dims=False),
    IReduceLayer(op=ReduceOperation.MIN, axes=1 << 2 | 1 << 1, keep_dims=True),
    ISoftMaxLayer(axes=1 << 3),
    ITopKLayer(op=TopKOperation.MAX, k=1, axes=1 << 3),
    ITopKLayer(op=TopKOperation.MIN, k=1, axes=1 << 2),
    ITopKLayer(op=TopKOperation.MAX, k=3, axes=1 << 3),
    *(
        IPoolingLayer(type=PoolingType.MAX, window_size_nd=(each, each), stride_nd=(each, each))
        for each in (1, 2, 3, 46)
    ),
    IPoolingLayer(
        type=PoolingType.MAX, window_size_nd=(2, 3), stride_nd=(2, 3), pre_padding=(0, 1), post_padding=(1, 2)
    ),
    IPoolingLayer(type=PoolingType.MAX, window_size_nd=(3, 3), stride_nd=(1, 2)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda each: each.LABEL)
def test_layers_of_large_arrays_propagate_nan(layer: Operation):
    x = numbers((1, 2, 46, 47))
    x[0, 1, 30, 41] = np.nan
    wanted, found = layer.evaluate(x), jax.jit(layer.lower)(x)
    for each, right in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(each, right, rtol=1e-6, atol=1e-30)


def test_the_derivative_of_a_pooling_goes_to_one_of_equal_elements():
    layer = IPoolingLayer(type=PoolingType.MAX, window_size_nd=(2, 2), stride_nd=(2, 2))
    x = jnp.ones((1, 1, 4, 4))
    wanted = jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID").sum())(x)
    np.testing.assert_array_equal(jax.grad(lambda x: layer.lower(x).sum())(x), wanted)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_running_sums_on_cpus_are_rounded_as_those_of_the_reference(axis: int, exclusive: bool, reverse: bool):
    layer = ICumulativeLayer(op=CumulativeOperation.SUM, exclusive=exclusive, reverse=reverse)
    x = np.random.default_rng(1).normal(size=(300, 200)).astype(np.float32)
    made = jax.jit(lambda x: layer.lower(x, np.array(axis)))(x)
    np.testing.assert_array_equal(made, layer.evaluate(x, np.array(axis)))
