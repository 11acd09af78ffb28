"""Decompositions of matrices and solutions of linear equations, by loops over rows and columns."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.rule_table import defined, refuse


def batched(function: Callable[..., Any], *arrays: Any) -> Any:
    """A function of a matrix and others, for each of a batch of them."""
    for _ in range(arrays[0].ndim - 2):
        function = jax.vmap(function)
    return function(*arrays)


def matrix_transpose(x: Any) -> Any:
    """Matrices with rows and columns swapped."""
    return jnp.swapaxes(x, -1, -2)


def element(x: Any, number: Any) -> Any:
    """An element of a vector."""
    return lax.dynamic_index_in_dim(x, number, 0, keepdims=False)


def conjugated(x: Any) -> Any:
    """The complex conjugates; real numbers as they are."""
    return lax.conj(x) if jnp.iscomplexobj(x) else x


@defined("cholesky", is_complex=True)
def cholesky(x: Any, **_: Any) -> Any:
    """The lower triangle whose product with its transpose, conjugated, is the matrix, column by column."""

    def factor(a: Any) -> Any:
        rows = jnp.arange(a.shape[0])

        def column(number: Any, lower: Any) -> Any:
            row = lax.dynamic_index_in_dim(lower, number, 0, keepdims=False)
            left = lax.dynamic_index_in_dim(a, number, 1, keepdims=False) - lower @ conjugated(row)
            root = jnp.sqrt(lax.dynamic_index_in_dim(left, number, 0, keepdims=False))
            return lax.dynamic_update_index_in_dim(lower, jnp.where(rows >= number, left / root, 0), number, 1)

        return lax.fori_loop(0, a.shape[0], column, jnp.zeros_like(a))

    return batched(factor, (x + conjugated(jnp.swapaxes(x, -1, -2))) / 2)


@defined("triangular_solve", is_complex=True)
def triangular_solve(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    """The solution of equations with a triangle, row by row."""
    if conjugate_a:
        a = conjugated(a)
    if transpose_a:
        a, lower = jnp.swapaxes(a, -1, -2), not lower
    if not left_side:
        a, b, lower = jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2), not lower

    def solve(a: Any, b: Any) -> Any:
        size = a.shape[0]
        below = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
        diagonal = jnp.ones(size, a.dtype) if unit_diagonal else jnp.diagonal(a)

        def row(step: Any, solution: Any) -> Any:
            number = step if lower else size - 1 - step
            right, solved, scale = (
                lax.dynamic_index_in_dim(value, number, 0, keepdims=False) for value in (b, below, diagonal)
            )
            return lax.dynamic_update_index_in_dim(solution, (right - solved @ solution) / scale, number, 0)

        return lax.fori_loop(0, size, row, jnp.zeros_like(b))

    result = batched(solve, a, b)
    return result if left_side else jnp.swapaxes(result, -1, -2)


@defined("lu", is_complex=True)
def lu(x: Any, **_: Any) -> Any:
    """The triangles whose product is the matrix with its rows in another order, and that order."""

    def factor(a: Any) -> Any:
        rows, columns = a.shape
        places = jnp.arange(rows, dtype=np.int32)
        least = min(rows, columns)

        def column(number: Any, state: Any) -> Any:
            a, order, pivots = state
            own = lax.dynamic_index_in_dim(a, number, 1, keepdims=False)
            pivot = jnp.argmax(jnp.where(places >= number, abs(own), -1)).astype(np.int32)
            swapped = jnp.where(places == number, pivot, jnp.where(places == pivot, number, places))
            a, order = jnp.take(a, swapped, 0, mode="clip"), jnp.take(order, swapped, mode="clip")
            pivots = jnp.where(jnp.arange(least) == number, pivot, pivots)
            row = lax.dynamic_index_in_dim(a, number, 0, keepdims=False)
            own = lax.dynamic_index_in_dim(a, number, 1, keepdims=False)
            scale = lax.dynamic_index_in_dim(row, number, 0, keepdims=False)
            factors = jnp.where(places > number, own / jnp.where(scale == 0, 1, scale), 0)
            right = jnp.where(jnp.arange(columns) > number, row, 0)
            a = a - jnp.outer(factors, right)
            return (
                jnp.where((jnp.arange(columns) == number) & (places > number)[:, None], factors[:, None], a),
                order,
                pivots,
            )

        start = a, places, jnp.zeros(least, np.int32)
        result, order, pivots = lax.fori_loop(np.int32(0), np.int32(least), column, start) if least else start
        return result, pivots, order

    return list(batched(factor, x))


@defined("lu_pivots_to_permutation")
def permutation_of_pivots(pivots: Any, *, permutation_size: int) -> Any:
    """The order of rows that swaps one after the other make."""

    def order(own: Any) -> Any:
        places = jnp.arange(permutation_size, dtype=np.int32)

        def swap(order: Any, swapped: Any) -> tuple[Any, None]:
            number, pivot = swapped
            turned = jnp.where(places == number, pivot, jnp.where(places == pivot, number, places))
            return jnp.take(order, turned, mode="clip"), None

        return lax.scan(swap, places, (jnp.arange(own.shape[0], dtype=np.int32), own))[0]

    for _ in range(pivots.ndim - 1):
        order = jax.vmap(order)
    return order(pivots)


@defined("tridiagonal_solve")
def tridiagonal_solve(lower: Any, diagonal: Any, upper: Any, right: Any, **_: Any) -> Any:
    """The solution of equations with three diagonals, forwards and backwards."""

    def solve(a: Any, b: Any, c: Any, d: Any) -> Any:
        def forward(before: Any, row: Any) -> Any:
            (ratio, value), (a, b, c, d) = before, row
            scale = b - a * ratio
            result = c / scale, (d - a * value) / scale
            return result, result

        first = jnp.zeros((), b.dtype), jnp.zeros(d.shape[1:], d.dtype)
        _, (ratios, values) = lax.scan(forward, first, (a, b, c, d))

        def backward(after: Any, row: Any) -> Any:
            result = row[1] - row[0] * after
            return result, result

        return lax.scan(backward, jnp.zeros_like(d[0]), (ratios, values), reverse=True)[1]

    for _axis in range(lower.ndim - 1):
        solve = jax.vmap(solve)
    return solve(lower, diagonal, upper, right)


@defined("symmetric_product")
def symmetric_product(a: Any, c: Any, *, alpha: float, beta: float, **_: Any) -> Any:
    """The product of a matrix and its transpose, and another matrix, both scaled."""
    return alpha * (a @ matrix_transpose(a)) + beta * c


@defined("cholesky_update")
def cholesky_update(r: Any, w: Any, **_: Any) -> Any:
    """The triangle R of R'R + ww', by a rotation for each row."""

    def row(number: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        r, w = state
        own = lax.dynamic_index_in_dim(r, number, 0, keepdims=False)
        x, y = element(own, number), element(w, number)
        size = jnp.where(y == 0, 1, jnp.hypot(x, y))
        cosine, sine = jnp.where(y == 0, 1, x / size), jnp.where(y == 0, 0, y / size)
        return lax.dynamic_update_index_in_dim(r, cosine * own + sine * w, number, 0), cosine * w - sine * own

    return lax.fori_loop(0, w.shape[0], row, (r, w))[0]


refuse("it is a step of jax.numpy.linalg.qr with pivoting, which has layers", "geqp3")
