"""Decompositions of matrices and solutions of linear equations, by loops over rows and columns."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.from_jax.rule_table import defined, refuse


def _batched(function: Callable[..., Any], *arrays: Any) -> Any:
    """A function of matrices, for each of a batch of them."""
    for _ in range(arrays[0].ndim - 2):
        function = jax.vmap(function)
    return function(*arrays)


@defined("cholesky")
def cholesky(x: Any, **_: Any) -> Any:
    """The lower triangle whose product with its transpose is the matrix, column by column."""

    def factor(a: Any) -> Any:
        rows = jnp.arange(a.shape[0])

        def column(number: Any, made: Any) -> Any:
            row = lax.dynamic_index_in_dim(made, number, 0, keepdims=False)
            left = lax.dynamic_index_in_dim(a, number, 1, keepdims=False) - made @ row
            root = jnp.sqrt(lax.dynamic_index_in_dim(left, number, 0, keepdims=False))
            return lax.dynamic_update_index_in_dim(made, jnp.where(rows >= number, left / root, 0), number, 1)

        return lax.fori_loop(0, a.shape[0], column, jnp.zeros_like(a))

    return _batched(factor, (x + jnp.swapaxes(x, -1, -2)) / 2)


@defined("triangular_solve")
def triangular_solve(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    """The solution of equations with a triangle, row by row."""
    if transpose_a:
        a, lower = jnp.swapaxes(a, -1, -2), not lower
    if not left_side:
        a, b, lower = jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2), not lower

    def solve(a: Any, b: Any) -> Any:
        size = a.shape[0]
        below = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
        diagonal = jnp.ones(size, a.dtype) if unit_diagonal else jnp.diagonal(a)

        def row(step: Any, made: Any) -> Any:
            number = step if lower else size - 1 - step
            right, known, scale = (
                lax.dynamic_index_in_dim(each, number, 0, keepdims=False) for each in (b, below, diagonal)
            )
            return lax.dynamic_update_index_in_dim(made, (right - known @ made) / scale, number, 0)

        return lax.fori_loop(0, size, row, jnp.zeros_like(b))

    made = _batched(solve, a, b)
    return made if left_side else jnp.swapaxes(made, -1, -2)


@defined("lu")
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

        made, order, pivots = lax.fori_loop(
            np.int32(0), np.int32(least), column, (a, places, jnp.zeros(least, np.int32))
        )
        return made, pivots, order

    return list(_batched(factor, x))


@defined("lu_pivots_to_permutation")
def permutation_of_pivots(pivots: Any, *, permutation_size: int) -> Any:
    """The order of rows that swaps one after the other make."""

    def order(own: Any) -> Any:
        places = jnp.arange(permutation_size, dtype=np.int32)

        def swap(order: Any, given: Any) -> tuple[Any, None]:
            number, pivot = given
            turned = jnp.where(places == number, pivot, jnp.where(places == pivot, number, places))
            return jnp.take(order, turned, mode="clip"), None

        return lax.scan(swap, places, (jnp.arange(own.shape[0], dtype=np.int32), own))[0]

    for _ in range(pivots.ndim - 1):
        order = jax.vmap(order)
    return order(pivots)


@defined("qr")
def qr(x: Any, *, full_matrices: bool, **_: Any) -> Any:
    """An orthogonal matrix and a triangle, by Householder's reflections."""

    def factor(a: Any) -> Any:
        rows, columns = a.shape
        places = jnp.arange(rows)

        def reflect(number: Any, state: Any) -> Any:
            q, r = state
            own = jnp.where(places >= number, lax.dynamic_index_in_dim(r, number, 1, keepdims=False), 0)
            pivot = lax.dynamic_index_in_dim(own, number, 0, keepdims=False)
            size = jnp.sqrt(jnp.sum(own * own))
            rest = jnp.sum(jnp.where(places > number, own * own, 0))
            beta = jnp.where(rest == 0, pivot, jnp.where(pivot < 0, size, -size))
            axis = own - jnp.where(places == number, beta, 0)
            length = jnp.sum(axis * axis)
            scaled = jnp.where(length == 0, 0, 2 / jnp.where(length == 0, 1, length)) * axis
            return q - jnp.outer(q @ axis, scaled), r - jnp.outer(scaled, axis @ r)

        start = jnp.eye(rows, dtype=a.dtype), a
        q, r = lax.fori_loop(0, min(rows - 1, columns) if rows > 0 else 0, reflect, start)
        r = jnp.triu(r)
        return (q, r) if full_matrices else (q[:, : min(rows, columns)], r[: min(rows, columns)])

    return list(_batched(factor, x))


@defined("tridiagonal_solve")
def tridiagonal_solve(lower: Any, diagonal: Any, upper: Any, right: Any, **_: Any) -> Any:
    """The solution of equations with three diagonals, forwards and backwards."""

    def solve(a: Any, b: Any, c: Any, d: Any) -> Any:
        def forward(before: Any, row: Any) -> Any:
            (ratio, value), (a, b, c, d) = before, row
            scale = b - a * ratio
            made = c / scale, (d - a * value) / scale
            return made, made

        first = jnp.zeros((), b.dtype), jnp.zeros(d.shape[1:], d.dtype)
        _, (ratios, values) = lax.scan(forward, first, (a, b, c, d))

        def backward(after: Any, row: Any) -> Any:
            made = row[1] - row[0] * after
            return made, made

        return lax.scan(backward, jnp.zeros_like(d[0]), (ratios, values), reverse=True)[1]

    for _axis in range(lower.ndim - 1):
        solve = jax.vmap(solve)
    return solve(lower, diagonal, upper, right)


refuse(
    "no layer computes eigenvalues or singular values, and their signs and order differ between libraries; "
    "a power iteration in lax.fori_loop has layers",
    "eig", "eigh", "svd", "schur", "hessenberg", "tridiagonal", "geqrf", "geqp3", "ormqr", "householder_product",
    "symmetric_product", "cholesky_update",
)  # fmt: skip
