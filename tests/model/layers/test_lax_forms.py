"""Element-wise maxima and minima propagate NaN, also where XLA's CPU fuses them with the sum that reads them."""

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from netloop.model.graph.layer import Operation
from netloop.model.layers import lax_forms
from netloop.model.layers.lax_forms import maximum, minimum, quotient
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer
from netloop.model.layers.pooling import IPoolingLayer
from netloop.model.layers.reduce import IReduceLayer
from netloop.values.enums import ActivationType, ElementWiseOperation, PoolingType, ReduceOperation

FLOATS = [np.float32, np.float64, np.float16, jnp.bfloat16]

ARRAYS = [
    pytest.param(shape, dtype, marks=[] if shape == (64, 64) and dtype is np.float32 else pytest.mark.slow)
    for shape in ((63, 64), (64, 64))  # XLA fuses from 4,096 elements on
    for dtype in FLOATS
]

READERS: dict[str, Callable[[Any], Any]] = {
    "sum of rows": lambda y: y.sum(0),
    "sum of columns": lambda y: y.sum(-1),
    "averages of pairs": lambda y: y.reshape(*y.shape[:-1], -1, 2).mean(-1),
}

LIMITED = {
    "RELU": IActivationLayer(type=ActivationType.RELU),
    "CLIP": IActivationLayer(type=ActivationType.CLIP, alpha=-0.5, beta=0.5),
    "HARD_SIGMOID": IActivationLayer(type=ActivationType.HARD_SIGMOID, alpha=0.5, beta=0.25),
    "ELU": IActivationLayer(type=ActivationType.ELU, alpha=1.0),
    "SELU": IActivationLayer(type=ActivationType.SELU),
    "SOFTPLUS": IActivationLayer(type=ActivationType.SOFTPLUS),
    "LEAKY_RELU": IActivationLayer(type=ActivationType.LEAKY_RELU, alpha=0.1),
    "THRESHOLDED_RELU": IActivationLayer(type=ActivationType.THRESHOLDED_RELU, alpha=0.1),
}
EXTREMES = {op.name: IElementWiseLayer(op=op) for op in (ElementWiseOperation.MAX, ElementWiseOperation.MIN)}

FOLDED: dict[str, tuple[Operation, tuple[int, ...]]] = {
    "first axis": (IReduceLayer(op=ReduceOperation.MAX, axes=1, keep_dims=False), (4, 64, 64)),
    "middle axis": (IReduceLayer(op=ReduceOperation.MIN, axes=2, keep_dims=False), (64, 3, 64)),
    "last axis": (IReduceLayer(op=ReduceOperation.MAX, axes=4, keep_dims=False), (64, 64, 5)),
    "pooling": (IPoolingLayer(type=PoolingType.MAX, window_size_nd=(2, 2), stride_nd=(2, 2)), (1, 1, 128, 128)),
    "overlapping pooling": (
        IPoolingLayer(type=PoolingType.MAX, window_size_nd=(3, 3), stride_nd=(2, 2)),
        (1, 1, 129, 129),
    ),
}


def numbers(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def with_nan(x: np.ndarray, seed: int = 0) -> np.ndarray:
    x = x.copy()
    x[tuple(np.random.default_rng(seed).integers(x.shape))] = np.nan
    return x


def check(function: Callable[..., Any], wanted: np.ndarray, *operands: np.ndarray) -> None:
    """Each reader of a function's result has NaN exactly where it has NaN of the wanted result."""
    read = list(READERS.values())
    with jax.enable_x64(True):
        # operands of its own for each reader, so that XLA computes the function in the fusion of each
        made = jax.jit(lambda copies: [other(function(*own)) for other, own in zip(read, copies, strict=True)])(
            [operands] * len(read)
        )
    for name, value in zip(READERS, made, strict=True):
        right = READERS[name](wanted.astype(np.float64))
        np.testing.assert_array_equal(np.isnan(value), np.isnan(right), err_msg=name)


@pytest.mark.parametrize(("shape", "dtype"), ARRAYS)
def test_sums_of_activations_propagate_nan(shape: tuple[int, ...], dtype: Any):
    x = with_nan(numbers(shape, dtype))
    for layer in LIMITED.values():
        check(layer.lower, layer.evaluate(x), x)


@pytest.mark.parametrize("op", EXTREMES)
@pytest.mark.parametrize(("shape", "dtype"), ARRAYS)
def test_sums_of_extremes_propagate_nan_of_both_operands(op: str, shape: tuple[int, ...], dtype: Any):
    layer, x, y = EXTREMES[op], numbers(shape, dtype), numbers(shape, dtype, 1)
    for a, b in ((with_nan(x), y), (x, with_nan(y)), (with_nan(x), with_nan(y, 1))):
        check(layer.lower, layer.evaluate(a, b), a, b)


def test_sums_of_extremes_of_extremes_propagate_nan():
    limits = [(maximum, 0.0), (minimum, 2.0), (maximum, -2.0), (minimum, 1.0)]
    x = with_nan(numbers((1061, 8)))
    chains = [*product(limits, repeat=2), *product(limits[:3], repeat=3)]

    def limited(chain: Any, x: Any) -> Any:
        for extreme, number in chain:
            x = extreme(jnp, x, number)
        return x.sum(0)

    sums = jax.jit(lambda copies: [limited(*entry) for entry in zip(chains, copies, strict=True)])([x] * len(chains))
    for chain, total in zip(chains, sums, strict=True):
        np.testing.assert_array_equal(np.isnan(total), np.isnan(x.sum(0)), err_msg=str(chain))


@pytest.mark.parametrize("op", EXTREMES)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), *(pytest.param(s, marks=pytest.mark.slow) for s in [(1, 64), (64, 1)])])
def test_so_do_extremes_of_a_broadcast_operand(op: str, shape: tuple[int, ...], first: bool):
    layer, x, small = EXTREMES[op], numbers((64, 64)), numbers(shape, seed=1)
    for wide, narrow in ((with_nan(x), small), (x, with_nan(small))):
        operands = (narrow, wide) if first else (wide, narrow)
        check(layer.lower, layer.evaluate(*operands), *operands)


