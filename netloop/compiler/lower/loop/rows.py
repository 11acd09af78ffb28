"""Rows of stacked arrays, of which loops read or write one in each iteration.

XLA's GPUs copy whole bytes only, and refuse to compile a loop whose rows end within one. So there rows of types of less
than a byte are stacked as bytes. On CPUs they stay as they are: XLA's conversions between bytes and 4 bits in a loop
were invalid code in one of 30 random networks.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.values.types import TINY

FOURS = np.dtype(jnp.float4_e2m1fn)


def in_bytes(rows: Any, platform: str) -> Any:
    """Rows as they are stacked on a platform; of other types than those of less than a byte, as they are."""
    if platform == "cpu":
        return rows
    if rows.dtype in TINY:
        return lax.convert_element_type(rows, np.int8)
    return lax.bitcast_convert_type(rows, jnp.uint4).astype(np.uint8) if rows.dtype == FOURS else rows


def of_type(rows: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    """Stacked rows, or some of them, in their own type."""
    if rows.dtype == dtype:
        return rows
    if dtype in TINY:
        return lax.convert_element_type(rows, dtype)
    return lax.bitcast_convert_type(rows.astype(jnp.uint4), FOURS) if dtype == FOURS else rows
