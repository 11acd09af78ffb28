"""Reduce, cumulative, softmax and top-k."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.reduce import ICumulativeLayer, IReduceLayer, ISoftMaxLayer, _plain_softmax
from netloop.model.layers.topk import ITopKLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, NetworkError
from netloop.values.enums import CumulativeOperation, DataType, ReduceOperation, TopKOperation
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.laws import Case, check_laws, refuses
from tests.support.networks import mark

BF16 = np.dtype(jnp.bfloat16)
F16, F32, F64, I8, U8, I32, I64 = map(
    np.dtype, (np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64)
)
SUM, PROD, MAX, MIN, AVG = (ReduceOperation[name] for name in ("SUM", "PROD", "MAX", "MIN", "AVG"))
INF, NAN = np.inf, np.nan

X = np.float32([[1, -2, 3], [4, 5, -6]])
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


# ---------------------------------------------------------------------------- reduce


def reduced(name: str, op: ReduceOperation, x: Any, expected: Any, axes: int = 1, keep_dims: bool = False) -> Case:
    return Case(name, IReduceLayer(op=op, axes=axes, keep_dims=keep_dims), (x,), expected)


REDUCES = [
    reduced("SUM of rows", SUM, X, F32.type([5, 3, -3])),
    reduced("PROD of rows", PROD, X, F32.type([4, -10, -18])),
    reduced("MAX of rows", MAX, X, F32.type([4, 5, 3])),
    reduced("MIN of rows", MIN, X, F32.type([1, -2, -6])),
    reduced("AVG of rows", AVG, X, F32.type([2.5, 1.5, -1.5])),
    reduced("SUM of columns, kept", SUM, X, F32.type([[2], [3]]), axes=0b10, keep_dims=True),
    reduced("MAX of columns, kept", MAX, X, F32.type([[3], [5]]), axes=0b10, keep_dims=True),
    reduced("SUM of everything", SUM, X, F32.type(5), axes=0b11),
    reduced("AVG of everything, kept", AVG, X, F32.type([[5 / 6]]), axes=0b11, keep_dims=True),
    reduced("SUM over the outer axes", SUM, CUBE, F32.type([60, 66, 72, 78]), axes=0b011),
    reduced("MIN over the outer and the inner axis", MIN, CUBE, F32.type([0, 4, 8]), axes=0b101),
    reduced("SUM of int32 wraps", SUM, np.array([2**31 - 1, 1], I32), np.array(-(2**31), I32)),
    reduced("SUM of int64", SUM, np.array([2**31 - 1, 1], I64), np.array(2**31, I64)),
    reduced("SUM of int8 wraps", SUM, np.array([100, 100], I8), np.array(-56, I8)),
    reduced("PROD of uint8 wraps", PROD, np.array([16, 17], U8), np.array(16, U8)),
    reduced("MAX of int8", MAX, np.array([-5, -7], I8), np.array(-5, I8)),
    reduced("MIN of uint8", MIN, np.array([200, 100], U8), np.array(100, U8)),
    reduced("AVG of int32 goes towards zero", AVG, np.array([[7, -7], [0, 0]], I32), np.array([3, -3], I32)),
    reduced("AVG of int8 does not wrap", AVG, np.array([100, 101], I8), np.array(100, I8)),
    reduced("SUM of int16 wraps", SUM, np.array([30000, 30000], np.int16), np.array(-5536, np.int16)),
    reduced("AVG of uint16", AVG, np.array([60000, 60001], np.uint16), np.array(60000, np.uint16)),
    reduced("AVG of uint64", AVG, np.array([2**62, 2**62 + 3], np.uint64), np.array(2**62 + 1, np.uint64)),
    reduced("MIN of no uint64", MIN, np.zeros(0, np.uint64), np.array(2**64 - 1, np.uint64)),
    reduced("MAX of bool", MAX, np.array([[True, False], [False, False]]), np.array([True, False])),
    reduced("MIN of bool", MIN, np.array([[True, False], [True, True]]), np.array([True, False])),
    reduced("MAX of no bool", MAX, np.zeros(0, bool), np.array(False)),
    reduced("SUM of float64", SUM, np.array([1, 2**-40], F64), np.array(1 + 2**-40)),
    reduced("SUM of float16 in float32", SUM, np.full(4096, 1.5, F16), np.array(6144, F16)),
    reduced("SUM of bfloat16 in float32", SUM, np.ones(1000, BF16), np.array(1000, BF16)),
    reduced("PROD of float16 in float32", PROD, np.array([1000, 1000, 0.001], F16), np.array(1000, F16)),
    reduced("AVG of float16 beyond its range", AVG, np.array([60000, 60000], F16), np.array(60000, F16)),
    reduced("MAX of bfloat16", MAX, np.array([1, 3, 2], BF16), np.array(3, BF16)),
    reduced("MAX with a NaN", MAX, np.float32([1, NAN, 2]), F32.type(NAN)),
    reduced("MIN with a NaN", MIN, np.float32([1, NAN, 2]), F32.type(NAN)),
    reduced("MAX of infinities", MAX, np.float32([-INF, -INF]), F32.type(-INF)),
    reduced("SUM of nothing", SUM, np.zeros((0, 2), F32), np.zeros(2, F32)),
    reduced("PROD of nothing", PROD, np.zeros((0, 2), F32), np.ones(2, F32)),
    reduced("MAX of nothing", MAX, np.zeros((0, 2), F32), F32.type([-INF, -INF])),
    reduced("MIN of nothing", MIN, np.zeros((0, 2), F16), F16.type([INF, INF])),
    reduced("AVG of nothing", AVG, np.zeros((0, 2), F32), F32.type([NAN, NAN])),
    reduced("MAX of no integers", MAX, np.zeros(0, I32), np.array(-(2**31), I32)),
    reduced("MIN of no integers", MIN, np.zeros(0, I64), np.array(2**63 - 1, I64)),
    reduced("MAX of no bytes", MAX, np.zeros(0, I8), np.array(-128, I8)),
    reduced("AVG of no integers", AVG, np.zeros(0, I32), np.array(0, I32)),
    reduced("MAX along an axis of nothing", MAX, np.zeros((0, 2), F32), np.zeros(0, F32), axes=0b10),
]


@pytest.mark.parametrize("case", REDUCES, ids=str)
def test_reduce_obeys_the_laws(case: Case) -> None:
    check_laws(case)


@pytest.mark.parametrize(("keep_dims", "shape"), [(False, (-1,)), (True, (-1, 1, 1))])
def test_reduce_with_unknown_lengths(keep_dims: bool, shape: Any) -> None:
    layer = IReduceLayer(op=SUM, axes=0b110, keep_dims=keep_dims)

    assert layer.infer(TensorType(F32, (-1, -1, 3))) == TensorType(F32, shape)


def test_sum_of_bool_is_refused() -> None:
    refuses(IReduceLayer(op=SUM, axes=1, keep_dims=False), X > 0, match="SUM takes numbers, not bool[2,3]")


AXES = [
    Case("axes of an input", IReduceLayer(op=SUM, axes=0, keep_dims=False), (CUBE, np.array([0, -1], I32)),
         np.sum(CUBE, (0, 2))),
    Case("axes of an input, kept", IReduceLayer(op=MAX, axes=1, keep_dims=True), (CUBE, np.array([-2], I64)),
         np.max(CUBE, 1, keepdims=True)),
    Case("one axis as a scalar", IReduceLayer(op=MIN, axes=0, keep_dims=False), (X, np.array(1, I64)), np.min(X, 1)),
    Case("no axes", IReduceLayer(op=AVG, axes=1, keep_dims=False), (X, np.zeros(0, I64)), X),
]  # fmt: skip


@pytest.mark.parametrize("case", AXES, ids=str)
def test_reduce_along_the_axes_of_an_input(case: Case) -> None:
    check_laws(case)


def test_reduce_along_unknown_axes_has_a_known_rank() -> None:
    layer, x = IReduceLayer(op=SUM, axes=0, keep_dims=False), TensorType(F32, (2, 3, 4))

    assert layer.infer(x, TensorType(I64, (2,))) == TensorType(F32, (-1,))
    layer.keep_dims = True
    assert layer.infer(x, TensorType(I64, (2,))) == TensorType(F32, (-1, -1, -1))


@pytest.mark.parametrize(
    ("axes", "match"),
    [
        (np.array([0, -3]), "the axes [0, -3] list an axis twice"),
        (np.array([3]), "axis 3 is not one of the 3 axes"),
        (np.array([0.0]), "the axes are int32 or int64, and 1-D, not float64[1]"),
        (TensorType(I64, (4,)), "the axes are 4, and the input has 3"),
        (TensorType(I64, (-1,)), "the number of axes in int64[-1] is unknown"),
    ],
)
def test_reduce_along_axes_without_a_meaning_is_refused(axes: Any, match: str) -> None:
    refuses(IReduceLayer(op=SUM, axes=0, keep_dims=False), CUBE, axes, match=match)


def test_setting_the_axes_of_a_reduce_takes_the_input_away() -> None:
    network = trt.INetworkDefinition()
    layer = network.add_reduce(network.add_input("x", trt.float32, (2, 3)), SUM, 0, False)
    layer.set_input(1, network.add_input("axes", trt.int64, (1,)))
    layer.axes = 1

    assert layer.inputs[1] is None
    assert layer.get_output(0).shape == (3,)


def test_engine_reduces_along_the_axes_of_each_run() -> None:
    network = trt.INetworkDefinition()
    layer = network.add_reduce(network.add_input("x", trt.float32, (2, 3)), SUM, 0, False)
    layer.set_input(1, network.add_input("axes", trt.int64, (1,)))
    engine = trt.compile(mark(network, y=layer.get_output(0)))

    assert engine({"x": X, "axes": np.array([0])})["y"].tolist() == X.sum(0).tolist()
    assert engine({"x": X, "axes": np.array([-1])})["y"].tolist() == X.sum(1).tolist()


def test_reduce_by_none_is_refused() -> None:
    refuses(IReduceLayer(op=ReduceOperation.NONE, axes=1, keep_dims=False), X, match="op is NONE")


def test_reduce_of_no_axis_is_refused() -> None:
    refuses(IReduceLayer(op=SUM, axes=0, keep_dims=False), X, match="axes is 0, and names no axis")


@pytest.mark.parametrize("axes", [0b100, -1])
def test_reduce_of_an_axis_that_is_not_there_is_refused(axes: int) -> None:
    refuses(IReduceLayer(op=SUM, axes=axes, keep_dims=False), X, match="has bits past the 2 axes of the input")


def test_derivative_of_sum_is_one() -> None:
    layer = IReduceLayer(op=SUM, axes=1, keep_dims=False)

    np.testing.assert_array_equal(jax.grad(layer.lower)(jnp.ones(3)), [1, 1, 1])


def test_derivative_of_max_is_one_at_the_largest() -> None:
    layer = IReduceLayer(op=MAX, axes=1, keep_dims=False)

    assert_allclose(jax.grad(layer.lower)(jnp.array([1.0, 3.0, 2.0])), [0, 1, 0])


def test_derivative_of_mean_is_the_share() -> None:
    layer = IReduceLayer(op=AVG, axes=1, keep_dims=False)

    assert_allclose(jax.grad(layer.lower)(jnp.ones(4)), [0.25] * 4)


def test_derivative_of_product_is_the_product_of_the_others() -> None:
    layer = IReduceLayer(op=PROD, axes=1, keep_dims=False)

    np.testing.assert_array_equal(jax.grad(layer.lower)(jnp.array([0.0, 3.0, 2.0])), [6, 0, 0])


# ---------------------------------------------------------------------------- cumulative


def running(name: str, x: Any, expected: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Case:
    layer = ICumulativeLayer(op=CumulativeOperation.SUM, exclusive=exclusive, reverse=reverse)
    return Case(name, layer, (x, np.array(axis, np.int32)), expected)


CUMULATIVES = [
    running("a vector", np.float32([1, 2, 3]), np.float32([1, 3, 6])),
    running("exclusive", np.float32([1, 2, 3]), np.float32([0, 1, 3]), exclusive=True),
    running("reverse", np.float32([1, 2, 3]), np.float32([6, 5, 3]), reverse=True),
    running("exclusive, reverse", np.float32([1, 2, 3]), np.float32([5, 3, 0]), exclusive=True, reverse=True),
    running("down", X, np.float32([[1, -2, 3], [5, 3, -3]])),
    running("across", X, np.float32([[1, -1, 2], [4, 9, 3]]), axis=1),
    running("an axis from the end, exclusive", X, np.float32([[0, 1, -1], [0, 4, 9]]), axis=-1, exclusive=True),
    running("in the middle", CUBE, np.cumsum(CUBE, 1), axis=1),
    running("in the middle, from the end", CUBE, np.cumsum(CUBE[:, ::-1], 1)[:, ::-1], axis=-2, reverse=True),
    running("int32 wraps", np.array([2**31 - 1, 1], I32), np.array([2**31 - 1, -(2**31)], I32)),
    running("int64", np.array([2**31 - 1, 1], I64), np.array([2**31 - 1, 2**31], I64)),
    running("int8 wraps", np.array([100, 100], I8), np.array([100, -56], I8)),
    running("uint16", np.array([40000, 20000], np.uint16), np.array([40000, 60000], np.uint16)),
    running("float64", np.array([1, 2**-40]), np.array([1, 1 + 2**-40])),
    running("float16 in float32", np.full(4096, 1, F16), np.arange(1, 4097).astype(F16)),
    running("bfloat16 in float32", np.full(600, 1, BF16), np.arange(1, 601).astype(BF16)),
    running("exclusive past an infinity", np.float32([1, INF, 2]), np.float32([0, 1, INF]), exclusive=True),
    running("no element", np.zeros((0, 2), F32), np.zeros((0, 2), F32), exclusive=True),
    running("one element, exclusive", np.float32([7]), np.float32([0]), exclusive=True, reverse=True),
    running("another axis is empty", np.zeros((0, 2), I32), np.zeros((0, 2), I32), axis=1, reverse=True),
]
RUNNING_SUM = ICumulativeLayer(op=CumulativeOperation.SUM, exclusive=False, reverse=False)
AXIS_0 = np.array(0, np.int32)


@pytest.mark.parametrize("case", CUMULATIVES, ids=str)
def test_cumulative_obeys_the_laws(case: Case) -> None:
    check_laws(case)


def test_cumulative_with_unknown_length_along_an_unknown_axis() -> None:
    x = TensorType(F32, (-1, 3))

    assert RUNNING_SUM.infer(x, TensorType(I64)) == x


def test_cumulative_of_bool_is_refused() -> None:
    refuses(RUNNING_SUM, X > 0, AXIS_0, match="SUM takes numbers, not bool[2,3]")


def product(name: str, x: Any, expected: Any, exclusive: bool = False, reverse: bool = False, axis: int = 0) -> Case:
    layer = ICumulativeLayer(op=CumulativeOperation.PROD, exclusive=exclusive, reverse=reverse)
    return Case(name, layer, (x, np.array(axis, np.int64)), expected)


PRODUCTS = [
    product("a vector", np.float32([2, 3, 4]), np.float32([2, 6, 24])),
    product("exclusive", np.float32([2, 0, 4]), np.float32([1, 2, 0]), exclusive=True),
    product("reverse", np.float64([2, 3, 4]), np.float64([24, 12, 4]), reverse=True),
    product("exclusive, reverse", np.float32([2, 3, 4]), np.float32([12, 4, 1]), exclusive=True, reverse=True),
    product("across", X, np.cumprod(X, 1), axis=-1),
    product("uint8 wraps", np.array([16, 17, 3], U8), np.array([16, 16, 48], U8)),
    product("nothing", np.zeros((0, 2), F32), np.zeros((0, 2), F32), exclusive=True),
]


@pytest.mark.parametrize("case", PRODUCTS, ids=str)
def test_running_products_obey_the_laws(case: Case) -> None:
    check_laws(case)


def test_cumulative_of_a_scalar_is_refused() -> None:
    refuses(RUNNING_SUM, TensorType(F32), AXIS_0, match="the input is a scalar")


def test_cumulative_along_a_vector_of_axes_is_refused() -> None:
    refuses(RUNNING_SUM, X, np.array([0], np.int32), match="the axis is an int32 or int64 scalar, not int32[1]")


def test_cumulative_along_an_axis_that_is_not_there_is_refused() -> None:
    refuses(RUNNING_SUM, X, np.array(-3, np.int32), match="axis -3 is not one of the 2 axes")


def test_derivative_of_a_running_sum_counts_the_sums_with_the_element() -> None:
    def total(x: jax.Array) -> jax.Array:
        return jnp.sum(RUNNING_SUM.lower(x, AXIS_0))

    np.testing.assert_array_equal(jax.grad(total)(jnp.zeros(3)), [3, 2, 1])


# ---------------------------------------------------------------------------- softmax


E, E2 = math.e, math.e**2
SOFTMAXES = [
    Case("a vector", ISoftMaxLayer(axes=1), (np.float32([0, 1, 2]),), np.float32([1, E, E2]) / np.float32(1 + E + E2)),
    Case("columns", ISoftMaxLayer(axes=1), (np.float32([[0, 0], [0, 1]]),),
         np.float32([[0.5, 1 / (1 + E)], [0.5, E / (1 + E)]])),
    Case("rows", ISoftMaxLayer(axes=2), (np.float32([[0, 0], [0, 1]]),),
         np.float32([[0.5, 0.5], [1 / (1 + E), E / (1 + E)]])),
    Case("large numbers", ISoftMaxLayer(axes=1), (np.float32([1000, 1000]),), np.float32([0.5, 0.5])),
    Case("minus infinity", ISoftMaxLayer(axes=1), (np.float32([-INF, 3]),), np.float32([0, 1])),
    Case("float16", ISoftMaxLayer(axes=1), (np.float16([0, 1]),), np.float16([1 / (1 + E), E / (1 + E)])),
    Case("bfloat16", ISoftMaxLayer(axes=1), (np.array([0, 1], BF16),), np.array([1 / (1 + E), E / (1 + E)], BF16)),
    Case("float64", ISoftMaxLayer(axes=1), (np.float64([0, 1]),), np.float64([1 / (1 + E), E / (1 + E)]), 1e-14),
    Case("a NaN", ISoftMaxLayer(axes=1), (np.float32([NAN, 1]),), np.float32([NAN, NAN])),
    Case("nothing", ISoftMaxLayer(axes=2), (np.zeros((2, 0), F32),), np.zeros((2, 0), F32)),
]  # fmt: skip


@pytest.mark.parametrize("case", SOFTMAXES, ids=str)
def test_softmax_obeys_the_laws(case: Case) -> None:
    check_laws(case)


def test_softmax_of_a_row_that_a_mask_fills_is_that_of_equal_numbers() -> None:
    """XLA computes ``a * b - c`` without rounding the product, and jax.nn.softmax of such a row is NaN."""
    network = INetworkDefinition()
    x, mask = (network.add_input(name, trt.float32, (2, 4, 8, 8)) for name in ("x", "mask"))
    scale = network.add_constant((1, 1, 1, 1), F32.type(0.35355338)).get_output(0)
    total = network.add_elementwise(x, mask, trt.ElementWiseOperation.SUM).get_output(0)
    scaled = network.add_elementwise(total, scale, trt.ElementWiseOperation.PROD).get_output(0)
    layer = network.add_softmax(scaled)
    layer.axes = 1 << 3
    given = np.random.default_rng(0).normal(size=(2, 4, 8, 8)).astype(F32) * F32.type(0.1)
    masked = np.zeros((2, 4, 8, 8), F32)
    masked[:, :, :2] = np.finfo(F32).min

    found = trt.compile(mark(network, y=layer.get_output(0)))({"x": given, "mask": masked})["y"]

    assert_allclose(np.asarray(found)[:, :, :2], 0.125)


def test_softmax_keeps_unknown_lengths() -> None:
    x = TensorType(F16, (-1, -1))

    assert ISoftMaxLayer(axes=2).infer(x) == x


def test_softmax_of_integers_is_refused() -> None:
    refuses(ISoftMaxLayer(axes=1), np.zeros(2, I32), match="the input is int32[2], but must be floating-point")


@pytest.mark.parametrize(("axes", "count"), [(0, 0), (0b11, 2)])
def test_softmax_along_other_than_one_axis_is_refused(axes: int, count: int) -> None:
    refuses(ISoftMaxLayer(axes=axes), X, match=f"names {count} axes")


def test_softmax_along_an_axis_that_is_not_there_is_refused() -> None:
    refuses(ISoftMaxLayer(axes=4), X, match="has bits past the 2 axes of the input")


def test_derivative_of_softmax() -> None:
    def first(x: jax.Array) -> jax.Array:
        return ISoftMaxLayer(axes=1).lower(x)[0]

    assert_allclose(jax.grad(first)(jnp.zeros(2)), [0.25, -0.25], rtol=1e-6)


# ---------------------------------------------------------------------------- top-k


def test_softmax_for_nvidia_has_no_selection() -> None:
    trace = jax.jit(ISoftMaxLayer(axes=2).lower).trace(X)
    texts = [trace.lower(lowering_platforms=(platform,)).as_text() for platform in ("cuda", "cpu", "tpu")]

    assert ["is_finite" in text for text in texts] == [False, True, True]


def test_softmax_for_nvidia_is_that_of_the_reference() -> None:
    x = np.float32([[1e30, -1e30, 3], [80, 90, 89], [-np.inf, 0, 1], [0, 0, 0]])

    np.testing.assert_allclose(_plain_softmax(jax.numpy.asarray(x), 1), ISoftMaxLayer(axes=2).evaluate(x), rtol=1e-6)


LARGEST, SMALLEST = TopKOperation.MAX, TopKOperation.MIN


def best(name: str, op: TopKOperation, k: int, x: Any, values: Any, indices: Any, axes: int = 1) -> Case:
    return Case(name, ITopKLayer(op=op, k=k, axes=axes), (x,), (np.array(values, x.dtype), np.array(indices, I32)))


def signed(name: str, op: TopKOperation, k: int, x: Any, places: list[int]) -> Case:
    layer = ITopKLayer(op=op, k=k, axes=1, total_order=True)
    return Case(name, layer, (x,), (x[places], np.array(places, I32)))


NEGATIVE_NAN = np.copysign(np.float32(NAN), np.float32(-1))
SIGNED = [np.float32(number) for number in (0.0, -0.0, NEGATIVE_NAN, 1, NAN, INF, -INF, -0.0, 0.0)]
V = np.float32([3, 1, 4, 1, 5])
TIES = np.float32([2, 7, 2, 7, 7])
NANS = np.float32([1, NAN, INF, -NAN, -INF])
LONG = np.array([-(2**63), 2**63 - 1, 0, -1], I64)
TOPKS = [
    best("MAX", LARGEST, 3, V, [5, 4, 3], [4, 2, 0]),
    best("MIN", SMALLEST, 3, V, [1, 1, 3], [1, 3, 0]),
    best("the largest", LARGEST, 1, V, [5], [4]),
    best("the smallest", SMALLEST, 1, V, [1], [1]),
    best("MAX of equal elements", LARGEST, 4, TIES, [7, 7, 7, 2], [1, 3, 4, 0]),
    best("MIN of equal elements", SMALLEST, 4, TIES, [2, 2, 7, 7], [0, 2, 1, 3]),
    best("the largest of equal elements", LARGEST, 1, TIES, [7], [1]),
    best("the smallest of equal elements", SMALLEST, 1, TIES, [2], [0]),
    best("all", LARGEST, 5, V, [5, 4, 3, 1, 1], [4, 2, 0, 1, 3]),
    best("none", SMALLEST, 0, V, [], []),
    best("MAX down", LARGEST, 1, X, [[4, 5, 3]], [[1, 1, 0]]),
    best("MIN down", SMALLEST, 2, X, [[1, -2, -6], [4, 5, 3]], [[0, 0, 1], [1, 1, 0]]),
    best("MAX across", LARGEST, 2, X, [[3, 1], [5, 4]], [[2, 0], [1, 0]], axes=0b10),
    best("MIN across", SMALLEST, 1, X, [[-2], [-6]], [[1], [2]], axes=0b10),
    best("MAX in the middle", LARGEST, 2, CUBE, CUBE[:, [2, 1]], np.broadcast_to([[2], [1]], (2, 2, 4)), axes=0b10),
    best("MAX with NaNs", LARGEST, 4, NANS, [NAN, NAN, INF, 1], [1, 3, 2, 0]),
    best("MIN with NaNs", SMALLEST, 4, NANS, [NAN, NAN, -INF, 1], [1, 3, 4, 0]),
    best("the largest with NaNs", LARGEST, 1, NANS, [NAN], [1]),
    best("the smallest with NaNs", SMALLEST, 1, NANS, [NAN], [1]),
    best("MAX: zeros of either sign are equal", LARGEST, 2, np.float32([-0.0, 0.0, -1]), [0, 0], [0, 1]),
    best("MIN: zeros of either sign are equal", SMALLEST, 2, np.float32([0.0, -0.0, 1]), [0, 0], [0, 1]),
    best("the largest of minus infinities", LARGEST, 1, np.float32([-INF, -INF]), [-INF], [0]),
    best("MAX of int32", LARGEST, 2, np.array([3, -5, 4], I32), [4, 3], [2, 0]),
    best("MAX at the ends of int64", LARGEST, 4, LONG, [2**63 - 1, 0, -1, -(2**63)], [1, 2, 3, 0]),
    best("MIN at the ends of int64", SMALLEST, 3, LONG, [-(2**63), -1, 0], [0, 3, 2]),
    best("the smallest at the ends of int64", SMALLEST, 1, LONG, [-(2**63)], [0]),
    best("MIN of int8", SMALLEST, 3, np.array([127, -128, 0], I8), [-128, 0, 127], [1, 2, 0]),
    best("MIN of uint8", SMALLEST, 3, np.array([255, 0, 128], U8), [0, 128, 255], [1, 2, 0]),
    best("MAX of float16", LARGEST, 2, np.float16([1, 3, 2]), [3, 2], [1, 2]),
    best("MIN of bfloat16", SMALLEST, 2, np.array([1, 3, 2], BF16), [1, 2], [0, 2]),
    best("the largest of float64", LARGEST, 1, np.float64([1, 1 + 2**-40]), [1 + 2**-40], [1]),
    best("no row", LARGEST, 2, np.zeros((0, 3), F32), np.zeros((0, 2)), np.zeros((0, 2)), axes=0b10),
    best("no row, the largest", LARGEST, 1, np.zeros((0, 3), F32), np.zeros((0, 1)), np.zeros((0, 1)), axes=0b10),
    best("none of nothing", LARGEST, 0, np.zeros(0, F32), [], []),
    Case("int64 indices", ITopKLayer(op=LARGEST, k=2, axes=1, indices_type=DataType.INT64), (V,),
         (np.float32([5, 4]), np.array([4, 2], I64))),
    Case("int64 index of the smallest", ITopKLayer(op=SMALLEST, k=1, axes=1, indices_type=DataType.INT64), (V,),
         (np.float32([1]), np.array([1], I64))),
    Case("k as an input", ITopKLayer(op=LARGEST, k=9, axes=1), (V, np.array(2, I32)), (np.float32([5, 4]), [4, 2])),
    Case("k as an int64 input", ITopKLayer(op=SMALLEST, k=9, axes=1), (V, np.array(1, I64)), (np.float32([1]), [1])),
    Case("k left out", ITopKLayer(op=LARGEST, k=1, axes=1), (V, None), (np.float32([5]), [4])),
    best("MAX of NaN of either sign", LARGEST, 3, np.float32([1, NEGATIVE_NAN, NAN]), [NAN, NAN, 1], [1, 2, 0]),
    best("MIN of NaN of either sign", SMALLEST, 3, np.float32([1, NAN, NEGATIVE_NAN]), [NAN, NAN, 1], [1, 2, 0]),
    best("the largest of negative NaN", LARGEST, 1, np.float32([INF, NEGATIVE_NAN]), [NAN], [1]),
    best("the smallest of negative NaN", SMALLEST, 1, np.float32([INF, NEGATIVE_NAN]), [NAN], [1]),
    *(signed(f"{op.name} of {np.dtype(dtype).name} in total order", op, 9, np.array(SIGNED, dtype), places)
      for dtype in (F32, np.float64, np.float16, BF16)
      for op, places in [(LARGEST, [4, 5, 3, 0, 8, 1, 7, 6, 2]), (SMALLEST, [2, 6, 1, 7, 0, 8, 3, 5, 4])]),
    signed("the largest in total order", LARGEST, 1, np.float32([NEGATIVE_NAN, -0.0, 0.0, -1]), [2]),
    signed("the smallest in total order", SMALLEST, 1, np.float32([INF, NEGATIVE_NAN, -INF]), [1]),
    signed("integers in total order", SMALLEST, 2, np.array([3, -5, 4], I32), [1, 0]),
]  # fmt: skip


@pytest.mark.parametrize("case", TOPKS, ids=str)
def test_topk_obeys_the_laws(case: Case) -> None:
    check_laws(case)


@pytest.mark.parametrize("case", TOPKS, ids=str)
def test_indices_of_topk_have_the_type_asked_for(case: Case) -> None:
    _, indices = case.layer.evaluate(*case.inputs)

    assert indices.dtype == (I64 if case.layer.indices_type is DataType.INT64 else I32)


def test_topk_with_unknown_lengths() -> None:
    values, indices = ITopKLayer(op=LARGEST, k=4, axes=0b10).infer(TensorType(F32, (-1, -1)))

    assert (values, indices) == (TensorType(F32, (-1, 4)), TensorType(I32, (-1, 4)))


def test_topk_of_unknown_k_has_an_axis_of_unknown_length() -> None:
    values, indices = ITopKLayer(op=LARGEST, k=4, axes=0b10).infer(TensorType(F32, (2, 3)), TensorType(I32))

    assert (values.shape, indices.shape) == ((2, -1), (2, -1))


@pytest.mark.parametrize("length", [50, 9000])
def test_topk_in_total_order_is_that_of_jax(length: int) -> None:
    x = np.random.default_rng(0).choice(np.float32(SIGNED), (2, length))

    for count in (1, 5, length):
        layer = ITopKLayer(op=LARGEST, k=count, axes=0b10, total_order=True)
        wanted = jax.jit(lambda x, k=count: jax.lax.top_k(x, k)[1])(x).tolist()
        assert np.asarray(jax.jit(layer.lower)(x)[1]).tolist() == wanted
        assert layer.evaluate(x)[1].tolist() == wanted
        assert layer.host_value(x)[1].tolist() == wanted


def test_total_order_is_beyond_tensorrt() -> None:
    layer = ITopKLayer(op=LARGEST, k=1, axes=1, total_order=True)

    assert layer.beyond_tensorrt(TensorType(F32, (3,))) == "orders NaN and zeros by their signs"


PLACES = np.float32([[0, -0.0, 3, 3], [np.nan, 1, np.nan, 9], [-np.inf] * 4, [np.inf, 2, np.inf, -np.inf]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("op", [LARGEST, SMALLEST])
def test_first_of_rows_by_pairs_is_that_of_the_reference(op: TopKOperation, dtype: str) -> None:
    x = PLACES.astype(dtype) if dtype.startswith("float") else np.array([[3, 1, 3], [-9, -9, 4]], dtype)
    layer = ITopKLayer(op=op, k=1, axes=2)
    values, places = layer.evaluate(x)
    with jax.enable_x64(True):
        found, where = jax.jit(layer._best_pair)(x)

    assert where.tolist() == places.tolist()
    np.testing.assert_array_equal(found, values)


def test_first_of_rows_by_pairs_is_the_form_for_nvidia() -> None:
    trace = jax.jit(ITopKLayer(op=LARGEST, k=1, axes=2).lower).trace(X)
    texts = [trace.lower(lowering_platforms=(platform,)).as_text() for platform in ("cuda", "cpu")]
    reductions = [text.count("stablehlo.reduce(") for text in texts]

    assert reductions == [1, 0]


def test_topk_of_bool_is_refused() -> None:
    refuses(ITopKLayer(op=LARGEST, k=1, axes=1), X > 0, match="MAX takes numbers, not bool[2,3]")


def test_topk_along_two_axes_is_refused() -> None:
    refuses(ITopKLayer(op=LARGEST, k=1, axes=3), X, match="names 2 axes")


def test_topk_goes_along_any_axis() -> None:
    x = np.float32([1, 3, 2]).reshape(3, 1, 1, 1, 1)

    values, indices = np.float32([3, 2]).reshape(2, 1, 1, 1, 1), np.array([1, 2], I32).reshape(2, 1, 1, 1, 1)
    check_laws(best("the first of five", LARGEST, 2, x, values, indices))


def test_topk_of_more_than_tensorrt_takes() -> None:
    x = np.arange(5000, dtype=np.int64)[::-1].copy()

    check_laws(best("4000 of 5000", SMALLEST, 4000, x, np.arange(4000), np.arange(4999, 999, -1)))


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, np.uint32, np.uint64])
def test_topk_of_other_integers(dtype: Any) -> None:
    most = np.iinfo(dtype).max
    x = np.array([0, most, 5, most - 1], dtype)

    check_laws(best("smallest", SMALLEST, 3, x, [0, 5, most - 1], [0, 2, 3]))
    check_laws(best("largest", LARGEST, 2, x, [most, most - 1], [1, 3]))


def test_topk_of_a_negative_number_is_refused() -> None:
    refuses(ITopKLayer(op=LARGEST, k=-1, axes=1), X, match="k is -1")


def test_topk_of_a_negative_number_as_an_input_is_refused() -> None:
    refuses(ITopKLayer(op=LARGEST, k=1, axes=1), X, np.array(-1, I32), match="k is -1")


def test_topk_of_more_than_the_axis_has_is_refused() -> None:
    refuses(ITopKLayer(op=LARGEST, k=3, axes=1), X, match="k is 3, and axis 0 has only 2 elements")


def test_topk_of_more_than_the_axis_has_is_an_error_in_the_reference() -> None:
    with pytest.raises(LayerError, match="axis 0 has only 2 elements"):
        ITopKLayer(op=LARGEST, k=1, axes=1).evaluate(X, np.array(3, I32))


def test_topk_by_a_vector_is_refused() -> None:
    refuses(ITopKLayer(op=LARGEST, k=1, axes=1), X, np.array([1], I32), match="k is an int32 or int64 scalar")


def test_topk_with_indices_of_another_type_is_refused() -> None:
    layer = ITopKLayer(op=LARGEST, k=1, axes=1, indices_type=DataType.FLOAT)

    refuses(layer, X, match="but must be INT32 or INT64")


@pytest.mark.parametrize("op", TopKOperation, ids=str)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_topk_is_a_stable_sort(op: TopKOperation, k: int) -> None:
    x = np.random.default_rng(7).integers(-3, 4, (20, 9)).astype(np.float32)
    order = np.argsort(-x if op is LARGEST else x, axis=1, kind="stable")[:, :k]

    values, indices = ITopKLayer(op=op, k=k, axes=0b10).lower(x)

    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("k", [1, 2])
def test_derivative_of_topk_is_one_at_what_it_takes(k: int) -> None:
    def total(x: jax.Array) -> jax.Array:
        return jnp.sum(ITopKLayer(op=SMALLEST, k=k, axes=1).lower(x)[0])

    assert_allclose(jax.grad(total)(jnp.array([3.0, 0.0, 1.0])), [0, 1, k - 1])


# ---------------------------------------------------------------------------- in a network


def test_reduce_in_a_network() -> None:
    net = INetworkDefinition()
    x = net.add_input("x", DataType.HALF, (-1, 3, 4))

    layer = net.add_reduce(x, SUM, 0b110, False)

    assert (tuple(layer.get_output(0).shape), layer.get_output(0).dtype) == ((-1,), DataType.HALF)
    layer.keep_dims = True
    assert tuple(layer.get_output(0).shape) == (-1, 1, 1)
    layer.axes = 0
    with pytest.raises(NetworkError, match="names no axis to reduce"):
        _ = layer.get_output(0).shape


def test_product_of_a_known_shape_is_a_known_value() -> None:
    net = INetworkDefinition()
    shape = net.add_shape(net.add_input("x", DataType.FLOAT, (7, 8))).get_output(0)

    assert net.add_reduce(shape, PROD, 1, False).get_output(0).type.ints() == [56]


def test_cumulative_in_a_network() -> None:
    net = INetworkDefinition()
    x = net.add_input("x", DataType.INT32, (-1, 3))
    axis = net.add_constant((), np.array([-1], np.int32)).get_output(0)

    output = net.add_cumulative(x, axis, CumulativeOperation.SUM, True, False).get_output(0)

    assert (tuple(output.shape), output.dtype) == ((-1, 3), DataType.INT32)


def test_softmax_in_a_network() -> None:
    net = INetworkDefinition()
    layer = net.add_softmax(net.add_input("x", DataType.FLOAT, (2, 3)))

    layer.axes = 2

    assert tuple(layer.get_output(0).shape) == (2, 3)


def test_topk_in_a_network_takes_k_from_an_input() -> None:
    net = INetworkDefinition()
    layer = net.add_topk(net.add_input("x", DataType.FLOAT, (2, 30)), LARGEST, 4, 0b10, DataType.INT64)
    assert tuple(layer.get_output(0).shape) == (2, 4)

    layer.set_input(1, net.add_constant((), np.array([7], np.int32)).get_output(0))
    assert tuple(layer.get_output(1).shape) == (2, 7)

    layer.set_input(1, net.add_input("k", DataType.INT32, ()))
    assert tuple(layer.get_output(1).shape) == (2, -1)

    layer.k = 5
    assert tuple(layer.get_output(1).shape) == (2, 5)
    assert layer.get_output(1).dtype == DataType.INT64


def test_top_of_more_elements_than_int32_counts_is_refused():
    x = TensorType(np.dtype(np.int8), (2**31,))

    refuses(ITopKLayer(op=TopKOperation.MAX, k=2, axes=1), x, match="axis 0 of int8[2147483648] is indexed by int32")
