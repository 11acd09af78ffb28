"""A loop of at most a given number of iterations as ``lax.scan``, which JAX differentiates in reverse."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from netloop.compiler.lower.loop.state import Carry, LoopState
from netloop.compiler.lower.loop.while_loop import WhileLoop


class BoundedWhile:
    """The iterations of a while loop as a scan of ``bound`` steps, of which those after the last do nothing.

    Its time and memory grow with the bound. A loop that needs more iterations cannot raise an error in a pure function:
    its floating-point values are NaN then.
    """

    def __init__(self, state: LoopState, bound: int) -> None:
        self._loop = WhileLoop(state)
        self._bound = bound

    def run(self) -> Carry:
        """Run until a limit ends it, or the bound is reached."""
        carry, _ = lax.scan(self._step, self._loop.begin(), None, length=self._bound)
        is_cut = self._loop.goes_on(carry)
        states, buffers = ([_nan_if(is_cut, array) for array in arrays] for arrays in (carry.states, carry.buffers))
        return self._loop.end(carry._replace(states=states, buffers=buffers))

    def _step(self, carry: Carry, _: None) -> tuple[Carry, None]:
        return lax.cond(self._loop.goes_on(carry), self._loop.iterate, lambda same: same, carry), None


def _nan_if(is_cut: Any, array: Any) -> Any:
    # not every type of fewer than 16 bits has a NaN
    is_float = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize > 1
    # a factor, as derivatives are NaN then too; those of a selection would be 0
    return array * jnp.where(is_cut, jnp.asarray(jnp.nan, array.dtype), 1) if is_float else array
