"""Matrix products."""

import string
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.attention import Sum, attention
from netloop.formats.from_jax.call import ints
from netloop.formats.from_jax.patterns import untransposed
from netloop.formats.from_jax.rules import EquationCall, on_parts, primitive
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ElementWiseOperation, MatrixOperation


@primitive("dot_general")
def dot_general(call: EquationCall, a: ITensor, b: ITensor) -> ITensor:
    """Sums of products: a matrix multiplication where the axes fit one, else an einsum."""
    (left, right), (left_batch, right_batch) = call.params["dimension_numbers"]
    made_of = np.dtype(np.int32) if call.dtype == np.bool_ else call.dtype
    a, b = call.make.cast(a, made_of), call.make.cast(b, made_of)
    if not left and not left_batch and 0 in (a.type.rank, b.type.rank):
        return _cast(call, call.make.mul(a, b))
    contracted = ints(left), ints(right)
    batch = ints(left_batch), ints(right_batch)
    sides = Sum(batch[0], contracted[0]), Sum(batch[1], contracted[1])
    attention = _attention(call, a, b, sides)
    if attention is not None:
        return attention
    ops = [
        _operand(tensor.type.rank, *axes)
        for tensor, axes in zip((a, b), zip(contracted, batch, strict=True), strict=True)
    ]
    if ops[0] is not None and ops[1] is not None:
        return _cast(call, _multiplied(call, a, ops[0], b, _turned(ops[1])))
    if batch == ([], []) and contracted == ([a.type.rank - 1], [0]) and b.type.rank == 2:
        return _cast(call, call.make.matmul(a, b))
    return _cast(call, call.make.einsum(_equation(a.type.rank, b.type.rank, contracted, batch), [a, b]))


def _attention(call: EquationCall, a: ITensor, b: ITensor, sides: tuple[Sum, Sum]) -> ITensor | None:
    """The attention that ends with these sums, if nothing else reads its shares."""
    result = attention(call.facts, a, sides, b, True) if call.is_read_once(0) else None
    if result is None and call.is_read_once(1):
        result = attention(call.facts, b, (sides[1], sides[0]), a, False)
    return result


def _multiplied(call: EquationCall, a: ITensor, op_a: MatrixOperation, b: ITensor, op_b: MatrixOperation) -> ITensor:
    """A matrix multiplication that transposes its operands itself."""
    turned = [(tensor, op, untransposed(tensor)) for tensor, op in ((a, op_a), (b, op_b))]
    (a, op_a), (b, op_b) = (
        (tensor, op) if before is None or op is MatrixOperation.VECTOR else (before, _turned(op))
        for tensor, op, before in turned
    )
    return call.make.output(call.make.network.add_matrix_multiply(a, op_a, b, op_b))


def _cast(call: EquationCall, x: ITensor) -> ITensor:
    if call.dtype == np.bool_:
        zero = call.make.constant(np.zeros((), x.type.dtype))
        return call.make.logical_not(call.make.elementwise(ElementWiseOperation.EQUAL, x, zero))
    return x


def _operand(rank: int, contracted: list[int], batch: list[int]) -> MatrixOperation | None:
    """The form of a left operand [batch.., rows, contracted]; None if it has another one."""
    if batch != list(range(len(batch))) or len(contracted) != 1 or rank - len(batch) not in (1, 2):
        return None
    if rank - len(batch) == 1:
        return MatrixOperation.VECTOR
    return MatrixOperation.NONE if contracted == [rank - 1] else MatrixOperation.TRANSPOSE


def _turned(op: MatrixOperation) -> MatrixOperation:
    """The form of a right operand, [batch.., contracted, columns], that has this one as a left operand."""
    turned = {MatrixOperation.NONE: MatrixOperation.TRANSPOSE, MatrixOperation.TRANSPOSE: MatrixOperation.NONE}
    return turned.get(op, op)


def _equation(
    left: int, right: int, contracted: tuple[list[int], list[int]], batch: tuple[list[int], list[int]]
) -> str:
    """The einsum: batch axes, then the free axes of the left operand, then those of the right one."""
    letters = iter(string.ascii_lowercase)
    first = [next(letters) for _ in range(left)]
    shared = {b: first[a] for pair in (contracted, batch) for a, b in zip(*pair, strict=True)}
    second = [shared.get(axis) or next(letters) for axis in range(right)]
    together = [first[axis] for axis in batch[0]]
    free = [first[axis] for axis in range(left) if axis not in contracted[0] + batch[0]]
    free += [second[axis] for axis in range(right) if axis not in contracted[1] + batch[1]]
    return f"{''.join(first)},{''.join(second)}->{''.join(together + free)}"


@primitive("ragged_dot_general")
def ragged_product(call: EquationCall, a: ITensor, b: ITensor, sizes: ITensor) -> ITensor:
    """The product of consecutive groups of rows with a matrix each, `jax.lax.ragged_dot`; other axes have no layers."""
    numbers = call.params["ragged_dot_dimension_numbers"]
    plain = ((1,), (1,)), ((), ())
    values = tuple(tuple(map(tuple, number)) for number in numbers.dot_dimension_numbers)
    is_plain = values == plain and [*numbers.lhs_ragged_dimensions] == [0] and [*numbers.rhs_group_dimensions] == [0]
    require(is_plain and a.type.rank == 2, "the groups are along other axes than those of jax.lax.ragged_dot")

    def product(rows: Any, matrices: Any, sizes: Any) -> Any:
        places = jnp.arange(rows.shape[0])[:, None]
        ends = jnp.cumsum(sizes)
        group = jnp.sum((places >= ends).astype(np.int32), 1)
        chosen = jnp.take(matrices, jnp.minimum(group, matrices.shape[0] - 1), 0, mode="clip")
        array = jnp.einsum("mk,mkn->mn", rows, chosen, preferred_element_type=call.dtype)
        return jnp.where(places < ends[-1], array, 0).astype(call.dtype)

    return call.define(product, a, b, sizes)[0]


@on_parts("dot_general")
def _sum_of_products(a: Any, b: Any, c: Any, d: Any, *, dimension_numbers: Any, precision: Any, **_: Any) -> Any:
    def product(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, dimension_numbers, precision)

    return product(a, c) - product(b, d), product(a, d) + product(b, c)
