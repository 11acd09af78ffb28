"""The element type of indices that XLA clamps."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

MOST = np.iinfo(np.int32).max


def narrow_indices(indices: Any, most: int) -> Any:
    """Indices clamped to 0 to ``most``, as int32 if that is enough.

    Derivatives of a gather and of a slice at batched positions clamp int64 indices by int32 bounds, an error, when JAX
    makes them outside of netloop with its x64 setting off: ``jax.grad`` and ``jax.jit`` around a pure function do.
    """
    xp = jnp if isinstance(indices, jax.Array) else np
    return xp.clip(indices, 0, most).astype(np.int32 if most <= MOST else np.int64)
