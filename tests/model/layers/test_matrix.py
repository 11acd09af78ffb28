"""Matrix multiply and einsum."""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netloop.model.layers.matrix import IDeterminantLayer, IEinsumLayer, IMatrixMultiplyLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import NetworkError
from netloop.values.enums import DataType, MatrixOperation
from netloop.values.types import TensorType
from tests.support.examples import examples
from tests.support.laws import Case, assert_close, check_laws, refuses

BF16 = np.dtype(jnp.bfloat16)
F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
NONE, TRANSPOSE, VECTOR = (MatrixOperation[name] for name in ("NONE", "TRANSPOSE", "VECTOR"))

A = np.float32([[1, 2, 3], [4, 5, 6]])
B = np.float32([[1, 0], [2, -1], [0, 3]])
AB = np.float32([[5, 7], [14, 13]])
V3 = np.float32([1, 10, 100])


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def product(name: str, a: Any, op0: MatrixOperation, b: Any, op1: MatrixOperation, expected: Any) -> Case:
    return Case(name, IMatrixMultiplyLayer(op0=op0, op1=op1), (a, b), expected)


BATCH_A, BATCH_B = numbers(4, 2, 3), numbers(4, 3, 5, seed=1)
PRODUCTS = [
    product("two matrices", A, NONE, B, NONE, AB),
    product("first transposed", A.T.copy(), TRANSPOSE, B, NONE, AB),
    product("second transposed", A, NONE, B.T.copy(), TRANSPOSE, AB),
    product("both transposed", A.T.copy(), TRANSPOSE, B.T.copy(), TRANSPOSE, AB),
    product("matrix by vector", A, NONE, V3, VECTOR, np.float32([321, 654])),
    product("transposed matrix by vector", A, TRANSPOSE, np.float32([1, 10]), VECTOR, np.float32([41, 52, 63])),
    product("vector by matrix", V3, VECTOR, B, NONE, np.float32([21, 290])),
    product("vector by transposed matrix", V3, VECTOR, A, TRANSPOSE, np.float32([321, 654])),
    product("vector by vector", V3, VECTOR, np.float32([1, 2, 3]), VECTOR, np.float32(321)),
    product("batches", BATCH_A, NONE, BATCH_B, NONE, np.matmul(BATCH_A, BATCH_B)),
    product("one matrix by a batch", BATCH_A[:1], NONE, BATCH_B, NONE, np.matmul(BATCH_A[:1], BATCH_B)),
    product("a batch by one matrix", BATCH_A, NONE, BATCH_B[:1], NONE, np.matmul(BATCH_A, BATCH_B[:1])),
    product("batches of two axes, each stretched", numbers(2, 1, 2, 3), NONE, numbers(1, 3, 3, 2, seed=1), NONE,
            np.matmul(numbers(2, 1, 2, 3), numbers(1, 3, 3, 2, seed=1))),
    product("a batch of matrices by a batch of vectors", BATCH_A, NONE, numbers(4, 3), VECTOR,
            np.stack([m @ v for m, v in zip(BATCH_A, numbers(4, 3), strict=True)])),
    product("a batch of vectors by one transposed matrix", numbers(4, 5), VECTOR, BATCH_B[:1], TRANSPOSE,
            numbers(4, 5) @ BATCH_B[0].T),
    product("a batch of vectors by a batch of vectors", numbers(4, 5), VECTOR, numbers(4, 5, seed=1), VECTOR,
            np.sum(numbers(4, 5) * numbers(4, 5, seed=1), 1)),
    product("float16 in float32", np.full((1, 4096), 1, np.float16), NONE, np.full((4096, 1), 1, np.float16), NONE,
            np.float16([[4096]])),
    product("bfloat16 in float32", np.ones(1000, BF16), VECTOR, np.ones(1000, BF16), VECTOR, np.array(1000, BF16)),
    product("float16 past its range, and back", np.float16([60000, 60000]), VECTOR, np.float16([1, -1]), VECTOR,
            np.float16(0)),
    product("float64", A.astype(np.float64), NONE, B.astype(np.float64), NONE, AB.astype(np.float64)),
    product("nothing to sum", np.zeros((2, 0), F32), NONE, np.zeros((0, 3), F32), NONE, np.zeros((2, 3), F32)),
    product("no row", np.zeros((0, 3), F32), NONE, B, NONE, np.zeros((0, 2), F32)),
    product("no matrix", np.zeros((0, 2, 3), F32), NONE, B[None], NONE, np.zeros((0, 2, 2), F32)),
    product("an infinity", np.float32([[np.inf, 0]]), NONE, np.float32([[1, 0], [1, 1]]), NONE,
            np.float32([[np.inf, np.nan]])),
]  # fmt: skip


