"""Rows of stacked arrays, of which loops read or write one in each iteration.

XLA's GPUs copy whole bytes only, and refuse to compile a loop whose rows end within one; on CPUs XLA ends the process
when it joins arrays of 2 bits, as JAX does with the rows of unrolled iterations. So rows of types of less than a byte
are stacked as bytes.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.values.types import TINY

FOURS = np.dtype(jnp.float4_e2m1fn)


def in_bytes(rows: Any) -> Any:
    """Rows as they are stacked; of other types than those of less than a byte, as they are."""
    if rows.dtype in TINY:
        return lax.convert_element_type(rows, np.int8)
    return lax.bitcast_convert_type(rows, jnp.uint4).astype(np.uint8) if rows.dtype == FOURS else rows


def of_type(rows: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    """Stacked rows, or some of them, in their own type."""
    if dtype in TINY:
        return lax.convert_element_type(rows, dtype)
    return lax.bitcast_convert_type(rows.astype(jnp.uint4), FOURS) if dtype == FOURS else rows
