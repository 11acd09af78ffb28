"""Gathers in JAX: of slices in a batch, of elements and at positions, along axes that may be padded."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from netloop.values.types import Shape


def lower_in_batch(data: jax.Array, indices: jax.Array, axis: int) -> jax.Array:
    """The slices of each member of a batch at indices of its own, or of its only one; 0 out of range."""

    def take(member: jax.Array, own: jax.Array) -> jax.Array:
        return jnp.take(member, own, axis, mode="fill", fill_value=0)

    if data.shape[0] == 1:
        return jax.vmap(take, (None, 0))(data[0], indices)
    return jax.vmap(take)(data, jnp.broadcast_to(indices, (data.shape[0], *indices.shape[1:])))


def lower_elements(data: jax.Array, indices: jax.Array, axis: int) -> jax.Array:
    """The elements with an index instead of one of their positions; 0 out of range."""
    return jnp.take_along_axis(reached(data, indices, axis), indices, axis, mode="fill", fill_value=0)


def reached(data: Any, indices: Any, axis: int) -> Any:
    """The data cut to the positions that an index can have, on all axes but the indexed one."""
    return data[tuple(slice(None if other == axis else reach) for other, reach in enumerate(indices.shape))]


def lower_positions(data: jax.Array, indices: jax.Array, batch: int) -> jax.Array:
    """The slices at positions, along the last axis, after some batch axes; 0 out of range."""

    def read(member: jax.Array, own: jax.Array) -> jax.Array:
        return member.at[coordinates(own)].get(mode="fill", fill_value=0)

    for _ in range(batch):
        read = jax.vmap(read)
    return read(data, indices)


def unpadded(indices: jax.Array, shape: Shape, axis: int, lengths: Mapping[int, Any]) -> jax.Array:
    """Indices of an axis that may be padded: from its start, and behind its padding if they are out of range."""
    if axis not in lengths:
        return indices
    length = lengths[axis]
    is_outside = (indices < -length) | (indices >= length)
    return jnp.where(is_outside, shape[axis], jnp.where(indices < 0, indices + length, indices)).astype(indices.dtype)


def unpadded_positions(positions: jax.Array, shape: Shape, first: int, lengths: Mapping[int, Any]) -> jax.Array:
    """Positions, along the last axis, in axes from the ``first`` on that may be padded, as ``unpadded`` ones."""
    columns = [unpadded(positions[..., at], shape, first + at, lengths) for at in range(positions.shape[-1])]
    return jnp.stack(columns, -1) if lengths else positions


def coordinates(positions: jax.Array) -> tuple[jax.Array, ...]:
    """Positions, along the last axis, as an index of an array."""
    return tuple(positions[..., axis] for axis in range(positions.shape[-1]))