@pytest.mark.parametrize("case", PRODUCTS, ids=str)
def test_matrix_multiply_obeys_the_laws(case: Case) -> None:
    check_laws(case)


@pytest.mark.parametrize(
    ("op0", "a", "op1", "b", "shape"),
    [
        (NONE, (-1, 3), NONE, (-1, -1), (-1, -1)),
        (TRANSPOSE, (-1, 3), NONE, (7, 2), (3, 2)),
        (VECTOR, (-1,), TRANSPOSE, (-1, 7), (-1,)),
        (VECTOR, (-1,), VECTOR, (3,), ()),
        (NONE, (-1, 2, 3), NONE, (4, 3, 5), (4, 2, 5)),
        (NONE, (-1, 2, 3), NONE, (1, 3, 5), (-1, 2, 5)),
    ],
)
def test_matrix_multiply_with_unknown_lengths(
    op0: MatrixOperation, a: Any, op1: MatrixOperation, b: Any, shape: Any
) -> None:
    inferred = IMatrixMultiplyLayer(op0=op0, op1=op1).infer(TensorType(F32, a), TensorType(F32, b))

    assert inferred == TensorType(F32, shape)


def test_product_of_truth_values_is_refused() -> None:
    layer = IMatrixMultiplyLayer(op0=NONE, op1=NONE)

    refuses(layer, A > 0, B > 0, match="operand 0 is bool[2,3], but must be numeric")


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
def test_product_of_integers_is_exact_and_wraps(dtype: Any) -> None:
    """The expected numbers are Python's integers, of which numpy keeps the lowest bits."""
    a, b = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (2, 3, 4), dtype, endpoint=True)[:, :, :3]
    rows, columns = a.astype(object), b.astype(object).T
    expected = [[sum(x * y for x, y in zip(row, column, strict=True)) for column in columns.T] for row in rows]
    bits = 8 * np.dtype(dtype).itemsize
    low = np.array([[value % 2**bits for value in row] for row in expected], np.uint64).astype(dtype)

    check_laws(product("integers", a, NONE, b, TRANSPOSE, low))
    check_laws(Case("einsum", IEinsumLayer(equation="ij,kj->ik"), (a, b), low))


def test_product_of_two_element_types_is_refused() -> None:
    layer = IMatrixMultiplyLayer(op0=NONE, op1=NONE)

    refuses(layer, A, B.astype(np.float16), match="the operands are float32[2,3] and float16[3,2]")


@pytest.mark.parametrize("op", [NONE, TRANSPOSE])
def test_vector_read_as_a_matrix_is_refused(op: MatrixOperation) -> None:
    refuses(IMatrixMultiplyLayer(op0=op, op1=NONE), V3, B, match="the first operand, float32[3], is not a matrix")
    refuses(IMatrixMultiplyLayer(op0=NONE, op1=op), A, V3, match="the second operand, float32[3], is not a matrix")


def test_scalar_read_as_a_vector_is_refused() -> None:
    layer = IMatrixMultiplyLayer(op0=NONE, op1=VECTOR)

    refuses(layer, A, TensorType(F32), match="the second operand is a scalar")


def test_product_of_lengths_that_differ_is_refused() -> None:
    layer = IMatrixMultiplyLayer(op0=TRANSPOSE, op1=NONE)

    refuses(layer, A, B, match="read as TRANSPOSE, have 2 elements, and the columns of the second")


def test_product_of_batches_of_other_rank_is_refused() -> None:
    layer = IMatrixMultiplyLayer(op0=NONE, op1=NONE)

    refuses(layer, BATCH_A, B, match="the first operand has 1 axes before its matrix, and the second 0")


