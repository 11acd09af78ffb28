"""Linear values of states, and their values in all iterations by prefix scans.

Two linear steps in a row, ``a1 * s + b1`` and then ``a2 * s + b2``, are again one, ``a2 * a1 * s + (a2 * b1 + b2)``, so
that all iterations together need as many steps after each other as their number has digits. Of several states ``s``
and ``b`` are vectors, and ``a`` is a matrix, for each element of the states.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from netloop.model.layers.pointwise import IElementWiseLayer, ISelectLayer, IUnaryLayer
from netloop.values.enums import ElementWiseOperation as Op

CHUNK = 16
"""The number of steps that are made one after the other before the results of chunks are joined."""


class Linear(NamedTuple):
    """The values of a sum of factors times states and a term, for all iterations along axis 0; an int is exact.

    A value that depends on no state has factors of 0.
    """

    factors: tuple[Any, ...]
    term: Any

    @property
    def is_free(self) -> bool:
        """Whether it depends on no state."""
        return all(_is(factor, 0) for factor in self.factors)


def joined(layer: Any, operands: Sequence[Linear]) -> Linear:
    """The linear value that a layer computes of others."""
    if isinstance(layer, ISelectLayer):
        (_, condition), a, b = operands
        return _of_parts(partial(_chosen, condition), a, b)
    if isinstance(layer, IUnaryLayer):
        return _of_parts(operator.neg, operands[0])
    if not isinstance(layer, IElementWiseLayer):
        return operands[0]
    a, b = operands
    if layer.op is Op.SUM:
        return _of_parts(_plus, a, b)
    if layer.op is Op.SUB:
        return _of_parts(lambda part, other: _plus(part, -other), a, b)
    if layer.op is Op.DIV:
        return _of_parts(lambda part: 0 if _is(part, 0) else part / b.term, a)
    scaled, number = (b, a.term) if a.is_free else (a, b.term)
    return _of_parts(lambda part: _times(part, number), scaled)


def _of_parts(function: Callable[..., Any], *operands: Linear) -> Linear:
    """The linear value whose factors and term are a function of those of others."""
    parts = [(*operand.factors, operand.term) for operand in operands]
    *factors, term = map(function, *parts)
    return Linear(tuple(factors), term)


def _chosen(condition: Any, a: Any, b: Any) -> Any:
    return a if isinstance(a, int) and _is(b, a) else jnp.where(condition, a, b)


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int) and value == number


def _plus(a: Any, b: Any) -> Any:
    return b if _is(a, 0) else a if _is(b, 0) else a + b


def _times(a: Any, b: Any) -> Any:
    return 0 if _is(a, 0) or _is(b, 0) else b if _is(a, 1) else a if _is(b, 1) else a * b


# ---------------------------------------------------------------------------- scans


def linear_scan(steps: Sequence[Linear], firsts: Sequence[jax.Array], trips: int) -> list[jax.Array]:
    """The values of states from their first ones on, along axis 0, one for each of ``trips`` iterations.

    ``steps`` are the next values. Their factors and terms are ints, or one array for each iteration along axis 0, or
    one row for all.
    """
    shape, dtype = (trips, *firsts[0].shape), firsts[0].dtype

    def whole(value: Any) -> jax.Array:
        return jnp.broadcast_to(jnp.asarray(value, dtype), shape)

    if len(steps) > 1:
        rows = [jnp.stack([whole(part) for part in (*step.factors, step.term)], 1) for step in steps]
        return _coupled_scan(jnp.stack(rows, 1), firsts)
    (first,), (((factor,), term),) = firsts, steps
    if _is(factor, 0):
        return [whole(term)]
    if _is(factor, 1):
        return [whole(first) if _is(term, 0) else first + lax.cumsum(whole(term), 0)]
    if _is(term, 0):
        return [first * lax.cumprod(whole(factor), 0)]
    factors, sums = _composed(whole(factor), whole(term))
    return [factors * first + sums]


def _coupled_scan(steps: jax.Array, firsts: Sequence[jax.Array]) -> list[jax.Array]:
    """The values of several states, of which ``steps`` are the factors and the term, [iteration, state, factor, ...].

    By doubling, with one kernel or two in each round: for arrays of each factor instead of one for all, XLA compiled
    two states for three times as long, and four for minutes.
    """
    trips, number, reach = len(steps), len(firsts), 1
    row = (1, *steps.shape[1:])
    nothing = jnp.broadcast_to(
        jnp.eye(number, number + 1, dtype=steps.dtype).reshape(*row[:3], *[1] * (steps.ndim - 3)), row
    )
    total = partial(jnp.sum, axis=2, dtype=steps.dtype)
    while reach < trips:
        # the iterations that end before each step, as many as are joined already
        before = jnp.concatenate([jnp.broadcast_to(nothing, (reach, *row[1:])), steps[:-reach]])
        factors, terms = steps[:, :, :number], steps[:, :, number:]
        own = jnp.pad(terms, [(0, 0), (0, 0), (number, 0), *[(0, 0)] * (steps.ndim - 3)])
        steps, reach = total(factors[:, :, :, None] * before[:, None]) + own, 2 * reach
    results = total(steps[:, :, :number] * jnp.stack(firsts)) + steps[:, :, number]
    return [results[:, place] for place in range(number)]


def _composed(factors: jax.Array, terms: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The factor and term of the first iterations together, for each number of them.

    In chunks one step after the other, and then over the chunks: ``lax.associative_scan`` writes and reads twice as
    many bytes, and XLA compiles it three times as long.
    """
    trips = len(factors)
    if trips <= CHUNK:
        return _sequential(factors, terms, 0)
    rest = -trips % CHUNK
    pads = [(0, rest), *[(0, 0)] * (factors.ndim - 1)]
    chunks = (-1, CHUNK, *factors.shape[1:])
    inner_factors, inner_terms = _sequential(
        jnp.pad(factors, pads, constant_values=1).reshape(chunks), jnp.pad(terms, pads).reshape(chunks), 1
    )
    outer_factors, outer_terms = _composed(inner_factors[:, -1], inner_terms[:, -1])
    # the state before a chunk is that after the chunk before it
    before_factors = jnp.concatenate([jnp.ones_like(outer_factors[:1]), outer_factors[:-1]])[:, None]
    before_terms = jnp.concatenate([jnp.zeros_like(outer_terms[:1]), outer_terms[:-1]])[:, None]
    results = inner_factors * before_factors, inner_factors * before_terms + inner_terms
    joined = (array.reshape(-1, *factors.shape[1:])[:trips] for array in results)
    return next(joined), next(joined)


def _sequential(factors: jax.Array, terms: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
    """The same along an axis, one step after the other."""
    rows = [[lax.index_in_dim(array, place, axis, keepdims=False) for place in range(array.shape[axis])]
            for array in (factors, terms)]  # fmt: skip
    steps = list(zip(*rows, strict=True))
    results = [steps[0]]
    for factor, term in steps[1:]:
        before_factor, before_term = results[-1]
        results.append((factor * before_factor, factor * before_term + term))
    first, second = zip(*results, strict=True)
    return jnp.stack(first, axis), jnp.stack(second, axis)
