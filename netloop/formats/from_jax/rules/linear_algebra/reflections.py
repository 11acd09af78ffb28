"""Decompositions by Householder's reflections, in LAPACK's forms: columns of reflections below a triangle or a band.

A reflection is I - tau v v*, where v is 0 before its pivot and 1 there. LAPACK keeps the rest of v in the column that
the reflection makes 0, and the factors tau apart.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.rule_table import defined
from netloop.formats.from_jax.rules.linear_algebra.decomposition import batched, element, matrix_transpose


def reflection(column: Any, pivot: Any) -> tuple[Any, Any, Any]:
    """Householder vector, tau and new pivot, as LAPACK's larfg returns them.

    H* [alpha, x] = [beta, 0], with beta real, and of the other sign than alpha.
    """
    places = jnp.arange(column.shape[0])
    alpha, after = element(column, pivot), jnp.where(places > pivot, column, 0)
    largest = jnp.maximum(jnp.max(abs(after), initial=0), abs(alpha))
    unit = jnp.where(largest == 0, 1, largest)
    size = unit * jnp.sqrt(jnp.sum(abs(jnp.where(places >= pivot, column, 0) / unit) ** 2))
    beta = jnp.where(jnp.real(alpha) < 0, size, -size).astype(column.dtype)
    is_none = jnp.max(abs(after), initial=0) == 0
    is_none &= jnp.imag(alpha) == 0
    tau = jnp.where(is_none, 0, (beta - alpha) / jnp.where(is_none, 1, beta))
    vector = jnp.where(places == pivot, 1, after / jnp.where(is_none, 1, alpha - beta))
    return jnp.where(is_none & (places > pivot), 0, vector), tau, jnp.where(is_none, alpha, beta)


def reflected(x: Any, vector: Any, tau: Any) -> Any:
    """Rows reflected: (I - tau v v*) x."""
    return x - jnp.outer(tau * vector, jnp.conj(vector) @ x)


def reflected_columns(x: Any, vector: Any, tau: Any) -> Any:
    """Columns reflected: x (I - tau v v*)."""
    return x - jnp.outer(x @ vector, tau * jnp.conj(vector))


def kept(column: Any, vector: Any, beta: Any, pivot: Any) -> Any:
    """The column in LAPACK's packed form: the new pivot, below it the Householder vector."""
    places = jnp.arange(column.shape[0])
    return jnp.where(places < pivot, column, jnp.where(places == pivot, beta, vector))


def vector_of(a: Any, number: Any, pivot: Any) -> Any:
    """The vector that a column keeps."""
    places = jnp.arange(a.shape[0])
    own = lax.dynamic_index_in_dim(a, number, 1, keepdims=False)
    return jnp.where(places > pivot, own, jnp.where(places == pivot, 1, 0).astype(a.dtype))


def put(a: Any, column: Any, number: Any) -> Any:
    """A matrix with another column."""
    return lax.dynamic_update_index_in_dim(a, column, number, 1)


# ---------------------------------------------------------------------- triangles


@defined("geqrf", is_complex=True)
def triangle_and_reflections(x: Any, **_: Any) -> Any:
    """The triangle of a QR decomposition, with the reflections below it, and their factors."""
    return list(batched(lambda a: _factored(a, False)[:2], x))


