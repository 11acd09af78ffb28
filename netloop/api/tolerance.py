"""When two arrays agree, and where they differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.types import Array

Numbers = tuple[tuple[int, ...], Any, Any, int | None]
"""The largest difference of two arrays: the index, the two numbers, and their distance in ulps."""


@dataclass(frozen=True)
class Tolerance:
    """The tolerances of a comparison.

    Attributes:
        rtol: the relative tolerance of floating-point numbers; None for the square root of the epsilon of their type.
        atol: the absolute tolerance, added to the relative one; None for the same.
    """

    rtol: float | None
    atol: float | None

    def worst(self, expected: Array, got: Array) -> Numbers | None:
        """The largest difference of two arrays; None if they are equal within the tolerances."""
        if expected.shape != got.shape:
            return (), expected.shape, got.shape, None
        if not expected.size:
            return None
        with np.errstate(all="ignore"):
            excess = self.excess(expected, got)
        index = np.unravel_index(int(np.argmax(excess)), expected.shape)
        if not excess[index] > 0:
            return None
        return tuple(map(int, index)), expected[index], got[index], _ulps(expected[index], got[index])

    def excess(self, expected: Array, got: Array) -> Array:
        """The amount by which each number exceeds the tolerances."""
        if not jnp.issubdtype(expected.dtype, jnp.floating):
            return (expected != got).astype(np.float64)
        a, b = expected.astype(np.float64), got.astype(np.float64)
        usual = float(jnp.finfo(expected.dtype).eps) ** 0.5
        rtol, atol = (usual if each is None else each for each in (self.rtol, self.atol))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        excess = np.abs(a - b) - (atol + rtol * np.abs(a))
        # infinities and NaN differ infinitely, unless both numbers are the same
        return np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), excess, np.inf))


def _ulps(a: Any, b: Any) -> int | None:
    """The distance of two numbers of one floating-point type in ulps; None for other types, strings and NaN."""
    is_float = not isinstance(a, str) and jnp.issubdtype(a.dtype, jnp.floating)
    if not is_float or np.isnan(np.float64(a)) or np.isnan(np.float64(b)):
        return None
    return abs(_rank(a) - _rank(b))


def _rank(x: Any) -> int:
    """The index of ``x`` in the ordered floating-point numbers of its type; 0 for zero."""
    bits = int(np.asarray(x).view(f"u{x.dtype.itemsize}"))
    sign = 1 << (8 * x.dtype.itemsize - 1)
    return sign - bits if bits & sign else bits