@pytest.mark.parametrize("op", EXTREMES)
def test_so_do_extremes_of_an_operand_that_xla_knows(op: str):
    layer, x = EXTREMES[op], numbers((64, 64))
    known, x = np.full((1, 1), 0.5, np.float32), with_nan(x)
    check(lambda x: layer.lower(x, known), layer.evaluate(x, known), x)
    check(lambda x: layer.lower(known, x), layer.evaluate(known, x), x)


@pytest.mark.parametrize("name", FOLDED)
def test_sums_of_folded_maxima_propagate_nan(name: str):
    layer, shape = FOLDED[name]
    x = numbers(shape)
    for seed in range(12):
        x = with_nan(x, seed)
    check(layer.lower, layer.evaluate(x), x)


@pytest.mark.parametrize("extreme", [maximum, minimum])
def test_extremes_of_integers_and_numbers_are_those_of_numpy(extreme: Any):
    x = np.arange(-6, 6, dtype=np.int32)
    for number in -2, 0, 3:
        np.testing.assert_array_equal(extreme(jnp, x, number), extreme(np, x, number))
        np.testing.assert_array_equal(extreme(jnp, number, jnp.asarray(x)), extreme(np, number, x))
    np.testing.assert_array_equal(extreme(jnp, x, x[::-1]), extreme(np, x, x[::-1]))


@pytest.mark.parametrize("extreme", [maximum, minimum])
def test_derivatives_of_extremes_are_those_of_jax(extreme: Any):
    """Equal elements share the derivative."""
    plain = jnp.maximum if extreme is maximum else jnp.minimum
    x, y = jnp.array([-1.0, 0.0, 2.0]), jnp.array([-1.0, 1.0, 1.0])
    np.testing.assert_array_equal(
        jax.grad(lambda x: extreme(jnp, x, 0.0).sum())(x), jax.grad(lambda x: plain(x, 0.0).sum())(x)
    )
    for argument in 0, 1:
        mine, right = (jax.grad(lambda x, y, of=of: of(x, y).sum(), argument)(x, y)
                       for of in (lambda x, y: extreme(jnp, x, y), plain))  # fmt: skip
        np.testing.assert_array_equal(mine, right)
    rows = jnp.stack([x, y])
    np.testing.assert_array_equal(jax.vmap(lambda x: extreme(jnp, x, 0.5))(rows), plain(rows, 0.5))


def test_only_cpus_hide_the_number_of_an_activation():
    """Elsewhere XLA has a kernel for an activation that follows a product."""

    def text(platform: str) -> str:
        row = jax.ShapeDtypeStruct((4, 8), np.float32)
        layer = LIMITED["RELU"]
        return jax.jit(layer.lower).trace(row).lower(lowering_platforms=(platform,)).as_text()

    assert "optimization_barrier" in text("cpu")
    assert "optimization_barrier" not in text("cuda")


# ---------------------------------------------------------------------------- quotients


def test_only_nvidias_gpus_divide_in_float64():
    """Elsewhere XLA's quotient of float32 is rounded once."""

    def text(platform: str) -> str:
        row = jax.ShapeDtypeStruct((4,), np.float32)
        lowered = jax.jit(lambda a, b: quotient(jnp, a, b)).trace(row, row).lower(lowering_platforms=(platform,))
        return lowered.as_text()

    assert "f64" in text("cuda")
    assert "f64" not in text("cpu") + text("tpu")


def test_quotients_in_float64_are_rounded_to_those_of_float32():
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(20_000) * 10.0 ** random.integers(-9, 9, 20_000) for _ in "ab")
    whole = np.arange(1, 200, dtype=np.float32)
    special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, -3, 3e38, 2e-38])
    for x, y in ((a, b), (whole[:, None] * 0.5, whole), (special[:, None], special)):
        x, y = np.broadcast_arrays(x.astype(np.float32), y.astype(np.float32))
        with np.errstate(all="ignore"):
            wanted = x / y
        found = np.asarray(jax.jit(lax_forms._divided_in_float64)((x, y)))
        normal = ~(np.abs(wanted) < np.finfo(np.float32).tiny)  # smaller ones are 0 on CPUs
        np.testing.assert_array_equal(found[normal], wanted[normal])


def test_derivatives_of_quotients_are_those_of_a_plain_division():
    x, y = jnp.array([3.0, -1.0]), jnp.array([7.0, 2.0])
    for argument in (0, 1):
        mine, plain = (
            jax.grad(lambda x, y, divide=divide: divide(x, y).sum(), argument)(x, y)
            for divide in (lambda x, y: quotient(jnp, x, y), lambda x, y: x / y)
        )
        np.testing.assert_allclose(mine, plain, rtol=1e-6)
