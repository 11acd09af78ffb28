"""Outputs that numpy computed, as arrays of JAX."""

from typing import Any

import jax
import numpy as np

from netloop.compiler.xla_compilation import XlaFunction
from netloop.values.types import Array

OFTEN = 500
"""The number of copies of one type after which a program makes them; by then they have taken as long as to compile it.

A program copies in 6 us and ``device_put`` in 26. ``jnp.asarray`` takes 16 to 20, but in JAX 0.10.2 and 0.12 it
compiles a program for each shape that it has not met."""

MOST_TYPES = 64
"""The number of types of which the copies are counted."""


class OutputArrays:
    """Copies of arrays of numpy as arrays of JAX; on a CPU, a program makes those of a type that comes often."""

    def __init__(self, platform: str) -> None:
        self._has_programs = platform == "cpu"
        self._counts: dict[Any, int] = {}
        self._programs: dict[Any, XlaFunction] = {}

    def __call__(self, array: Any) -> jax.Array:
        """An array as one of JAX: a copy of one of numpy, which may be a view of an input."""
        if isinstance(array, jax.Array):
            return array
        key = array.dtype, array.shape
        program = self._programs.get(key) or self._new_program(key)
        return jax.device_put(np.array(array)) if program is None else program(array)

    def _new_program(self, key: Any) -> XlaFunction | None:
        """The program for a type that has come often enough; None for others."""
        count = self._counts.get(key, 0) + 1
        # lengths need not come back, and the memory of a service must not grow
        if len(self._counts) >= MOST_TYPES:
            self._counts.clear()
            self._programs.clear()
        self._counts[key] = count
        if not self._has_programs or count <= OFTEN:
            return None
        return self._programs.setdefault(key, XlaFunction(_same))


def _same(x: Array) -> Array:
    return x