def test_product_of_a_batch_and_one_vector_is_refused() -> None:
    layer = IMatrixMultiplyLayer(op0=NONE, op1=VECTOR)

    refuses(layer, BATCH_A, V3, match="and the second 0 before its vector")


def test_product_of_batches_of_other_length_is_refused() -> None:
    layer = IMatrixMultiplyLayer(op0=NONE, op1=NONE)

    refuses(layer, BATCH_A, BATCH_B[:3], match="axis 0 has 4 and 3 elements")


def test_derivative_of_a_product_is_the_other_factor() -> None:
    def total(a: jax.Array) -> jax.Array:
        return jnp.sum(IMatrixMultiplyLayer(op0=VECTOR, op1=NONE).lower(a, B))

    np.testing.assert_array_equal(jax.grad(total)(jnp.zeros(3)), [1, 1, 3])


def test_matrix_multiply_in_a_network() -> None:
    net = INetworkDefinition()
    x = net.add_input("x", DataType.FLOAT, (-1, 3))
    w = net.add_constant((5, 3), np.ones((5, 3), np.float32)).get_output(0)

    layer = net.add_matrix_multiply(x, NONE, w, TRANSPOSE)

    assert tuple(layer.get_output(0).shape) == (-1, 5)
    layer.op1 = NONE
    with pytest.raises(NetworkError, match="have 3 elements"):
        _ = layer.get_output(0).shape


# ---------------------------------------------------------------------------- einsum


def einsum(equation: str, *operands: np.ndarray) -> Case:
    expected = np.einsum(equation, *operands)
    return Case(equation, IEinsumLayer(equation=equation), operands, np.asarray(expected))


X, Y, SQUARE, CUBE = numbers(2, 3), numbers(3, 4, seed=1), numbers(3, 3, seed=2), numbers(2, 3, 4, seed=3)
EINSUMS = [
    einsum("ij,jk->ik", X, Y),
    einsum("ij,jk->ki", X, Y),
    einsum("ij,jk", X, Y),
    einsum("ba,cb", X, Y[:, :2].copy()),
    einsum(" i j , j k -> i k ", X, Y),
    einsum("ij->ji", X),
    einsum("ba", X),
    einsum("ij->", X),
    einsum("ij->j", X),
    einsum("ii->i", SQUARE),
    einsum("ii", SQUARE),
    einsum("ii,i->i", SQUARE, V3),
    einsum("iij->ji", numbers(3, 3, 2)),
    einsum("i,j->ij", V3, X[0]),
    einsum("i,i->", V3, X[0]),
    einsum("i,i", V3, X[0]),
    einsum("bij,bjk->bik", BATCH_A, BATCH_B),
    einsum("bhqd,bhkd->bhqk", numbers(2, 2, 3, 4), numbers(2, 2, 5, 4, seed=1)),
    einsum("i,ij,j->", X[:, 0].copy(), X, V3),
    einsum("ij,jk,kl->il", X, SQUARE, Y),
    einsum("...ij,...jk->...ik", CUBE, numbers(1, 4, 2, seed=4)),
    einsum("...ij,...jk->...ik", numbers(3, 1, 2, 3), numbers(5, 3, 2, seed=4)),
    einsum("...ij,jk->...ik", CUBE, numbers(4, 2, seed=4)),
    einsum("...i,...i", CUBE, CUBE),
    einsum("i...->...", CUBE),
    einsum("i...j->j...i", CUBE),
    einsum("i...,...i->...", numbers(3, 2), numbers(5, 2, 3)),
    einsum("...->...", CUBE),
    einsum("...", CUBE),
    einsum("...,...->...", np.array(2, F32), CUBE),
    einsum("...i->i...", V3),
    einsum("i...->i", V3),
    einsum("i->i...", V3),
    einsum(",i->i", np.array(2, F32), V3),
    einsum("->", np.array(2, F32)),
    einsum("ij,jk->ik", X.astype(np.float64), Y.astype(np.float64)),
    einsum("ij,jk->ik", np.zeros((2, 0), F32), np.zeros((0, 4), F32)),
    einsum("ij,jk->ik", np.zeros((0, 3), F32), Y),
    einsum("...i,...i->...", np.zeros((0, 3), F32), numbers(1, 3)),
    einsum("ij,jk->ik", numbers(2, 1), numbers(1, 3)),
    Case("float16 in float32", IEinsumLayer(equation="i,i->"), (np.ones(4096, np.float16), np.ones(4096, np.float16)),
         np.float16(4096)),
    Case("a sum of float16 in float32", IEinsumLayer(equation="i->"), (np.ones(4096, np.float16),), np.float16(4096)),
    Case("a sum of bfloat16 in float32", IEinsumLayer(equation="ij->j"), (np.ones((1000, 2), BF16),),
         np.array([1000, 1000], BF16)),
    Case("three of bfloat16", IEinsumLayer(equation="i,j,k->k"),
         (np.ones(40, BF16), np.ones(25, BF16), np.ones(2, BF16)), np.array([1000, 1000], BF16)),
    Case("a diagonal of float16", IEinsumLayer(equation="ii->i"), (SQUARE.astype(np.float16),),
         np.diag(SQUARE).astype(np.float16)),
]  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: f"{case}, {[x.shape for x in case.inputs]}")
def test_einsum_obeys_the_laws(case: Case) -> None:
    check_laws(case)


