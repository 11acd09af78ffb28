"""Ragged batches of sequences, packed: all tokens in one tensor, and the cumulative lengths in another.

For B sequences there are B + 1 cumulative lengths, from 0 to the number of all tokens: sequence b consists of the
tokens beginnings[b] to beginnings[b + 1] - 1.
"""

from itertools import pairwise
from typing import Any

import jax.numpy as jnp

from netloop.values.diagnostics import require
from netloop.values.types import UNKNOWN, Array, TensorType


def batch_of(name: str, beginnings: TensorType | None) -> int:
    """The number of sequences, -1 if it is unknown.

    Raises:
        LayerError: the cumulative lengths are missing, or have the wrong type or rank.
    """
    require(
        beginnings is not None,
        f"there are no {name}",
        why="packed sequences have no padding between them",
        fix=f"set {name} to an int32 tensor of the B + 1 cumulative lengths, from 0",
    )
    assert beginnings is not None
    require(
        beginnings.rank == 1 and beginnings.is_index and beginnings.shape != (0,),
        f"the {name} are {beginnings}, but must be B + 1 cumulative lengths, int32[B+1]",
        why="sequence i starts at element i, and ends at element i + 1",
    )
    return UNKNOWN if beginnings.shape[0] == UNKNOWN else beginnings.shape[0] - 1


def sequences_of(x: Array, beginnings: Array) -> list[Array]:
    """The sequences as a list.

    Raises:
        LayerError: the cumulative lengths do not rise from 0 to the number of tokens.
    """
    bounds = [int(beginning) for beginning in beginnings]
    require(
        bounds == sorted(bounds) and (bounds[0], bounds[-1]) == (0, len(x)),
        f"the cumulative lengths are {bounds}, and there are {len(x)} tokens",
        why="they must rise from 0 to the number of tokens",
    )
    return [x[first:last] for first, last in pairwise(bounds)]


def tokens_of(beginnings: Any, total: int) -> tuple[Any, Any]:
    """The sequence of each of ``total`` tokens and the position in it; sequence B for tokens past the last."""
    tokens = jnp.arange(total, dtype=beginnings.dtype)
    sequences = jnp.sum(beginnings[:, None] <= tokens, 0) - 1
    return sequences, tokens - beginnings[sequences]