def _factored(a: Any, pivoting: bool) -> tuple[Any, Any, Any]:
    """A triangle with reflections, their factors, and the order of the columns: the longest one left is always next."""
    rows, columns = a.shape
    count = min(rows, columns)
    places = jnp.arange(columns, dtype=np.int32)

    def step(number: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        a, taus, order = state
        if pivoting:
            below = jnp.where((jnp.arange(rows) >= number)[:, None], abs(a), 0)
            longest = jnp.argmax(jnp.where(places >= number, jnp.sum(below * below, 0), -1)).astype(np.int32)
            swapped = jnp.where(places == number, longest, jnp.where(places == longest, number, places))
            a, order = jnp.take(a, swapped, 1, mode="clip"), jnp.take(order, swapped, mode="clip")
        own = lax.dynamic_index_in_dim(a, number, 1, keepdims=False)
        vector, tau, beta = reflection(own, number)
        right = jnp.where(places > number, reflected(a, vector, jnp.conj(tau)), a)
        return (
            put(right, kept(own, vector, beta, number), number),
            jnp.where(jnp.arange(count) == number, tau, taus),
            order,
        )

    start = a, jnp.zeros(count, a.dtype), places
    return lax.fori_loop(np.int32(0), np.int32(count), step, start) if count else start


@defined("householder_product", is_complex=True)
def product_of_reflections(x: Any, factors: Any, **_: Any) -> Any:
    """The first columns of the product of reflections."""

    def product(a: Any, taus: Any) -> Any:
        def step(turn: Any, matrix: Any) -> Any:
            number = taus.shape[0] - 1 - turn
            return reflected(matrix, vector_of(a, number, number), element(taus, number))

        start = jnp.eye(*a.shape, dtype=a.dtype)
        return lax.fori_loop(0, taus.shape[0], step, start) if taus.shape[0] else start

    return batched(product, x, factors)


@defined("ormqr", is_complex=True)
def reflected_matrix(x: Any, factors: Any, right: Any, *, left: bool, transpose: bool, **_: Any) -> Any:
    """A matrix times the product of reflections, on either side."""

    def product(a: Any, taus: Any, c: Any) -> Any:
        count = taus.shape[0]

        def step(turn: Any, matrix: Any) -> Any:
            number = count - 1 - turn if left != transpose else turn
            tau = element(taus, number)
            vector = vector_of(a, number, number)
            return (reflected if left else reflected_columns)(matrix, vector, jnp.conj(tau) if transpose else tau)

        return lax.fori_loop(0, count, step, c)

    return batched(product, x, factors, right)


@defined("qr", is_complex=True)
def qr(x: Any, *, full_matrices: bool, pivoting: bool = False, **_: Any) -> Any:
    """An orthogonal matrix and a triangle; with pivoting, of the columns in an order that is returned too."""

    def factor(a: Any) -> tuple[Any, ...]:
        rows, columns = a.shape
        result, taus, order = _factored(a, pivoting)
        width = rows if full_matrices else min(rows, columns)
        wide = jnp.pad(result, ((0, 0), (0, max(width - columns, 0))))[:, :width]
        parts = product_of_reflections(wide, taus), jnp.triu(result[:width])
        return (*parts, order) if pivoting else parts

    return list(batched(factor, x))


# ---------------------------------------------------------------------- bands


@defined("hessenberg", is_complex=True)
def hessenberg(x: Any, **_: Any) -> Any:
    """The similar matrix that is 0 below its subdiagonal, with the reflections there, and their factors."""

    def factor(a: Any) -> tuple[Any, Any]:
        size = a.shape[0]
        places = jnp.arange(size)

        def step(number: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
            a, taus = state
            own = lax.dynamic_index_in_dim(a, number, 1, keepdims=False)
            vector, tau, beta = reflection(own, number + 1)
            turned = reflected(reflected_columns(a, vector, tau), vector, jnp.conj(tau))
            result = put(jnp.where(places > number, turned, a), kept(own, vector, beta, number + 1), number)
            return result, jnp.where(jnp.arange(size - 1) == number, tau, taus)

        return lax.fori_loop(0, size - 1, step, (a, jnp.zeros(size - 1, a.dtype)))

    return list(batched(factor, x))


@defined("tridiagonal", is_complex=True)
def tridiagonal(x: Any, *, lower: bool, **_: Any) -> Any:
    """The similar matrix with three diagonals of a Hermitian one: with the reflections, its diagonals, the factors."""

    def factor(matrix: Any) -> tuple[Any, ...]:
        a = matrix if lower else matrix[::-1, ::-1]
        size = a.shape[0]
        places = jnp.arange(size)

        def step(number: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            a, reflections, taus = state
            own = lax.dynamic_index_in_dim(a, number, 1, keepdims=False)
            vector, tau, beta = reflection(own, number + 1)
            turned = reflected(reflected_columns(a, vector, tau), vector, jnp.conj(tau))
            inside = (places > number)[:, None] & (places > number)
            column = jnp.where(places == number, own, kept(jnp.zeros_like(own), vector, beta, number + 1))
            return (
                jnp.where(inside, turned, a),
                put(reflections, column, number),
                jnp.where(jnp.arange(size - 1) == number, tau, taus),
            )

        start = hermitian(a, lower=True), jnp.zeros_like(a), jnp.zeros(size - 1, a.dtype)
        turned, result, taus = lax.fori_loop(0, size - 1, step, start)
        diagonal = jnp.real(jnp.diagonal(turned))
        result = jnp.where(
            places[:, None] == places, diagonal.astype(a.dtype), jnp.where(places[:, None] > places, result, a)
        )
        beside = jnp.real(jnp.diagonal(result, -1))
        if lower:
            return result, diagonal, beside, taus
        return result[::-1, ::-1], diagonal[::-1], beside[::-1], taus[::-1]

    return list(batched(factor, x))


def hermitian(a: Any, *, lower: bool) -> Any:
    """The Hermitian matrix with this triangle."""
    below = jnp.tril(a, -1) if lower else matrix_transpose(jnp.conj(jnp.triu(a, 1)))
    size = jnp.arange(a.shape[-1])
    diagonal = jnp.where(size[:, None] == size, jnp.real(a), 0).astype(a.dtype)
    return below + diagonal + matrix_transpose(jnp.conj(below))