@pytest.mark.parametrize(
    ("equation", "shapes", "shape"),
    [
        ("ij,jk->ik", [(-1, 3), (-1, 4)], (-1, 4)),
        ("ij,ij->ij", [(-1, 3), (2, -1)], (2, 3)),
        ("ii->i", [(-1, 3)], (3,)),
        ("...i,...i->...", [(-1, 3), (4, 3)], (4,)),
        ("...i,...i->...", [(-1, 3), (1, 3)], (-1,)),
    ],
)
def test_einsum_with_unknown_lengths(equation: str, shapes: Any, shape: Any) -> None:
    inferred = IEinsumLayer(equation=equation).infer(*(TensorType(F32, shape) for shape in shapes))

    assert inferred == TensorType(F32, shape)


@pytest.mark.parametrize(
    ("equation", "operands", "complaint"),
    [
        ("ij,jk->ik", [X], "has 2 operands, and the layer 1 inputs"),
        ("ij", [X, X], "has 1 operands, and the layer 2 inputs"),
        ("ij->ij", [V3], "'ij' in 'ij->ij' labels 2 axes, and its operand has 1"),
        ("i->i", [X], "'i' in 'i->i' labels 1 axes, and its operand has 2"),
        ("i...jk->i", [X], "labels 3 axes, and its operand has 2"),
        ("ij,jk->ik", [X, X], "the label 'j' is used for axes of lengths 3 and 2"),
        ("ii", [X], "the label 'i' is used for axes of lengths 2 and 3"),
        ("i,i->i", [V3, V3[:1]], "the label 'i' is used for axes of lengths 3 and 1"),
        ("...i,...i->...", [X, numbers(3, 3)], "axis 0 has 2 and 3 elements"),
        ("ij->ik", [X], "the result of 'ij->ik' has the label 'k', which no operand has"),
        ("ij->ii", [X], "the result of 'ij->ii' has the label 'i' twice"),
        ("...j->j", [X], "the result of '...j->j' has no '...', and the operands have 1 axes"),
        ("IJ->J", [X], "'IJ' in the equation 'IJ->J' is not a list of labels"),
        ("i..j->i", [X], "is not a list of labels"),
        ("...i...->i", [X], "is not a list of labels"),
        ("ij->i->j", [X], "'i->j' in the equation 'ij->i->j' is not a list of labels"),
        ("ij>j", [X], "is not a list of labels"),
        ("ij->i,j", [X], "is not a list of labels"),
        ("", [X], "labels 0 axes, and its operand has 2"),
        ("i->i", [], "the layer has no operands"),
        ("i->i", [V3 > 0], "operand 0 is bool[3], but must be numeric"),
        ("i,i->i", [V3, V3.astype(BF16)], "the operands are float32[3] and bfloat16[3]"),
    ],
)
def test_einsum_without_a_meaning_is_refused(equation: str, operands: Any, complaint: str) -> None:
    refuses(IEinsumLayer(equation=equation), *operands, match=complaint)


