import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


X = normal(3, 4)
A = DRAW.integers(-5, 6, (3, 4)).astype(np.int32)
ODD = np.float32([[1, np.nan, -1, 2], [np.inf, 3, np.nan, -np.inf]])


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin"])
def test_reduction(name):
    reduce = getattr(jnp, name)

    check_same(lambda x: (reduce(x), reduce(x, axis=1), reduce(x, axis=0, keepdims=True)), X)


@pytest.mark.parametrize("name", ["bitwise_xor", "bitwise_or", "bitwise_and"])
def test_reduction_of_bits(name):
    reduce = getattr(jnp, name).reduce

    check_same(lambda a: (reduce(a, axis=1), reduce(a), reduce(a[..., None], axis=0)), A)


@pytest.mark.parametrize("join", [lax.add, lax.max, lax.min, lax.mul])
def test_general_reduction(join):
    check_same(lambda x: lax.reduce(x, np.float32(0.5), join, (1,)), X)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("running", [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp])
def test_running_total(running, reverse):
    check_same(lambda x: (running(x, 0, reverse), running(x, 1, reverse)), X)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_running_totals_of_nothing(dtype):
    running = [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp][: 5 if dtype == np.float32 else 4]

    def totals(*arrays):
        along = [(x, axis, reverse) for x in arrays for axis in range(x.ndim) for reverse in (False, True)]
        return [total(*entry) for total in running for entry in along]

    check_same(totals, *(np.zeros(shape, dtype) for shape in ((0,), (3, 0), (0, 3))))


def test_signs_of_nan_and_zero_count_where_they_do_in_jax():
    """They count in top_k, and not in sorts, running maxima and the places of extremes."""
    x = np.float32([0.0, -0.0, -np.nan, 1.0, np.nan, np.inf, -np.inf, -0.0, 0.0])
    assert [*np.signbit(x)] == [False, True, True, False, False, False, True, True, False]

    network = check_same(
        lambda x: [lax.top_k(x, 9)[1], jnp.argsort(x), lax.cummax(x[2:5]), jnp.argmax(x), jnp.argmin(x)], x
    )

    assert next(iter(trt.evaluate(network, {"x": x}).values())).tolist() == [4, 5, 3, 0, 8, 1, 7, 6, 2]


@pytest.mark.parametrize("x", [X, A, ODD, A > 0], ids=["float", "int", "nan", "bool"])
def test_order(x):
    check_same(lambda x: (jnp.sort(x), jnp.argsort(x), jnp.sort(x, 0), jnp.argsort(x, axis=0)), x)
    check_same(lambda x: (jnp.sort(x, descending=True), jnp.argsort(x, descending=True)), x)


def test_order_by_several_keys():
    check_same(lambda a, b: lax.sort((a, b, b + 1), num_keys=2), A, X)
    check_same(lambda a, b: jnp.lexsort((a[0], b[0])), A, A[::-1].copy())


def test_best_elements_and_their_places():
    check_same(lambda x: (lax.top_k(x, 2), jnp.median(x, 1), jnp.quantile(x, 0.3)), X)


def test_place_of_the_first_nan():
    check_same(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1), jnp.maximum(x, 0), jnp.minimum(x, 1)), ODD)


def test_places_that_are_sorted_with_a_key_become_the_order():
    network = check_same(lambda x: jnp.argsort(x), A)

    assert [type(layer).__name__ for layer in network.layers] == ["ITopKLayer", "ICastLayer"]


@pytest.mark.parametrize("function", [lax.psum, lax.pmax, lax.pmin, lax.pmean])
def test_reduction_over_an_axis_that_vmap_names(function):
    x = np.float32([[1, 2, 3], [4, -5, 6]])

    check_same(lambda x: jax.vmap(lambda row: row - function(row, "rows"), axis_name="rows")(x), x)
    check_same(lambda x: jax.vmap(lambda y: function(y, "rows"), (None,), axis_name="rows", axis_size=2)(x), x)


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "compare_all", "sort"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_places_of_nan_in_sorted_numbers_are_at_their_end(side, method):
    x = np.float32([1, np.nan, -0.0, 0, -np.nan, np.inf, -np.inf, 2])

    network = check_same(lambda x: jnp.searchsorted(jnp.sort(x), x, side=side, method=method), x)

    ends = {"left": [3, 6, 1, 1, 6, 5, 0, 4], "right": [4, 8, 3, 3, 8, 6, 1, 5]}
    assert next(iter(trt.evaluate(network, {"x": x}).values())).tolist() == ends[side]


def test_places_in_sorted_integers():
    check_same(lambda a: jnp.searchsorted(jnp.sort(a[0]), a[1]), A)
