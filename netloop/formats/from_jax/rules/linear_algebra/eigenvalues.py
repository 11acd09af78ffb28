"""Eigenvalues of Hermitian matrices, and singular values, by Jacobi's rotations, until only rounding errors are left.

Pairs of rows and columns that are next to be rotated are disjoint, so that each step rotates all of them at once: row i
of the upper half with row i of the lower half. Then the rows change places as the players of a tournament do, in which
everyone meets everyone. Signs of vectors, which LAPACK does not promise either, are those that the rotations give.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.rule_table import defined
from netloop.formats.from_jax.rules.linear_algebra.decomposition import batched, matrix_transpose
from netloop.formats.from_jax.rules.linear_algebra.reflections import hermitian, qr

MOST_SWEEPS = 30
"""Each sweep rotates every pair once. Matrices of some hundred rows took about ten."""


def adjoint(x: Any) -> Any:
    """Transposed and conjugated matrices."""
    return jnp.conj(matrix_transpose(x))


def next_round(half: int) -> Any:
    """The places that the rows of the next round of the tournament come from."""
    top, bottom = list(range(half)), list(range(half, 2 * half))
    if half == 1:
        return np.array(top + bottom)
    return np.array([top[0], bottom[0], *top[1:-1], *bottom[1:], top[-1]])


def rotation(a: Any, b: Any, d: Any) -> tuple[Any, Any, Any]:
    """The cosines, the sines with their phases, and the tangents that make matrices [[a, b], [b*, d]] diagonal."""
    size = abs(b)
    some = jnp.where(size == 0, 1, size)
    ratio = (d - a) / (2 * some)
    tangent = jnp.where(ratio < 0, -1, 1) / (abs(ratio) + jnp.sqrt(1 + jnp.minimum(abs(ratio), 1e18) ** 2))
    tangent = jnp.where(size == 0, 0, tangent).astype(a.dtype)
    cosine = 1 / jnp.sqrt(1 + tangent * tangent)
    return cosine, tangent * cosine * (b / some), tangent * size


def rotated(x: Any, cosine: Any, sine: Any) -> Any:
    """Columns of the left half rotated with those of the right half."""
    left, right = jnp.split(x, 2, -1)
    return jnp.concatenate([cosine * left - jnp.conj(sine) * right, sine * left + cosine * right], -1)


def until_small(sweep: Callable[[Any], tuple[Any, Any]], state: Any, limit: Any) -> Any:
    """The state after sweeps: until the remainder off the diagonal is within a limit."""

    def body(carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        state, left = sweep(carry[0])
        return state, left, carry[2] + 1

    def goes_on(carry: tuple[Any, Any, Any]) -> Any:
        return (carry[1] > limit) & (carry[2] < MOST_SWEEPS)

    return lax.while_loop(goes_on, body, (state, jnp.full_like(limit, np.inf), np.int32(0)))[0]


def scale_of(x: Any) -> Any:
    """The largest size of an element; 1 if all are 0."""
    largest = jnp.max(abs(x))
    return jnp.where(largest == 0, 1, largest)


# ---------------------------------------------------------------------- eigenvalues


@defined("eigh", is_complex=True)
def eigh(x: Any, *, lower: bool, subset_by_index: Any = None, **_: Any) -> Any:
    """Eigenvectors and the eigenvalues in ascending order of Hermitian matrices, given by a triangle."""
    first, last = subset_by_index or (0, x.shape[-1])

    def decompose(a: Any) -> tuple[Any, Any]:
        scale = scale_of(a)
        values, vectors = _diagonal_form(hermitian(a, lower=lower) / scale)
        order = jnp.argsort(values)[first:last]
        return jnp.take(vectors, order, 1, mode="clip"), scale * jnp.take(values, order, mode="clip")

    return list(batched(decompose, x) if x.shape[-1] else (x, jnp.zeros(x.shape[:-1], jnp.real(x).dtype)))


def _diagonal_form(a: Any) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors, in any order."""
    size = a.shape[0]
    half = (size + 1) // 2
    spare = 2 * half - size
    a = jnp.pad(a, ((0, spare), (0, spare)))
    order, places = next_round(half), np.arange(2 * half)
    is_pair = abs(places[:, None] - places) == half
    is_diagonal = places[:, None] == places

    def turn(_: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        a, vectors = state
        upper, under = jnp.split(jnp.real(jnp.diagonal(a)), 2)
        cosine, sine, change = rotation(upper, jnp.diagonal(a, half), under)
        turned = adjoint(rotated(adjoint(rotated(a, cosine, sine)), cosine, sine))
        diagonal = jnp.concatenate([upper - change, under + change]).astype(a.dtype)
        turned = jnp.where(is_diagonal, diagonal, jnp.where(is_pair, 0, turned))
        return turned[order][:, order], rotated(vectors, cosine, sine)[:, order]

    def sweep(state: Any) -> tuple[Any, Any]:
        result = lax.fori_loop(0, max(2 * half - 1, 1), turn, state)
        return result, jnp.sum(jnp.where(is_diagonal, 0, abs(result[0])) ** 2)

    limit = (jnp.finfo(a.dtype).eps / 4) ** 2 * jnp.sum(abs(a) ** 2)
    a, vectors = until_small(sweep, (a, jnp.eye(2 * half, dtype=a.dtype)), limit)
    return jnp.real(jnp.diagonal(a))[:size], vectors[:size, :size]


# ---------------------------------------------------------------------- singular values


@defined("svd", is_complex=True)
def svd(x: Any, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any = None, **_: Any) -> Any:
    """Singular values in descending order, and the vectors on both sides."""
    rows, columns = x.shape[-2:]
    first, last = subset_by_index or (0, min(rows, columns))

    def decompose(a: Any) -> tuple[Any, ...]:
        scale = scale_of(a)
        left, values, right = _singular_parts(a / scale, full_matrices, compute_uv)
        values = scale * values[first:last]
        if not compute_uv:
            return (values,)
        whole = subset_by_index is None
        return values, left if whole else left[:, first:last], right if whole else right[first:last]

    if min(rows, columns) == 0:
        return _of_nothing(x, full_matrices, compute_uv)
    return list(batched(decompose, x))


def _of_nothing(x: Any, full_matrices: bool, compute_uv: bool) -> list[Any]:
    """The decomposition of matrices without elements."""
    *batch, rows, columns = x.shape
    wide = (rows, columns) if full_matrices else (0, 0)
    parts = [jnp.zeros((*batch, 0), jnp.real(x).dtype)]
    if compute_uv:
        parts += [jnp.broadcast_to(jnp.eye(rows, wide[0], dtype=x.dtype), (*batch, rows, wide[0]))]
        parts += [jnp.broadcast_to(jnp.eye(wide[1], columns, dtype=x.dtype), (*batch, wide[1], columns))]
    return parts


def _singular_parts(a: Any, full: bool, vectors: bool) -> tuple[Any, Any, Any]:
    rows, columns = a.shape
    if rows < columns:
        left, values, right = _singular_parts(adjoint(a), full, vectors)
        return (adjoint(right), values, adjoint(left)) if vectors else (left, values, right)
    outer = qr(a, full_matrices=full) if rows > columns else None
    left, values, right = _orthogonal_columns(a if outer is None else outer[1][:columns], vectors)
    if outer is not None and vectors:
        spare = outer[0].shape[1] - columns
        rest = jnp.diag(np.arange(columns + spare) >= columns).astype(a.dtype)
        wide = jnp.pad(left, ((0, spare), (0, spare))) + rest
        left = outer[0] @ wide
    return left, values, right


def _orthogonal_columns(a: Any, vectors: bool) -> tuple[Any, Any, Any]:
    """The singular values and vectors of a square matrix, whose columns are rotated until they are orthogonal."""
    size = a.shape[1]
    half = (size + 1) // 2
    order = next_round(half)
    columns = jnp.pad(a, ((0, 0), (0, 2 * half - size)))

    def turn(_: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        columns, right, most = state
        one, other = jnp.split(columns, 2, -1)
        a, d = jnp.sum(abs(one) ** 2, 0), jnp.sum(abs(other) ** 2, 0)
        product = jnp.sum(jnp.conj(one) * other, 0)
        lengths = jnp.sqrt(a) * jnp.sqrt(d)
        cosine, sine, _ = rotation(a, product, d)
        share = jnp.max(jnp.where(lengths == 0, 0, abs(product) / jnp.where(lengths == 0, 1, lengths)))
        turned = [rotated(value, cosine, sine)[:, order] for value in (columns, right)]
        return turned[0], turned[1], jnp.maximum(most, share)

    def sweep(state: Any) -> tuple[Any, Any]:
        *values, most = lax.fori_loop(0, max(2 * half - 1, 1), turn, (*state, jnp.zeros((), jnp.real(a).dtype)))
        return tuple(values), most

    limit = jnp.asarray(np.sqrt(size) * jnp.finfo(a.dtype).eps, jnp.real(a).dtype)
    columns, right = until_small(sweep, (columns, jnp.eye(2 * half, dtype=a.dtype)), limit)
    columns, right = columns[:, :size], right[:size, :size]
    values = jnp.sqrt(jnp.sum(abs(columns) ** 2, 0))
    down = jnp.argsort(-values)
    values = jnp.take(values, down, mode="clip")
    if not vectors:
        return a, values, a
    left, triangle = qr(jnp.take(columns, down, 1, mode="clip"), full_matrices=True)
    signs = jnp.where(jnp.real(jnp.diagonal(triangle)) < 0, -1, 1).astype(a.dtype)
    return left * signs, values, adjoint(jnp.take(right, down, 1, mode="clip"))
