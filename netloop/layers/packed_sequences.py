"""Sequences of several lengths in one tensor, packed: their tokens end to end, and beside them where each begins.

For B sequences the beginnings are B + 1 numbers, from 0 up to the number of all tokens: sequence b has the tokens from
number beginnings[b] up to beginnings[b + 1].
"""

from itertools import pairwise
from typing import Any

import jax.numpy as jnp

from netloop.diagnostics import require
from netloop.types import UNKNOWN, Array, TensorType


def batch_of(name: str, beginnings: TensorType | None) -> int:
    """The number of sequences that beginnings tell of, -1 if it is unknown.

    Raises:
        LayerError: they are missing, or no beginnings.
    """
    require(
        beginnings is not None,
        f"there are no {name}",
        why="packed sequences have no padding that would tell where one ends and the next begins",
        fix=f"set {name} to an int32 tensor of the B + 1 cumulative lengths, from 0",
    )
    assert beginnings is not None
    require(
        beginnings.rank == 1 and beginnings.is_index and beginnings.shape != (0,),
        f"the {name} are {beginnings}, but must be B + 1 cumulative lengths, int32[B+1]",
    )
    return UNKNOWN if beginnings.shape[0] == UNKNOWN else beginnings.shape[0] - 1


def sequences_of(x: Array, beginnings: Array) -> list[Array]:
    """The sequences, one by one.

    Raises:
        LayerError: the beginnings do not go from 0 to the number of tokens.
    """
    bounds = [int(each) for each in beginnings]
    require(
        bounds == sorted(bounds) and (bounds[0], bounds[-1]) == (0, len(x)),
        f"the cumulative lengths are {bounds}, and there are {len(x)} tokens",
        why="they rise from 0 to the number of tokens",
    )
    return [x[first:last] for first, last in pairwise(bounds)]


def tokens_of(beginnings: Any, total: int) -> tuple[Any, Any]:
    """The number of the sequence of each of ``total`` tokens, and its place in it; B for a token of none."""
    tokens = jnp.arange(total, dtype=beginnings.dtype)
    sequences = jnp.sum(beginnings[:, None] <= tokens, 0) - 1
    return sequences, tokens - beginnings[sequences]
