"""Schur forms and eigenvalues of any matrices, by QR steps with shifts on complex Hessenberg forms."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.rule_table import defined
from netloop.formats.from_jax.rules.linear_algebra.decomposition import batched, element
from netloop.formats.from_jax.rules.linear_algebra.eigenvalues import adjoint, scale_of
from netloop.formats.from_jax.rules.linear_algebra.reflections import hessenberg, product_of_reflections
from netloop.values.diagnostics import require

STEPS_PER_ROW = 30
"""The most steps for each row; matrices take two or three."""
UNUSUAL = 10
"""Each step of such a number takes another shift, in case that the usual ones go round in circles."""


def schur_form(a: Any) -> tuple[Any, Any]:
    """A triangle T and a unitary matrix Q, with A = Q T Q*."""
    size = a.shape[0]
    if size < 2:
        return a, jnp.ones_like(a)
    scale = scale_of(a)
    band, taus = hessenberg(a / scale)
    basis = jnp.pad(product_of_reflections(band[1:, :-1], taus), ((1, 0), (1, 0))) + jnp.diag(np.arange(size) == 0)
    eps = jnp.finfo(a.dtype).eps

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        t, q, last, count = state
        diagonal = abs(jnp.diagonal(t))
        beside = jnp.diagonal(t, -1)
        is_small = abs(beside) <= eps * (diagonal[1:] + diagonal[:-1])
        t = jnp.where(_below_diagonal(size), jnp.pad(jnp.where(is_small, 0, beside), (1, 0))[:, None], t)
        starts = jnp.arange(1, size, dtype=np.int32)
        first = jnp.max(jnp.where(is_small & (starts <= last), starts, 0))
        shift = jnp.where(count % UNUSUAL == UNUSUAL - 1, abs(element(jnp.diagonal(t, -1), last - 1)), _shift(t, last))
        # no rotation where one row is left
        t, q = lax.fori_loop(first, last, lambda k, given: _rotated(given, k, k == first, shift), (t, q))
        return t, q, jnp.where(first == last, last - 1, last), count + 1

    def goes_on(state: tuple[Any, ...]) -> Any:
        return (state[2] > 0) & (state[3] < STEPS_PER_ROW * size)

    t, q, *_ = lax.while_loop(goes_on, step, (jnp.triu(band, -1), basis, np.int32(size - 1), np.int32(0)))
    return jnp.triu(t) * scale, q


def _below_diagonal(size: int) -> Any:
    places = np.arange(size)
    return places[:, None] == places + 1


def _shift(t: Any, last: Any) -> Any:
    """The eigenvalue of the last two rows that is closer to the last element."""
    (a, b), (c, d) = lax.dynamic_slice(t, (last - 1, last - 1), (2, 2))
    half = (a - d) / 2
    root = complex_root(half * half + b * c)
    root = jnp.where(jnp.real(jnp.conj(half) * root) < 0, -root, root)
    below = half + root
    return jnp.where(below == 0, d, d - b * c / jnp.where(below == 0, 1, below))


def complex_root(z: Any) -> Any:
    """The square root with a real part that is not negative."""
    size = abs(z)
    real = jnp.sqrt(jnp.maximum((size + jnp.real(z)) / 2, 0))
    imaginary = jnp.sqrt(jnp.maximum((size - jnp.real(z)) / 2, 0))
    return lax.complex(real, jnp.where(jnp.imag(z) < 0, -imaginary, imaginary))


def _rotated(state: tuple[Any, Any], number: Any, is_first: Any, shift: Any) -> tuple[Any, Any]:
    """Two adjacent rows and columns rotated, so that the bulge that the rotation before left is 0 again."""
    t, q = state
    own = lax.dynamic_index_in_dim(t, jnp.maximum(number - 1, 0), 1, keepdims=False)
    shifted = lax.dynamic_index_in_dim(t, number, 1, keepdims=False)
    x = jnp.where(is_first, element(shifted, number) - shift, element(own, number))
    y = jnp.where(is_first, element(shifted, number + 1), element(own, number + 1))
    scale = jnp.maximum(abs(x), abs(y))
    unit = jnp.where(scale == 0, 1, scale)
    length = unit * jnp.sqrt(abs(x / unit) ** 2 + abs(y / unit) ** 2)
    c, s = (jnp.where(scale == 0, start, array / jnp.where(scale == 0, 1, length)) for array, start in ((x, 1), (y, 0)))
    turn = jnp.stack([jnp.stack([jnp.conj(c), jnp.conj(s)]), jnp.stack([-s, c])])
    rows = turn @ lax.dynamic_slice_in_dim(t, number, 2, 0)
    t = lax.dynamic_update_slice_in_dim(t, rows, number, 0)
    arrays = [
        lax.dynamic_update_slice_in_dim(array, lax.dynamic_slice_in_dim(array, number, 2, 1) @ adjoint(turn), number, 1)
        for array in (t, q)
    ]
    return arrays[0], arrays[1]


@defined("schur", is_complex=True)
def schur(x: Any, *, compute_schur_vectors: bool, **_: Any) -> Any:
    """A triangle and a unitary matrix; of real numbers, whose form has blocks of two rows, only of one row.

    Raises:
        LayerError: the numbers are real, and there are more.
    """
    require(
        jnp.iscomplexobj(x) or x.shape[-1] < 2,
        "the Schur form of real numbers",
        "its blocks of two rows for pairs of eigenvalues have no layers",
        "compute the complex one, jax.scipy.linalg.schur(a, output='complex')",
    )
    t, q = batched(schur_form, x)
    return [t, q] if compute_schur_vectors else [t]


@defined("eig", is_complex=True)
def eig(x: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **_: Any) -> Any:
    """Eigenvalues, and left and right eigenvectors of length 1, whose largest element is a positive number."""
    is_real = not jnp.iscomplexobj(x)

    def decompose(a: Any) -> tuple[Any, ...]:
        t, q = schur_form(lax.complex(a, jnp.zeros_like(a)) if is_real else a)
        values = jnp.diagonal(t)
        if is_real:
            limit = 4 * jnp.finfo(a.dtype).eps * size_of(t)
            values = lax.complex(jnp.real(values), jnp.where(abs(jnp.imag(values)) <= limit, 0, jnp.imag(values)))
        result: list[Any] = [values]
        if compute_left_eigenvectors:
            result.append(_unit(q @ _vectors(adjoint(t)[::-1, ::-1])[::-1, ::-1]))
        if compute_right_eigenvectors:
            result.append(_unit(q @ _vectors(t)))
        return tuple(result)

    return list(batched(decompose, x))


def size_of(t: Any) -> Any:
    """The square root of the sum of squares, which does not overflow."""
    scale = scale_of(t)
    return scale * jnp.sqrt(jnp.sum(abs(t / scale) ** 2))


def _vectors(t: Any) -> Any:
    """The eigenvectors of a triangle, from the last element up."""
    size = t.shape[0]
    values, places = jnp.diagonal(t), jnp.arange(size)
    least = jnp.finfo(t.dtype).eps * size_of(t)
    least = jnp.where(least == 0, 1, least)

    def row(turn: Any, vectors: Any) -> Any:
        number = size - 1 - turn
        own = jnp.where(places > number, lax.dynamic_index_in_dim(t, number, 0, keepdims=False), 0)
        apart = element(values, number) - values
        apart = jnp.where(abs(apart) < least, least, apart)
        vector = jnp.where(places > number, -(own @ vectors) / apart, jnp.where(places == number, 1, 0).astype(t.dtype))
        return lax.dynamic_update_index_in_dim(vectors, vector, number, 0)

    return lax.fori_loop(0, size, row, jnp.zeros_like(t))


def _unit(vectors: Any) -> Any:
    """Columns of length 1, whose largest element is a positive number."""
    sizes = abs(vectors)
    vectors = vectors / jnp.max(sizes, 0)
    sizes = abs(vectors)
    largest = jnp.argmax(sizes, 0)
    phase = jnp.take_along_axis(vectors, largest[None], 0, mode="clip")
    return vectors * jnp.conj(phase) / abs(phase) / jnp.sqrt(jnp.sum(sizes**2, 0))
