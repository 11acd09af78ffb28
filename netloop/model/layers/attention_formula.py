"""Helper of ``attention.py``: the computation, as a reference of single dot products and as a lowering to JAX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.layers.extreme_forms import highest_along
from netloop.model.layers.lax_forms import quotient
from netloop.model.layers.matrix import PRECISION
from netloop.model.layers.packed_sequences import sequences_of, tokens_of
from netloop.values.diagnostics import require
from netloop.values.enums import AttentionIOForm, AttentionNormalizationOp, CausalMaskKind, DataType
from netloop.values.types import HALVES, Array, Shape, wide

PADDED, PACKED = AttentionIOForm.PADDED_BHND, AttentionIOForm.PACKED_NHD
SOFTMAX = AttentionNormalizationOp.SOFTMAX

# fmt: off
QUANTIZED: dict[DataType, Any] = {
    DataType.INT8: lambda xp, x: xp.clip(xp.round(x), -128, 127),
    DataType.FP8:  lambda xp, x: xp.clip(x, -448, 448).astype(jnp.float8_e4m3fn).astype(x.dtype),
}
# fmt: on
"""Rounding to the types that weights can be quantized to."""


@dataclass(frozen=True)
class Extras:
    """The optional inputs of an attention, None if missing."""

    mask: Any = None
    query_lengths: Any = None
    key_value_lengths: Any = None
    quantize_scale: Any = None


@dataclass(frozen=True)
class Attending:
    """The computation of an attention with the given attributes."""

    norm_op: AttentionNormalizationOp
    causal_kind: CausalMaskKind
    query_form: AttentionIOForm
    key_value_form: AttentionIOForm
    quantized_to: DataType

    # ------------------------------------------------------------------ the reference

    def evaluate(self, query: Array, key: Array, value: Array, extras: Extras) -> Array:
        """The output as a numpy array."""
        queries = _sequences(wide(query), self.query_form, extras.query_lengths)
        keys, values = (
            _sequences(wide(array), self.key_value_form, extras.key_value_lengths) for array in (key, value)
        )
        arrays = [
            self._sequence(q, k, v, extras.quantize_scale, mask)
            for q, k, v, mask in zip(queries, keys, values, _masks(extras.mask, queries), strict=True)
        ]
        if self.query_form is PACKED:
            arrays = [token for array in arrays for token in array.swapaxes(0, 1)]
        return np.stack(arrays).astype(query.dtype) if arrays else query.copy()

    def _sequence(self, query: Array, key: Array, value: Array, scale: Array | None, mask: Array | None) -> Array:
        """The output for one sequence."""
        sharing = len(query) // len(key)
        result = np.zeros(query.shape, query.dtype)
        for head in range(len(query)):
            weights = self._weights(query[head], key[head // sharing], None if mask is None else mask[head])
            weights = weights if scale is None else self._quantized(np, weights, wide(scale))
            result[head] = weights @ value[head // sharing]
        return result

    def _weights(self, query: Array, key: Array, mask: Array | None) -> Array:
        """The weight of each key for each query, for one head of one sequence."""
        result = np.zeros((len(query), len(key)), query.dtype)
        for i in range(len(query)):
            for j in range(len(key)):
                result[i, j] = query[i] @ key[j] if self._may_attend(i, j, len(query), len(key)) else -np.inf
            if mask is not None:
                row = mask[i, : len(key)]
                result[i] = np.where(row, result[i], -np.inf) if row.dtype == np.bool_ else result[i] + wide(row)
            result[i] = self._normalized(result[i])
        return result

    def _may_attend(self, i: int, j: int, queries: int, keys: int) -> bool:
        match self.causal_kind:
            case CausalMaskKind.NONE:
                return True
            case CausalMaskKind.UPPER_LEFT:
                return j <= i
            case CausalMaskKind.LOWER_RIGHT:
                return j <= i + keys - queries

    def _normalized(self, scores: Array) -> Array:
        highest = np.max(scores, initial=-np.inf)
        if self.norm_op is not SOFTMAX or highest == -np.inf:
            return np.where(scores == -np.inf, 0, scores)
        terms = np.exp(scores - highest)
        return terms / terms.sum()

    def _quantized(self, xp: Any, weights: Any, scale: Any) -> Any:
        step = scale.reshape(()).astype(weights.dtype)
        return QUANTIZED[self.quantized_to](xp, quotient(xp, weights, step)) * step

    # ------------------------------------------------------------------ the lowering

    def lower(self, query: Any, key: Any, value: Any, extras: Extras, sizes: tuple[Any, ...] = ()) -> Any:
        """The output as a JAX array; ``sizes`` are the numbers of queries and keys without padding, if there is any."""
        scale = None if extras.quantize_scale is None else jnp.asarray(extras.quantize_scale)
        if self.query_form is PADDED and self.key_value_form is PADDED:
            sizes = sizes or (query.shape[2], key.shape[2])
            allowed, added = self._lower_masks(query.shape, key.shape, sizes, extras.mask, extras.key_value_lengths)
            return self._attend((query, key, value), allowed, added, scale)
        queries = _tokens(query, self.query_form, extras.query_lengths)
        keys = _tokens(key, self.key_value_form, extras.key_value_lengths)
        flat = (queries.row(query), keys.row(key), keys.row(value))
        result = self._attend(flat, self._same_sequence(queries, keys), None, scale)
        if self.query_form is PACKED:
            return result[0].swapaxes(0, 1)
        return result.reshape(query.shape[1], query.shape[0], *query.shape[2:]).swapaxes(0, 1)

    def _lower_masks(
        self, query: Shape, key: Shape, sizes: tuple[Any, ...], mask: Any, lengths: Any
    ) -> tuple[Any, Any]:
        """The mask of allowed pairs, and the numbers added to the scores, as [B, Hkv, Hq / Hkv, Sq, Skv]."""
        i, j = jnp.arange(query[2])[:, None], jnp.arange(key[2])
        queries, keys = sizes
        count = keys if lengths is None else jnp.asarray(lengths)[:, None, None, None, None]
        allowed = j < count
        if self.causal_kind is not CausalMaskKind.NONE:
            allowed &= j <= i + (count - queries if self.causal_kind is CausalMaskKind.LOWER_RIGHT else 0)
        if mask is None:
            return allowed, None
        mask = jnp.asarray(mask)
        groups = (1, 1) if mask.shape[1] == 1 else (key[1], query[1] // key[1])
        mask = mask.reshape(mask.shape[0], *groups, *mask.shape[2:])
        return (allowed & mask, None) if mask.dtype == jnp.bool_ else (allowed, mask)

    def _same_sequence(self, queries: _PackedTokens, keys: _PackedTokens) -> Any:
        """The mask of pairs of one sequence in which the query may attend to the key."""
        sequence = queries.sequence[:, None]
        allowed = (sequence == keys.sequence) & queries.exists[:, None] & keys.exists
        if self.causal_kind is CausalMaskKind.NONE:
            return allowed
        reach = queries.position
        if self.causal_kind is CausalMaskKind.LOWER_RIGHT:
            reach = reach + (keys.lengths - queries.lengths).at[queries.sequence].get(mode="clip")
        return allowed & (keys.position <= reach[:, None])

    def _attend(self, tensors: tuple[Any, Any, Any], allowed: Any, added: Any, scale: Any) -> Any:
        query, key, value = tensors
        batch, heads, count, _ = query.shape
        shared = query.reshape(batch, key.shape[1], heads // key.shape[1], count, query.shape[3])
        wide: Any = np.float32 if query.dtype in HALVES else query.dtype
        exactly: dict[str, Any] = {"precision": PRECISION, "preferred_element_type": wide}
        scores = jnp.einsum("bhgqd,bhkd->bhgqk", shared, key, **exactly)
        scores = scores if added is None else scores + added.astype(wide)
        weights = self._lower_normalized(jnp.where(allowed, scores, -jnp.inf))
        weights = weights if scale is None else self._quantized(jnp, weights, scale)
        weights = weights.astype(value.dtype) if self.norm_op is SOFTMAX else weights
        array = jnp.einsum("bhgqk,bhkd->bhgqd", weights, value, **exactly)
        return array.reshape(query.shape).astype(query.dtype)

    def _lower_normalized(self, scores: Any) -> Any:
        if self.norm_op is not SOFTMAX:
            return jnp.where(scores == -jnp.inf, 0, scores)
        highest = jax.lax.stop_gradient(highest_along(scores, scores.ndim - 1))
        nothing = highest == -jnp.inf
        terms = jnp.exp(scores - jnp.where(nothing, 0, highest))
        return terms / jnp.where(nothing, 1, jnp.sum(terms, -1, keepdims=True))


def _sequences(x: Array, form: AttentionIOForm, lengths: Array | None) -> list[Array]:
    """The sequences one by one, each [head, token, element]."""
    if form is PACKED:
        assert lengths is not None
        return [sequence.swapaxes(0, 1) for sequence in sequences_of(x, lengths)]
    if lengths is None:
        return list(x)
    require(
        all(0 <= length <= x.shape[2] for length in lengths),
        f"the key_value_lengths are {lengths.tolist()}, but must go from 0 to {x.shape[2]}",
        why="a sequence is at most as long as the cache",
    )
    return [value[:, : int(length)] for value, length in zip(x, lengths, strict=True)]


def _masks(mask: Array | None, queries: list[Array]) -> list[Any]:
    """The mask of each sequence, [head, query, key]."""
    if mask is None:
        return [None] * len(queries)
    shapes = ((*query.shape[:2], mask.shape[3]) for query in queries)
    return [np.broadcast_to(mask[b % len(mask)], shape) for b, shape in enumerate(shapes)]


class _PackedTokens(NamedTuple):
    """The tokens of all sequences, concatenated.

    Attributes:
        sequence: the index of each token's sequence.
        position: the position in the sequence.
        exists: whether the token belongs to a sequence, and is not padding.
        lengths: the lengths of the sequences.
    """

    sequence: Any
    position: Any
    exists: Any
    lengths: Any

    def row(self, x: Any) -> Any:
        """A tensor of these tokens, in either form, as [1, head, token, element]."""
        flat = x if x.ndim == 3 else x.swapaxes(1, 2).reshape(len(self.sequence), x.shape[1], x.shape[3])
        return flat.swapaxes(0, 1)[None]


def _tokens(x: Any, form: AttentionIOForm, lengths: Any) -> _PackedTokens:
    if form is PACKED:
        beginnings = jnp.asarray(lengths)
        sequence, position = tokens_of(beginnings, x.shape[0])
        return _PackedTokens(sequence, position, sequence < len(beginnings) - 1, jnp.diff(beginnings))
    batch, count = x.shape[0], x.shape[2]
    sequence, position = np.divmod(np.arange(batch * count), max(count, 1))
    whole = jnp.full(batch, count) if lengths is None else jnp.asarray(lengths)
    return _PackedTokens(sequence, position, position < whole[sequence], whole)
