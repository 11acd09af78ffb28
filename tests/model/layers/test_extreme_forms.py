"""Forms of maxima and minima for XLA's CPU, beside numpy: where XLA's own are slow or lose NaN."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from netloop.model.graph.layer import Operation
from netloop.model.layers.extreme_forms import MOST_SMALL, WINDOW, extremes, extremes_of_blocks, highest_along
from netloop.model.layers.pooling import IPoolingLayer
from netloop.model.layers.reduce import ICumulativeLayer, IReduceLayer, ISoftMaxLayer
from netloop.model.layers.topk import ITopKLayer
from netloop.values.enums import CumulativeOperation, PoolingType, ReduceOperation, TopKOperation
from tests.support.devices import assert_allclose, only_on_cpus

SHAPES = [
    *[((3, 1000), [1]), ((WINDOW, WINDOW + 1), [-1]), ((7, 5), [0]), ((5, 1001), [1]), ((3000, 3), [1])],
    *[((64, 64), [0]), ((64, 64), [1]), ((64, 64), [0, 1]), ((MOST_SMALL - 1,), [0]), ((MOST_SMALL + 1,), [0])],
    *[((2, 33, 7, 19), [1, 3]), ((2, 33, 7, 19), [0, 2])],
]


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).integers(-1000, 1000, shape).astype(dtype)


@pytest.mark.parametrize(
    ("shape", "axes", "dtype"),
    [
        # all types take the same steps: of the others, one shape in three is fast
        pytest.param(*case, dtype, marks=[] if dtype is np.float32 or place % 3 == 1 else [pytest.mark.slow])
        for place, case in enumerate(SHAPES)
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int8)
    ],
)
def test_extremes_are_those_of_numpy(shape: tuple[int, ...], axes: list[int], dtype: Any):
    x = numbers(shape, dtype)
    with jax.enable_x64(True):
        most, least = jax.jit(lambda x: (extremes(x, axes, True, keepdims=True), extremes(x, axes, False)))(x)
    assert most.dtype == least.dtype == x.dtype
    np.testing.assert_array_equal(most, x.max(tuple(axes), keepdims=True))
    np.testing.assert_array_equal(least, x.min(tuple(axes)))


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


@pytest.mark.parametrize("length", [0, 1, WINDOW, WINDOW + 1, 1000, MOST_SMALL])
def test_the_highest_along_an_axis(length: int):
    x = numbers((3, length))
    for axis in 0, 1:
        found = jax.jit(lambda x, axis=axis: highest_along(x, axis))(x)
        np.testing.assert_array_equal(found, x.max(axis, keepdims=True, initial=-np.inf))


def test_the_extremes_of_blocks():
    x = numbers((2, 46, 69))
    x[1, 30, 40] = np.nan
    for read in (1, 2, 3), (1, 1, 2):
        found = jax.jit(lambda x, read=read: extremes_of_blocks(x, (1, 2, 3), read, True))(x)
        np.testing.assert_array_equal(found, x.reshape(2, 23, 2, 23, 3)[:, :, : read[1], :, : read[2]].max((2, 4)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [2, 8, WINDOW + 1])
def test_small_arrays_that_vmap_makes_large_keep_their_nan(length: int, dtype: Any):
    """The layers that a loop runs for all of its iterations at once are mapped too."""
    x = numbers((3000, length), dtype)
    x[1234, 1] = x[77, 0] = np.nan
    with jax.enable_x64(True):
        np.testing.assert_array_equal(jax.jit(jax.vmap(lambda x: extremes(x, [0], True)))(x), x.max(1))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, np.float32])
@pytest.mark.parametrize("is_max", [True, False])
def test_nan_of_either_sign_wins(is_max: bool, dtype: Any, sign: int):
    """x86 sets the sign of what it makes of inf - inf."""
    x = np.ones((64, 64), np.float32)
    x[3, 5] = np.copysign(np.float32(np.nan), sign)
    for axes in [0], [1], [0, 1]:
        found = jax.jit(lambda x, axes=axes: extremes(x, axes, is_max))(x.astype(dtype))
        assert np.isnan(np.asarray(found, np.float32)).sum() == 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("is_max", [True, False])
def test_arithmetic_of_8_bits_wraps_before_an_extreme(is_max: bool, dtype: Any):
    x = np.random.default_rng(0).integers(0, 100, (64, 128)).astype(dtype)
    for step in (
        lambda x: x * x, lambda x: x - dtype(5), lambda x: x + x + x,
        lambda x: jnp.maximum(x, dtype(1)) * dtype(2) - dtype(1),
    ):  # fmt: skip
        found = jax.jit(lambda x, step=step: extremes(step(x), [1], is_max))(x)
        expected = np.asarray(step(x))
        np.testing.assert_array_equal(found, expected.max(1) if is_max else expected.min(1))


def test_derivatives_are_those_of_a_plain_maximum():
    """Equal elements share the derivative."""
    x = np.zeros((2, 100), np.float32)
    assert_allclose(jax.jit(jax.grad(lambda x: extremes(x, [1], True).sum()))(x), np.full((2, 100), 1 / 100))
    x[1, 7] = 1
    wanted = np.full((2, 100), 1 / 100)
    wanted[1] = np.arange(100) == 7
    assert_allclose(jax.jit(jax.grad(lambda x: extremes(x, [1], True).sum()))(x), wanted)
    assert_allclose(jax.jit(jax.jacfwd(lambda x: extremes(x, [1], True).sum()))(x), wanted)


@pytest.mark.parametrize("size", [100, MOST_SMALL])
def test_only_cpus_fold(size: int):
    def text(platform: str) -> str:
        row = jax.ShapeDtypeStruct((1, size), np.float32)
        return jax.jit(lambda x: extremes(x, [1], True)).trace(row).lower(lowering_platforms=(platform,)).as_text()

    assert "stablehlo.slice" in text("cpu")
    assert "stablehlo.slice" not in text("cuda")


def maxima(window: tuple[int, ...], stride: tuple[int, ...], **padding: Any) -> IPoolingLayer:
    return IPoolingLayer(type=PoolingType.MAX, window_size_nd=window, stride_nd=stride, **padding)


LAYERS = [
    IReduceLayer(op=ReduceOperation.MAX, axes=1 << 3, keep_dims=False),
    IReduceLayer(op=ReduceOperation.MIN, axes=1 << 2 | 1 << 1, keep_dims=True),
    ISoftMaxLayer(axes=1 << 3),
    ITopKLayer(op=TopKOperation.MAX, k=1, axes=1 << 3),
    ITopKLayer(op=TopKOperation.MIN, k=1, axes=1 << 2),
    ITopKLayer(op=TopKOperation.MAX, k=3, axes=1 << 3),
    *(maxima(entry, entry) for entry in [(1, 1), (2, 2), (3, 3), (46, 46)]),
    *(maxima(entry, (1, 1)) for entry in [(46, 47), (1, 1), (45, 1), (3, 3)]),
    *(maxima(entry, (2, 3)) for entry in [(46, 3), (1, 1), (1, 2), (3, 3)]),
    maxima((2, 3), (2, 3), pre_padding=(0, 1), post_padding=(1, 2)),
    maxima((2, 2), (3, 4), pre_padding=(1, 1), post_padding=(1, 1)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda value: value.LABEL)
def test_layers_of_large_arrays_propagate_nan(layer: Operation):
    x = numbers((1, 2, 46, 47))
    x[0, 1, 0, 0] = x[0, 1, 30, 42] = np.nan
    wanted, found = layer.evaluate(x), jax.jit(layer.lower)(x)
    for leaf, right in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert_allclose(leaf, right, rtol=1e-6, atol=1e-30)


def test_the_derivative_of_a_pooling_goes_to_one_of_equal_elements():
    layer = maxima((2, 2), (2, 2))
    x = jnp.ones((1, 1, 4, 4))
    wanted = jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID").sum())(x)
    np.testing.assert_array_equal(jax.grad(lambda x: layer.lower(x).sum())(x), wanted)


@only_on_cpus("elsewhere XLA adds as a tree")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_running_sums_on_cpus_are_rounded_as_those_of_the_reference(axis: int, exclusive: bool, reverse: bool):
    layer = ICumulativeLayer(op=CumulativeOperation.SUM, exclusive=exclusive, reverse=reverse)
    x = np.random.default_rng(1).normal(size=(300, 200)).astype(np.float32)
    made = jax.jit(lambda x: layer.lower(x, np.array(axis)))(x)
    np.testing.assert_array_equal(made, layer.evaluate(x, np.array(axis)))
