"""Gather, scatter and one-hot."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netloop.model.layers.gather import IGatherLayer, IOneHotLayer, IScatterLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, NetworkError
from netloop.values.enums import DataType, GatherMode, ReduceOperation, ScatterMode
from netloop.values.types import TensorType
from tests.support.examples import examples
from tests.support.laws import Case, assert_close, check_laws, refuses

BF16 = np.dtype(jnp.bfloat16)
F32, I32, I64 = (np.dtype(other) for other in (np.float32, np.int32, np.int64))

X = np.arange(6, dtype=np.float32).reshape(2, 3)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def ints(*values: Any, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, dtype)


def floats(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


DEFAULT = [
    Case("a vector by a vector", IGatherLayer(axis=0), (ints(10, 20, 30), ints(2, 0, 2)), ints(30, 10, 30)),
    Case("rows", IGatherLayer(axis=0), (X, ints(1, 0)), X[[1, 0]]),
    Case("columns", IGatherLayer(axis=1), (X, ints(2, 0, 1, 1)), X[:, [2, 0, 1, 1]]),
    Case("an axis from the end", IGatherLayer(axis=-1), (X, ints(0, 2)), X[:, [0, 2]]),
    Case("a scalar index drops the axis", IGatherLayer(axis=1), (X, ints(2)), X[:, 2]),
    Case("a scalar index into a vector", IGatherLayer(axis=0), (ints(10, 20, 30), ints(1)), np.int32(20)),
    Case("a negative index", IGatherLayer(axis=1), (X, ints(-1)), X[:, 2]),
    Case("negative indices", IGatherLayer(axis=0), (ints(10, 20, 30), ints(-1, -3, 0)), ints(30, 10, 10)),
    Case("indices of two axes in the middle", IGatherLayer(axis=1), (CUBE, ints([[0, 2], [1, 1]])),
         np.stack([CUBE[:, [0, 2]], CUBE[:, [1, 1]]], 1)),
    Case("int64 indices", IGatherLayer(axis=0), (X, ints([1], dtype=np.int64)), X[1:]),
    Case("bool data", IGatherLayer(axis=0), (np.array([True, False]), ints(1, 0, -2)), np.array([False, True, True])),
    Case("float16 data", IGatherLayer(axis=0), (X.astype(np.float16), ints([1])), X[1:].astype(np.float16)),
    Case("bfloat16 data", IGatherLayer(axis=0), (X.astype(BF16), ints([1])), X[1:].astype(BF16)),
    Case("float64 data", IGatherLayer(axis=0), (X.astype(np.float64), ints([1])), X[1:].astype(np.float64)),
    Case("int8 data", IGatherLayer(axis=0), (X.astype(np.int8), ints([1])), X[1:].astype(np.int8)),
    Case("no index", IGatherLayer(axis=0), (X, np.zeros((0, 2), np.int32)), np.zeros((0, 2, 3), np.float32)),
    Case("no index into nothing", IGatherLayer(axis=0), (np.zeros((0, 3), np.float32), np.zeros(0, np.int32)),
         np.zeros((0, 3), np.float32)),
    Case("another axis is empty", IGatherLayer(axis=1), (np.zeros((0, 3), np.float32), ints(2, 0)),
         np.zeros((0, 2), np.float32)),
    Case("in a batch", IGatherLayer(axis=1, num_elementwise_dims=1), (X, ints([[2, 0], [1, 1]])),
         np.float32([[2, 0], [4, 4]])),
    Case("in a batch, one index each", IGatherLayer(axis=1, num_elementwise_dims=1), (X, ints([2, -3])),
         np.float32([2, 3])),
    Case("in a batch, an axis from the end", IGatherLayer(axis=-1, num_elementwise_dims=1), (CUBE, ints([[3], [0]])),
         np.stack([CUBE[0][:, [3]], CUBE[1][:, [0]]])),
    Case("in a batch of one set of data", IGatherLayer(axis=1, num_elementwise_dims=1),
         (X[:1], ints([[2], [0], [1]])), np.float32([[2], [0], [1]])),
    Case("in a batch of one set of indices", IGatherLayer(axis=1, num_elementwise_dims=1), (X, ints([[2, 0]])),
         np.float32([[2, 0], [5, 3]])),
    Case("in an empty batch", IGatherLayer(axis=1, num_elementwise_dims=1), (X[:0], ints([[2, 0]])),
         np.zeros((0, 2), np.float32)),
    Case("one set of data for an empty batch", IGatherLayer(axis=1, num_elementwise_dims=1),
         (X[:1], np.zeros((0, 2), np.int32)), np.zeros((0, 2), np.float32)),
]  # fmt: skip

ELEMENT = GatherMode.ELEMENT
ELEMENTS = [
    Case("ONNX's first example", IGatherLayer(mode=ELEMENT, axis=1),
         (np.float32([[1, 2], [3, 4]]), ints([[0, 0], [1, 0]])), np.float32([[1, 1], [4, 3]])),
    Case("ONNX's second example, fewer rows", IGatherLayer(mode=ELEMENT, axis=0),
         (np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), ints([[1, 2, 0], [2, 0, 0]])),
         np.float32([[4, 8, 3], [7, 2, 3]])),
    Case("ONNX's third example, negative indices", IGatherLayer(mode=ELEMENT, axis=0),
         (np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), ints([[-1, -2, 0], [-2, 0, 0]])),
         np.float32([[7, 5, 3], [4, 2, 3]])),
    Case("more indices than elements", IGatherLayer(mode=ELEMENT, axis=-1), (X, ints([[0, 1, 2, 0], [2, 2, 2, 0]])),
         np.float32([[0, 1, 2, 0], [5, 5, 5, 3]])),
    Case("fewer off the axis", IGatherLayer(mode=ELEMENT, axis=1), (CUBE, ints([[[2, 0]]])),
         np.float32([[[8, 1]]])),
    Case("a vector", IGatherLayer(mode=ELEMENT), (ints(10, 20), ints(1, 1, 0)), ints(20, 20, 10)),
    Case("bool, int64 indices", IGatherLayer(mode=ELEMENT), (np.array([True, False]), ints([1], dtype=np.int64)),
         np.array([False])),
    Case("no index", IGatherLayer(mode=ELEMENT), (X, np.zeros((0, 3), np.int32)), np.zeros((0, 3), np.float32)),
    Case("nothing off the axis", IGatherLayer(mode=ELEMENT, axis=1), (np.zeros((0, 3), BF16), np.zeros((0, 5), I32)),
         np.zeros((0, 5), BF16)),
]  # fmt: skip

ND = GatherMode.ND
POSITIONS = [
    Case("ONNX's first example, elements", IGatherLayer(mode=ND), (ints([[0, 1], [2, 3]]), ints([[0, 0], [1, 1]])),
         ints(0, 3)),
    Case("ONNX's second example, rows", IGatherLayer(mode=ND), (ints([[0, 1], [2, 3]]), ints([[1], [0]])),
         ints([[2, 3], [0, 1]])),
    Case("ONNX's fifth example, a batch axis", IGatherLayer(mode=ND, num_elementwise_dims=1),
         (ints([[[0, 1], [2, 3]], [[4, 5], [6, 7]]]), ints([[1], [0]])), ints([[2, 3], [4, 5]])),
    Case("one position", IGatherLayer(mode=ND), (CUBE, ints([1, -1])), np.float32([20, 21, 22, 23])),
    Case("one position of one axis", IGatherLayer(mode=ND), (X, ints([1])), X[1]),
    Case("a grid of positions", IGatherLayer(mode=ND), (X, ints([[[0, 1], [1, 2]], [[-1, -1], [0, 0]]])),
         np.float32([[1, 5], [5, 0]])),
    Case("two batch axes", IGatherLayer(mode=ND, num_elementwise_dims=2), (CUBE, floats((2, 3, 1)).astype(I32) % 4),
         np.float32([[0, 5, 10], [15, 16, 21]])),
    Case("bool, int64", IGatherLayer(mode=ND), (np.array([True, False]), ints([[1], [0]], dtype=np.int64)),
         np.array([False, True])),
    Case("float16", IGatherLayer(mode=ND), (X.astype(np.float16), ints([[1, 1]])), np.float16([4])),
    Case("no position", IGatherLayer(mode=ND), (X, np.zeros((0, 2), I32)), np.zeros(0, np.float32)),
    Case("no batch", IGatherLayer(mode=ND, num_elementwise_dims=1), (X[:0], np.zeros((0, 4, 1), I32)),
         np.zeros((0, 4), np.float32)),
]  # fmt: skip

SCATTER_ELEMENT, SCATTER_ND = ScatterMode.ELEMENT, ScatterMode.ND
SCATTERS = [
    Case("ONNX's first example", IScatterLayer(mode=SCATTER_ELEMENT),
         (np.zeros((3, 3), F32), ints([[1, 0, 2], [0, 2, 1]]), np.float32([[1.0, 1.1, 1.2], [2.0, 2.1, 2.2]])),
         np.float32([[2.0, 1.1, 0.0], [1.0, 0.0, 2.2], [0.0, 2.1, 1.2]])),
    Case("ONNX's second example", IScatterLayer(mode=SCATTER_ELEMENT, axis=1),
         (np.float32([[1, 2, 3, 4, 5]]), ints([[1, 3]]), np.float32([[1.1, 2.1]])), np.float32([[1, 1.1, 3, 2.1, 5]])),
    Case("an axis from the end, a negative index", IScatterLayer(mode=SCATTER_ELEMENT, axis=-1),
         (X, ints([[-1], [0]]), np.float32([[7], [8]])), np.float32([[0, 1, 7], [8, 4, 5]])),
    Case("fewer rows", IScatterLayer(mode=SCATTER_ELEMENT, axis=1), (X, ints([[2]]), np.float32([[7]])),
         np.float32([[0, 1, 7], [3, 4, 5]])),
    Case("bool, int64", IScatterLayer(mode=SCATTER_ELEMENT),
         (np.array([True, True]), ints([1], dtype=np.int64), np.array([False])), np.array([True, False])),
    Case("bfloat16", IScatterLayer(mode=SCATTER_ELEMENT), (np.zeros(2, BF16), ints([1]), np.ones(1, BF16)),
         np.array([0, 1], BF16)),
    Case("no update", IScatterLayer(mode=SCATTER_ELEMENT), (X, np.zeros((0, 3), I32), np.zeros((0, 3), F32)), X),
    Case("into nothing", IScatterLayer(mode=SCATTER_ELEMENT),
         (np.zeros((0, 3), F32), np.zeros((0, 3), I32), np.zeros((0, 3), F32)), np.zeros((0, 3), F32)),
    Case("ONNX's example, elements of a vector", IScatterLayer(mode=SCATTER_ND),
         (np.float32([1, 2, 3, 4, 5, 6, 7, 8]), ints([[4], [3], [1], [7]]), np.float32([9, 10, 11, 12])),
         np.float32([1, 11, 3, 10, 9, 6, 7, 12])),
    Case("rows", IScatterLayer(mode=SCATTER_ND), (X, ints([[1]]), np.float32([[7, 8, 9]])),
         np.float32([[0, 1, 2], [7, 8, 9]])),
    Case("elements", IScatterLayer(mode=SCATTER_ND), (X, ints([[1, -1], [0, 0]]), np.float32([7, 8])),
         np.float32([[8, 1, 2], [3, 4, 7]])),
    Case("one position", IScatterLayer(mode=SCATTER_ND), (X, ints([0, 1]), np.float32(7)),
         np.float32([[0, 7, 2], [3, 4, 5]])),
    Case("a grid of positions", IScatterLayer(mode=SCATTER_ND), (ints(1, 2, 3), ints([[[0]], [[2]]]), ints([[7], [8]])),
         ints(7, 2, 8)),
    Case("no update by position", IScatterLayer(mode=SCATTER_ND), (X, np.zeros((0, 1), I64), np.zeros((0, 3), F32)), X),
]  # fmt: skip

OFF_ON = np.float32([-1, 2])
ONE_HOTS = [
    Case("a scalar", IOneHotLayer(axis=0), (ints(1), OFF_ON, ints(3)), np.float32([-1, 2, -1])),
    Case("a vector, last axis", IOneHotLayer(axis=-1), (ints(1, 0), OFF_ON, ints(3)),
         np.float32([[-1, 2, -1], [2, -1, -1]])),
    Case("a vector, first axis", IOneHotLayer(axis=0), (ints(1, 0), OFF_ON, ints(3)),
         np.float32([[-1, 2], [2, -1], [-1, -1]])),
    Case("a matrix, middle axis", IOneHotLayer(axis=1), (ints([[1, 0], [2, 2]]), ints(0, 1), ints(3)),
         np.eye(3, dtype=I32)[[[1, 0], [2, 2]]].transpose(0, 2, 1)),
    Case("a matrix, an axis from the end", IOneHotLayer(axis=-3), (ints([[1, 0], [2, 2]]), ints(0, 1), ints(3)),
         np.eye(3, dtype=I32)[[[1, 0], [2, 2]]].transpose(2, 0, 1)),
    Case("indices out of range", IOneHotLayer(axis=-1), (ints(-1, 3, 2), OFF_ON, ints(3)),
         np.float32([[-1, -1, -1], [-1, -1, -1], [-1, -1, 2]])),
    Case("int64 indices and depth, bool values", IOneHotLayer(axis=-1),
         (ints([1], dtype=I64), np.array([True, False]), ints(2, dtype=I64)), np.array([[True, False]])),
    Case("float16 values", IOneHotLayer(axis=-1), (ints([1]), np.float16([0, 1]), ints(2)), np.float16([[0, 1]])),
    Case("bfloat16 values", IOneHotLayer(axis=-1), (ints([1]), np.array([0, 1], BF16), ints(2)),
         np.array([[0, 1]], BF16)),
    Case("no index", IOneHotLayer(axis=0), (np.zeros((0, 2), I32), OFF_ON, ints(3)), np.zeros((3, 0, 2), F32)),
]  # fmt: skip


@pytest.mark.parametrize("case", DEFAULT + ELEMENTS + POSITIONS + SCATTERS + ONE_HOTS, ids=str)
def test_layer_obeys_the_laws(case: Case) -> None:
    check_laws(case)


# ---------------------------------------------------------------------------- unknown dims


@pytest.mark.parametrize(
    ("layer", "data", "indices", "shape"),
    [
        (IGatherLayer(axis=1), (-1, 3, 4), (-1, 5), (-1, -1, 5, 4)),
        (IGatherLayer(axis=0), (-1,), (), ()),
        (IGatherLayer(axis=1, num_elementwise_dims=1), (-1, 3), (4, -1), (4, -1)),
        (IGatherLayer(axis=1, num_elementwise_dims=1), (-1, 3), (1, 2), (-1, 2)),
        (IGatherLayer(mode=ELEMENT, axis=0), (3, -1), (-1, 5), (-1, 5)),
        (IGatherLayer(mode=ND), (-1, 3, 4), (-1, 2), (-1, 4)),
        (IGatherLayer(mode=ND, num_elementwise_dims=1), (-1, 3, -1), (7, 2, 1), (7, 2, -1)),
    ],
)
def test_gather_with_unknown_lengths(layer: IGatherLayer, data: Any, indices: Any, shape: Any) -> None:
    assert layer.infer(TensorType(F32, data), TensorType(I32, indices)) == TensorType(F32, shape)


@pytest.mark.parametrize(
    ("mode", "indices", "updates"),
    [
        (SCATTER_ELEMENT, (-1, 3), (5, -1)),
        (SCATTER_ELEMENT, (9, -1), (9, 2)),
        (SCATTER_ND, (-1, 1), (4, -1)),
        (SCATTER_ND, (2, 2), (-1,)),
    ],
)
def test_scatter_with_unknown_lengths(mode: ScatterMode, indices: Any, updates: Any) -> None:
    data = TensorType(F32, (-1, 3))

    assert IScatterLayer(mode=mode).infer(data, TensorType(I32, indices), TensorType(F32, updates)) == data


def test_one_hot_of_unknown_depth_has_an_axis_of_unknown_length() -> None:
    inferred = IOneHotLayer(axis=-1).infer(TensorType(I32, (-1, 2)), TensorType(F32, (-1,)), TensorType(I32))

    assert inferred == TensorType(F32, (-1, 2, -1))


# ---------------------------------------------------------------------------- out of range


OUT_OF_RANGE = [
    (IGatherLayer(axis=0), (ints(10, 20, 30), ints(0, 3, -4, -1)), [10, 0, 0, 30], "index 3"),
    (IGatherLayer(axis=0), (ints(10, 20, 30), ints(-4)), 0, "index -4"),
    (IGatherLayer(axis=1), (X, ints([2**31 - 1, 1])), [[0, 1], [0, 4]], "index 2147483647"),
    (IGatherLayer(axis=0), (np.array([True, True]), ints(0, 2)), [True, False], "axis 0 has 2 elements"),
    (IGatherLayer(axis=0), (np.zeros((0, 2), F32), ints([0])), [[0, 0]], "axis 0 has 0 elements"),
    (IGatherLayer(axis=1, num_elementwise_dims=1), (X, ints([[3], [2]])), [[0], [5]], "index 3"),
    (IGatherLayer(mode=ELEMENT, axis=1), (X, ints([[-4, 3], [0, -3]])), [[0, 0], [3, 3]], "index -4"),
    (IGatherLayer(mode=ELEMENT), (np.zeros(0, F32), ints([0])), [0], "index 0"),
    (IGatherLayer(mode=ND), (X, ints([[0, 3], [2, 0], [1, 1]])), [0, 0, 4], "index 2"),
    (IGatherLayer(mode=ND), (np.zeros((0, 2), F32), ints([[0]])), [[0, 0]], "axis 0 has 0 elements"),
    (IGatherLayer(mode=ND, num_elementwise_dims=1), (X, ints([[7], [-1]])), [0, 5], "axis 1 has 3 elements"),
    (IScatterLayer(mode=SCATTER_ELEMENT), (ints(1, 2), ints(2, -3, 0), ints(7, 8, 9)), [9, 2], "index 2"),
    (IScatterLayer(mode=SCATTER_ND), (X, ints([[0, 3], [0, 0]]), np.float32([7, 8])), [[8, 1, 2], [3, 4, 5]],
     "index 3"),
    (IScatterLayer(mode=SCATTER_ND), (np.zeros(0, F32), ints([[0]]), np.ones(1, F32)), [], "axis 0 has 0 elements"),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "inputs", "compiled", "complaint"), OUT_OF_RANGE)
def test_index_out_of_range_is_an_error_in_the_reference(
    layer: Any, inputs: Any, compiled: Any, complaint: Any
) -> None:
    with pytest.raises(LayerError, match=complaint):
        layer.evaluate(*inputs)


@pytest.mark.parametrize(("layer", "inputs", "compiled", "complaint"), OUT_OF_RANGE)
def test_index_out_of_range_reads_zero_or_is_dropped_when_compiled(
    layer: Any, inputs: Any, compiled: Any, complaint: Any
) -> None:
    lowered = np.asarray(jax.jit(layer.lower)(*inputs))

    np.testing.assert_array_equal(lowered, compiled)
    assert lowered.dtype == inputs[0].dtype


def test_last_of_duplicate_updates_stays_in_the_reference() -> None:
    by_element = IScatterLayer(mode=SCATTER_ELEMENT).evaluate(ints(0, 0), ints(1, 1), ints(7, 8))
    by_position = IScatterLayer(mode=SCATTER_ND).evaluate(ints(0, 0), ints([[1], [-1]]), ints(7, 8))

    np.testing.assert_array_equal(by_element, [0, 8])
    np.testing.assert_array_equal(by_position, [0, 8])


@pytest.mark.parametrize("mode", ScatterMode, ids=str)
def test_scatter_leaves_its_input_alone(mode: ScatterMode) -> None:
    data, indices = ints(1, 2), ints([1]) if mode is SCATTER_ELEMENT else ints([[1]])

    IScatterLayer(mode=mode).evaluate(data, indices, ints([9]))

    np.testing.assert_array_equal(data, [1, 2])


# ---------------------------------------------------------------------------- refusals


def test_gather_by_floating_point_indices_is_refused() -> None:
    refuses(IGatherLayer(), X, X, match="the indices must be int32 or int64, not float32[2,3]")


def test_gather_from_a_scalar_is_refused() -> None:
    refuses(IGatherLayer(), TensorType(F32), ints([0]), match="the data is a scalar")


def test_gather_along_an_axis_that_is_not_there_is_refused() -> None:
    refuses(IGatherLayer(axis=2), X, ints([0]), match="axis 2 is not one of the 2 axes")


def test_gather_with_two_elementwise_dims_is_refused() -> None:
    refuses(IGatherLayer(axis=2, num_elementwise_dims=2), CUBE, ints([0]), match="takes 0 or 1")


def test_gather_along_the_batch_axis_is_refused() -> None:
    refuses(IGatherLayer(axis=0, num_elementwise_dims=1), X, ints([0]), match="axis 0 is the batch axis")


def test_gather_in_a_batch_by_a_scalar_is_refused() -> None:
    refuses(IGatherLayer(axis=1, num_elementwise_dims=1), X, ints(0), match="the indices are a scalar")


def test_gather_in_batches_of_different_lengths_is_refused() -> None:
    refuses(IGatherLayer(axis=1, num_elementwise_dims=1), X, ints([0, 1, 2]), match="axis 0 has 2 and 3 elements")


def test_gather_element_of_other_rank_is_refused() -> None:
    refuses(IGatherLayer(mode=ELEMENT), X, ints([0]), match="the data has 2 axes and the indices 1")


def test_gather_element_in_a_batch_is_refused() -> None:
    refuses(IGatherLayer(mode=ELEMENT, num_elementwise_dims=1), X, ints([[0]]), match="mode ELEMENT takes 0")


def test_gather_element_with_more_indices_off_the_axis_is_refused() -> None:
    refuses(IGatherLayer(mode=ELEMENT), X, ints([[0, 0, 0, 0]]), match="axis 1 has 4 indices, but the data only 3")


def test_gather_nd_by_a_scalar_is_refused() -> None:
    refuses(IGatherLayer(mode=ND), X, ints(0), match="the indices are a scalar")


def test_gather_nd_by_positions_of_unknown_depth_is_refused() -> None:
    refuses(IGatherLayer(mode=ND), X, TensorType(I32, (2, -1)), match="has an unknown length")


@pytest.mark.parametrize("depth", [0, 3])
def test_gather_nd_of_wrong_depth_is_refused(depth: int) -> None:
    indices = TensorType(I32, (2, depth))

    refuses(IGatherLayer(mode=ND), X, indices, match=f"has {depth} elements, but must have 1 to 2")


@pytest.mark.parametrize("batch", [-1, 2])
def test_gather_nd_with_too_many_batch_axes_is_refused(batch: int) -> None:
    refuses(IGatherLayer(mode=ND, num_elementwise_dims=batch), X, ints([[0]]), match="must be 0 to 1 here")


def test_gather_nd_of_different_batches_is_refused() -> None:
    refuses(IGatherLayer(mode=ND, num_elementwise_dims=1), X, ints([[0]]), match="differ in their first 1 axes")


def test_scatter_of_another_element_type_is_refused() -> None:
    refuses(IScatterLayer(mode=SCATTER_ND), X, ints([[0]]), ints([[1, 2, 3]]), match="the updates are int32")


ADD, MULTIPLY = ReduceOperation.SUM, ReduceOperation.PROD
COMBINED_UPDATES = {ADD: [41, 2, 23], MULTIPLY: [300, 2, 60], ReduceOperation.MAX: [30, 2, 20]}
COMBINED_UPDATES[ReduceOperation.MIN] = [1, 2, 3]


def combined_updates(mode: ScatterMode, op: ReduceOperation, dtype: Any) -> Case:
    data, updates = np.array([1, 2, 3], dtype), np.array([10, 20, 30], dtype)
    indices = ints([0, 2, -3]) if mode is SCATTER_ELEMENT else ints([[0], [2], [-3]])
    layer = IScatterLayer(mode=mode, reduction=op)
    return Case(
        f"{mode}, {op} of {np.dtype(dtype)}",
        layer,
        (data, indices, updates),
        np.array(COMBINED_UPDATES[op]).astype(dtype),
    )


@pytest.mark.parametrize(
    "case",
    [
        combined_updates(mode, op, dtype)
        for mode in (SCATTER_ELEMENT, SCATTER_ND)
        for op in COMBINED_UPDATES
        for dtype in (F32, np.float16, np.int8, np.uint32, np.int64)
    ],
    ids=str,
)
def test_scatter_combines_all_updates_of_a_place(case: Case) -> None:
    check_laws(case)


def test_scatter_adds_rows() -> None:
    layer = IScatterLayer(mode=SCATTER_ND, reduction=ADD)
    rows = np.float32([[1, 1, 1], [2, 2, 2]])

    check_laws(Case("rows", layer, (X, ints([[1], [1]]), rows), X + np.float32([[0], [3]])))


def test_scatter_sums_half_types_in_float32() -> None:
    layer = IScatterLayer(mode=SCATTER_ELEMENT, reduction=ADD)
    data, updates = np.zeros(1, np.float16), np.full(3000, 1, np.float16)

    check_laws(Case("half", layer, (data, np.zeros(3000, np.int32), updates), np.float16([3000])))


def test_scatter_by_an_average_is_refused() -> None:
    layer = IScatterLayer(mode=SCATTER_ND, reduction=ReduceOperation.AVG)

    refuses(layer, X, ints([[0]]), X[:1], match="the reduction is AVG, but must be one of NONE, SUM, PROD, MAX, MIN")


def test_scatter_adds_no_truth_values() -> None:
    layer = IScatterLayer(mode=SCATTER_ND, reduction=ADD)

    refuses(layer, X > 0, ints([[0]]), X[:1] > 0, match="the reduction SUM takes numbers, not bool")


def test_scatter_by_floating_point_indices_is_refused() -> None:
    refuses(IScatterLayer(mode=SCATTER_ND), X, X, X, match="the indices must be int32 or int64")


@pytest.mark.parametrize("mode", ScatterMode, ids=str)
def test_scatter_of_updates_of_another_shape_is_refused(mode: ScatterMode) -> None:
    refuses(IScatterLayer(mode=mode), X, ints([[0]]), np.zeros((1, 2), F32), match="the updates are float32[1,2]")


def test_scatter_into_a_scalar_is_refused() -> None:
    scalar = TensorType(F32)

    refuses(IScatterLayer(mode=SCATTER_ELEMENT), scalar, TensorType(I32), scalar, match="the data is a scalar")


def test_one_hot_of_floating_point_indices_is_refused() -> None:
    refuses(IOneHotLayer(axis=0), X, OFF_ON, ints(3), match="the indices must be int32 or int64")


def test_one_hot_of_three_values_is_refused() -> None:
    refuses(IOneHotLayer(axis=0), ints([0]), np.float32([1, 2, 3]), ints(3), match="must have 2 elements")


def test_one_hot_of_a_vector_of_depths_is_refused() -> None:
    refuses(IOneHotLayer(axis=0), ints([0]), OFF_ON, ints([3]), match="the depth must be an int32 or int64 scalar")


@pytest.mark.parametrize("depth", [0, -2])
def test_one_hot_of_no_depth_is_refused(depth: int) -> None:
    refuses(IOneHotLayer(axis=0), ints([0]), OFF_ON, ints(depth), match=f"the depth is {depth}")


@pytest.mark.parametrize("axis", [-3, 2])
def test_one_hot_along_an_axis_that_is_not_there_is_refused(axis: int) -> None:
    refuses(IOneHotLayer(axis=axis), ints([0]), OFF_ON, ints(3), match=f"axis {axis} is not one of the 2 axes")


# ---------------------------------------------------------------------------- against numpy


@st.composite
def data_axis_and_indices(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray]:
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    own = draw(st.lists(st.integers(0, 3), max_size=2))
    return floats(tuple(shape)), axis, draw_indices(draw, tuple(own), shape[axis])


def draw_indices(draw: st.DrawFn, shape: tuple[int, ...], length: int) -> np.ndarray:
    size = int(np.prod(shape))
    values = draw(st.lists(st.integers(-length, length - 1), min_size=size, max_size=size))
    return np.array(values, np.int32).reshape(shape)


def check_against(layer: IGatherLayer, data: np.ndarray, indices: np.ndarray, wanted: np.ndarray) -> None:
    assert_close(layer.evaluate(data, indices), np.asarray(wanted), 0)
    assert_close(np.asarray(layer.lower(data, indices)), np.asarray(wanted), 0)


@examples(8, nightly=150)
@given(data_axis_and_indices())
def test_gather_default_is_numpy_take(drawn: tuple[np.ndarray, int, np.ndarray]) -> None:
    data, axis, indices = drawn

    check_against(IGatherLayer(axis=axis), data, indices, np.take(data, indices, axis))


@st.composite
def elements(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray]:
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    axis = draw(st.integers(0, len(shape) - 1))
    reach = [draw(st.integers(0, length + (i == axis))) for i, length in enumerate(shape)]
    return floats(tuple(shape)), axis, draw_indices(draw, tuple(reach), shape[axis])


@examples(8, nightly=150)
@given(elements())
def test_gather_element_is_numpy_take_along_axis(drawn: tuple[np.ndarray, int, np.ndarray]) -> None:
    data, axis, indices = drawn
    near = data[tuple(slice(None if i == axis else n) for i, n in enumerate(indices.shape))]

    check_against(IGatherLayer(mode=ELEMENT, axis=axis), data, indices, np.take_along_axis(near, indices, axis))


@st.composite
def positions(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    depth = draw(st.integers(1, len(shape)))
    own = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    columns = [draw_indices(draw, own, length) for length in shape[:depth]]
    return floats(tuple(shape)), np.stack(columns, -1)


@examples(8, nightly=150)
@given(positions())
def test_gather_nd_is_numpy_indexing(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    data, indices = drawn

    check_against(IGatherLayer(mode=ND), data, indices, data[tuple(np.moveaxis(indices, -1, 0))])


# ---------------------------------------------------------------------------- derivatives


def test_derivative_of_gather_counts_how_often_an_element_is_read() -> None:
    def total(data: jax.Array) -> jax.Array:
        return jnp.sum(IGatherLayer(axis=0).lower(data, ints(2, 0, 2, 9)))

    np.testing.assert_array_equal(jax.grad(total)(jnp.zeros(3)), [1, 0, 2])


def test_derivative_of_gather_nd_is_one_where_it_reads() -> None:
    def total(data: jax.Array) -> jax.Array:
        return jnp.sum(IGatherLayer(mode=ND).lower(data, ints([[1, -1]])))

    np.testing.assert_array_equal(jax.grad(total)(jnp.zeros((2, 2))), [[0, 0], [0, 1]])


def test_derivative_of_scatter_goes_to_what_stays() -> None:
    def total(data: jax.Array, updates: jax.Array) -> jax.Array:
        return jnp.sum(IScatterLayer(mode=SCATTER_ND).lower(data, ints([[1]]), updates) * jnp.arange(1.0, 4.0))

    by_data, by_updates = jax.grad(total, (0, 1))(jnp.zeros(3), jnp.zeros(1))

    np.testing.assert_array_equal(by_data, [1, 0, 3])
    np.testing.assert_array_equal(by_updates, [2])


def test_derivative_of_one_hot_counts_off_and_on() -> None:
    def total(values: jax.Array) -> jax.Array:
        return jnp.sum(IOneHotLayer(axis=0).lower(ints(1, 5), values, ints(3)))

    np.testing.assert_array_equal(jax.grad(total)(jnp.zeros(2)), [5, 1])


# ---------------------------------------------------------------------------- in a network


def test_gather_in_a_network() -> None:
    net = INetworkDefinition()
    data = net.add_input("data", DataType.FLOAT, (-1, 3))
    indices = net.add_input("indices", DataType.INT32, (5,))

    layer = net.add_gather(data, indices, 1)

    assert (tuple(layer.get_output(0).shape), layer.get_output(0).dtype) == ((-1, 5), DataType.FLOAT)
    layer.axis = 0
    assert tuple(layer.get_output(0).shape) == (5, 3)
    layer.axis, layer.num_elementwise_dims = 1, 1
    assert tuple(layer.get_output(0).shape) == (5,)


def test_gather_of_a_known_shape_is_a_known_value() -> None:
    net = INetworkDefinition()
    shape = net.add_shape(net.add_input("x", DataType.FLOAT, (7, 8))).get_output(0)
    index = net.add_constant((), np.array([-1], np.int32)).get_output(0)

    length = net.add_gather(shape, index, 0).get_output(0)

    assert length.type.ints() == [8]


def test_gather_v2_in_a_network() -> None:
    net = INetworkDefinition()
    data = net.add_input("data", DataType.FLOAT, (2, 3, 4))
    indices = net.add_input("indices", DataType.INT64, (5, 2))

    assert tuple(net.add_gather_v2(data, indices, GatherMode.ND).get_output(0).shape) == (5, 4)
    with pytest.raises(NetworkError, match="the data has 3 axes and the indices 2"):
        _ = net.add_gather_v2(data, indices, GatherMode.ELEMENT).get_output(0).shape


def test_scatter_in_a_network() -> None:
    net = INetworkDefinition()
    data = net.add_input("data", DataType.HALF, (4, 3))
    indices = net.add_input("indices", DataType.INT32, (2, 1))
    updates = net.add_input("updates", DataType.HALF, (2, 3))

    output = net.add_scatter(data, indices, updates, ScatterMode.ND).get_output(0)

    assert (tuple(output.shape), output.dtype) == ((4, 3), DataType.HALF)


def test_one_hot_in_a_network_takes_its_depth_from_a_constant() -> None:
    net = INetworkDefinition()
    indices = net.add_input("indices", DataType.INT32, (-1,))
    values = net.add_constant((2,), np.float32([0, 1])).get_output(0)
    depth = net.add_constant((), np.array([6], np.int32)).get_output(0)

    assert tuple(net.add_one_hot(indices, values, depth, -1).get_output(0).shape) == (-1, 6)
