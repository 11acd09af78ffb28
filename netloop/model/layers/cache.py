"""Key-value caches; the method that adds them is in ``attention.py``."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph import ITensor, Operation, layer
from netloop.model.layers.index_types import narrow_indices
from netloop.model.layers.packed_sequences import batch_of, sequences_of, tokens_of
from netloop.values.diagnostics import require
from netloop.values.enums import AttentionIOForm, KVCacheMode, LayerType
from netloop.values.types import UNKNOWN, Array, TensorType, agree, require_indexable

LENGTHS = 3
"""The index of the input ``update_lengths``."""


@layer(LayerType.KV_CACHE_UPDATE, "KVCacheUpdate")
class IKVCacheUpdateLayer(Operation):
    """The cache, with the tokens of an update written in sequence from a position per batch item.

    output[i, :, write_indices[i] + s, :] = update[i, :, s, :], and the cache elsewhere.

    Cache [B, H, Smax, D]; update [B, H, S, D], or packed [T, H, D] with the B + 1 cumulative lengths as input 3;
    write_indices [B]. Indices and lengths are int32 or int64; cache and update are floating-point, of one type. A
    token outside of the cache is not written.

    TensorRT writes in place: the cache must be an input of the network, and the output an output of it. In netloop
    the cache may be any tensor, and keeps its value.

    Attributes:
        cache_mode: how the cache is written.
        update_form: whether the update is padded or packed.
        update_lengths: input 3; None if there is none.
    """

    REQUIRED_INPUTS = 3
    MAX_INPUTS = 4

    cache_mode: KVCacheMode
    update_form: AttentionIOForm = AttentionIOForm.PADDED_BHND

    @property
    def update_lengths(self) -> ITensor | None:
        """Input 3, the cumulative lengths of a packed update."""
        return self.get_input(LENGTHS)

    @update_lengths.setter
    def update_lengths(self, lengths: ITensor | None) -> None:
        if lengths is not None:
            self.set_input(LENGTHS, lengths)
        elif self.num_inputs > LENGTHS:
            self._rewire(LENGTHS, None)

    @property
    def _is_packed(self) -> bool:
        return self.update_form is AttentionIOForm.PACKED_NHD

    def infer(
        self, cache: TensorType, update: TensorType, places: TensorType, lengths: TensorType | None = None
    ) -> TensorType:
        require(
            cache.rank == 4,
            f"the cache is {cache}, but must have 4 axes: batch, head, token, element",
            why="tokens are written at positions of the third axis",
        )
        require(cache.is_float, f"the cache must be floating-point, not {cache}", fix="convert it with add_cast")
        batch, heads, _, elements = cache.shape
        wanted = (UNKNOWN, heads, elements) if self._is_packed else (batch, heads, UNKNOWN, elements)
        require(
            update.dtype == cache.dtype and agree(update.shape, wanted),
            f"the update is {update}, but must be {cache.with_shape(wanted)} (-1 for any number of tokens)",
            why=f"the cache is {cache}, and update_form {self.update_form.name}",
        )
        require(
            places.is_index and agree(places.shape, (batch,)),
            f"the write_indices are {places}, but must be int32[{batch}] or int64[{batch}]",
            why="each sequence has one position at which writing starts",
        )
        self._check_lengths(batch, lengths)
        require_indexable(cache, 2)
        return cache.without_value()

    def _check_lengths(self, batch: int, lengths: TensorType | None) -> None:
        if self._is_packed:
            number = batch_of("update_lengths", lengths)
            require(
                UNKNOWN in (batch, number) or batch == number,
                f"the update_lengths are of {number} sequences, but the cache has {batch}",
                why="each sequence of the cache has a position of its own",
            )
        else:
            require(
                lengths is None,
                f"there are update_lengths, {lengths}, but update_form is PADDED_BHND",
                why="they delimit the sequences of a packed update",
                fix="set update_form to PACKED_NHD, or update_lengths to None",
            )

    def evaluate(self, cache: Array, update: Array, places: Array, lengths: Array | None = None) -> Array:
        result = cache.copy()
        tokens = update.swapaxes(1, 2) if lengths is None else sequences_of(update, lengths)
        for sequence, first, written in zip(result, places, tokens, strict=True):
            for place, token in enumerate(written, int(first)):
                if 0 <= place < result.shape[2]:
                    sequence[:, place] = token
        return result

    def lower(self, cache: Any, update: Any, places: Any, lengths: Any = None) -> Any:
        cache, update, places = jnp.asarray(cache), jnp.asarray(update), jnp.asarray(places)
        if lengths is None and len(cache) == 1 and 0 < update.shape[2] <= cache.shape[2]:
            return _overwritten(cache[0], update[0], places[0])[None]
        if lengths is None:
            tokens, rows = update.swapaxes(1, 2), np.arange(cache.shape[0])[:, None]
            columns = places[:, None] + jnp.arange(update.shape[2], dtype=places.dtype)
        else:
            rows, within = tokens_of(jnp.asarray(lengths), update.shape[0])
            tokens, columns = update, places.at[rows].get(mode="clip") + within
        beyond = jnp.where(columns < 0, cache.shape[2], columns)  # JAX counts negative indices from the end
        return cache.at[rows, :, beyond].set(tokens, mode="drop")


def _overwritten(cache: jax.Array, update: jax.Array, place: jax.Array) -> jax.Array:
    """The cache of one sequence, with the tokens written as one contiguous slice, which XLA updates in place."""
    length, tokens = cache.shape[1], update.shape[1]
    first = narrow_indices(place, length - tokens)
    number = first - place + jnp.arange(tokens, dtype=place.dtype)
    is_written = ((number >= 0) & (number < tokens))[:, None]
    old = lax.dynamic_slice_in_dim(cache, first, tokens, 1)
    written = jnp.where(is_written, update.at[:, narrow_indices(number, tokens - 1)].get(mode="clip"), old)
    # if the update reads the cache and a reshape follows, XLA's CPU overwrites tokens that it has still to read
    return lax.optimization_barrier(lax.dynamic_update_slice_in_dim(cache, written, first, 1))
