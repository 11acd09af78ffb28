"""Rotary embedding."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.model.graph.layer import Operation, layer
from netloop.model.layers.index_types import narrow_indices
from netloop.values.diagnostics import require
from netloop.values.enums import LayerType
from netloop.values.types import UNKNOWN, Array, TensorType, agree, wide


@layer(LayerType.ROTARY_EMBEDDING, "RotaryEmbedding")
class IRotaryEmbeddingLayer(Operation):
    """Rotate pairs of elements of each token by angles that depend on its position.

    output = (a cos - b sin, a sin + b cos) for each pair (a, b) of the first R elements of a token; the rest is
    unchanged. Pair p is elements p and p + R / 2, or 2 p and 2 p + 1 if interleaved, and its angle is number p of a row
    of the caches: row [b, s] for token s of sequence b, or row position_ids[b, s].

    Input [B, H, S, D]; cosines and sines [B, S, R / 2]. With input 3, position_ids [B, S], int32 or int64, they are
    [P, R / 2]; a position out of range is an error in the reference; a compiled network uses the nearest row.
    Floating-point, all of one type; half types are computed in float32.

    Attributes:
        interleaved: whether adjacent elements form a pair.
        rotary_embedding_dim: R, even; 0 for all D.
    """

    REQUIRED_INPUTS = 3
    MAX_INPUTS = 4

    interleaved: bool
    rotary_embedding_dim: int

    def infer(self, x: TensorType, cos: TensorType, sin: TensorType, ids: TensorType | None = None) -> TensorType:
        what = f"the input is {x}, but must have 4 axes: batch, head, token, element"
        require(x.rank == 4, what, "tokens are rotated by their positions")
        require(x.is_float, f"the input is floating-point, not {x}", fix="convert it with add_cast")
        turned = self._turned(x.shape[3])
        is_open = turned == UNKNOWN and self.rotary_embedding_dim == 0
        require(
            is_open or (turned > 0 and turned % 2 == 0),
            f"{turned} elements of each token are to be rotated",
            why="they are rotated in pairs",
            fix="set rotary_embedding_dim to an even number, or to 0 for all of an even number",
        )
        require(
            turned <= x.shape[3] or x.shape[3] == UNKNOWN,
            f"rotary_embedding_dim is {turned}, and a token has {x.shape[3]} elements",
            why="pairs of elements are turned, at most all of them",
        )
        rows = (x.shape[0], x.shape[2]) if ids is None else (UNKNOWN,)
        wanted = x.with_shape((*rows, UNKNOWN if turned == UNKNOWN else turned // 2))
        for name, cache in (("cos_cache", cos), ("sin_cache", sin)):
            require(
                cache.dtype == x.dtype and agree(cache.shape, wanted.shape),
                f"the {name} is {cache}, but must be {wanted}",
                why=f"{'each token' if ids is None else 'each position'} has one angle for each pair",
            )
        require(
            agree(cos.shape, sin.shape),
            f"the caches are {cos} and {sin}, but must be of one shape",
            why="each angle has a cosine and a sine",
        )
        if ids is not None:
            self._check_ids(ids, x)
        return x.without_value()

    def _turned(self, elements: int) -> int:
        return self.rotary_embedding_dim or elements

    @staticmethod
    def _check_ids(ids: TensorType, x: TensorType) -> None:
        wanted = ids.with_shape((x.shape[0], x.shape[2]))
        require(ids.is_index, f"the position_ids are int32 or int64, not {ids}", fix="convert them with add_cast")
        require(
            agree(ids.shape, wanted.shape),
            f"the position_ids are {ids}, but must be {wanted}",
            why=f"each token of {x} has a position",
        )

    def evaluate(self, x: Array, cos: Array, sin: Array, ids: Array | None = None) -> Array:
        result, turned = wide(x).copy(), self._turned(x.shape[3])
        for b, s in np.ndindex(x.shape[0], x.shape[2]):
            row = (b, s) if ids is None else int(ids[b, s])
            require(
                isinstance(row, tuple) or 0 <= row < len(cos),
                f"position {row} is out of range: there are {len(cos)}",
                why="each position has a row in the caches",
            )
            for pair in range(turned // 2):
                i, j = (2 * pair, 2 * pair + 1) if self.interleaved else (pair, pair + turned // 2)
                a, b_ = wide(x)[b, :, s, i], wide(x)[b, :, s, j]
                c, d = wide(cos)[row][pair], wide(sin)[row][pair]
                result[b, :, s, i], result[b, :, s, j] = a * c - b_ * d, a * d + b_ * c
        return result.astype(x.dtype)

    def lower(self, x: Any, cos: Any, sin: Any, ids: Any = None) -> Any:
        tokens, turned = wide(jnp.asarray(x)), self._turned(x.shape[3])
        c, d = (self._rows(wide(jnp.asarray(cache)), ids) for cache in (cos, sin))
        if self.interleaved:
            a, b = tokens[..., :turned:2], tokens[..., 1:turned:2]
        else:
            a, b = tokens[..., : turned // 2], tokens[..., turned // 2 : turned]
        pairs = [a * c - b * d, a * d + b * c]
        if self.interleaved:
            pairs = [jnp.stack(pairs, -1).reshape(*x.shape[:3], turned)]
        return jnp.concatenate([*pairs, tokens[..., turned:]], -1).astype(x.dtype)

    @staticmethod
    def _rows(cache: Any, ids: Any) -> Any:
        """The cache row of each token, the same for all heads."""
        rows = cache if ids is None else jnp.take(cache, narrow_indices(ids, len(cache) - 1), 0, mode="clip")
        return rows[:, None]