@st.composite
def equations(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    lengths = {label: draw(st.integers(0, 3)) for label in "abcd"}
    terms = draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=3))
    labels = sorted(set("".join(terms)))
    result = draw(st.sampled_from([None, *labels])) if labels else None
    operands = [numbers(*(lengths[label] for label in term), seed=len(term)) for term in terms]
    return ",".join(terms) + (f"->{result}" if result else ""), operands


@examples(20)
@given(equations())
def test_einsum_is_numpy_einsum(drawn: tuple[str, list[np.ndarray]]) -> None:
    equation, operands = drawn
    layer, wanted = IEinsumLayer(equation=equation), np.asarray(np.einsum(equation, *operands))

    assert_close(np.asarray(layer.evaluate(*operands)), wanted, 1e-5)
    assert_close(np.asarray(layer.lower(*operands)), wanted, 1e-5)


def test_derivative_of_einsum_is_the_other_factor() -> None:
    def total(a: jax.Array) -> jax.Array:
        return IEinsumLayer(equation="ij,ij->").lower(a, X)

    np.testing.assert_array_equal(jax.grad(total)(jnp.zeros((2, 3))), X)


def test_einsum_in_a_network() -> None:
    net = INetworkDefinition()
    a = net.add_input("a", DataType.HALF, (-1, 3))
    b = net.add_input("b", DataType.HALF, (3, 4))

    layer = net.add_einsum([a, b], "ij,jk->ki")

    assert (tuple(layer.get_output(0).shape), layer.get_output(0).dtype) == ((4, -1), DataType.HALF)
    layer.equation = "ij,jk->"
    assert tuple(layer.get_output(0).shape) == ()
    layer.equation = "ij,jk->il"
    with pytest.raises(NetworkError, match="has the label 'l', which no operand has"):
        _ = layer.get_output(0).shape


# ---------------------------------------------------------------------------- determinants

DETERMINANTS = [
    Case("of two by two", IDeterminantLayer(), (np.float32([[1, 2], [3, 4]]),), np.float32(-2), 1e-5),
    Case("of three by three", IDeterminantLayer(), (np.array([[2.0, 0, 1], [1, 3, 2], [1, 1, 2]]),),
         np.array(6.0), 1e-12),
    Case("of the rows turned", IDeterminantLayer(), (np.float32([[0, 1], [1, 0]]),), np.float32(-1)),
    Case("of a batch", IDeterminantLayer(), (np.float32([[[[2]], [[5]]]]),), np.float32([[2, 5]])),
    Case("in half", IDeterminantLayer(), (np.float16([[300, 0], [0, 200]]),), np.float16(60000)),
    Case("of nothing", IDeterminantLayer(), (np.zeros((3, 0, 0), F32),), np.ones(3, F32)),
    Case("of no matrix", IDeterminantLayer(), (np.zeros((0, 2, 2), F32),), np.ones(0, F32)),
]  # fmt: skip


@pytest.mark.parametrize("case", DETERMINANTS, ids=str)
def test_determinant_obeys_the_laws(case: Case) -> None:
    check_laws(case)


def test_determinant_is_the_sum_over_all_orders_of_the_columns() -> None:
    x = np.random.default_rng(3).normal(size=(4, 4))
    orders = itertools.permutations(range(4))
    signed = [(np.linalg.det(np.eye(4)[list(order)]).round(), order) for order in orders]
    expected = sum(sign * math.prod(x[i, j] for i, j in enumerate(order)) for sign, order in signed)

    check_laws(Case("by definition", IDeterminantLayer(), (x,), np.array(expected), 1e-12))


def test_determinant_of_integers_is_refused() -> None:
    refuses(IDeterminantLayer(), np.eye(2, dtype=np.int32), match="the input is floating-point, not int32[2,2]")


@pytest.mark.parametrize("shape", [(2, 3), (3,), ()])
def test_determinant_of_no_square_is_refused(shape: tuple[int, ...]) -> None:
    refuses(IDeterminantLayer(), np.zeros(shape, F32), match="its last two axes must be equal")
