"""A loop that is compiled, and runs a stretch of trips at a time: between two of them Python can be interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from netloop.lower.frame import Frame
from netloop.lower.loop.while_loop import Carry, LoopStrategy, enter
from netloop.nest import LoopStep

if TYPE_CHECKING:
    from netloop.lower.program import Outcome, Program

SHORTEST, LONGEST = 0.05, 0.2
"""Between which a stretch lasts, in seconds: its number of trips grows and shrinks until it does."""

Arrays = Sequence[Any]


class ChunkedWhile:
    """A loop as three compiled functions: what it begins with, a stretch of its trips, and what comes out.

    Args:
        program: the program of the loop alone.
        step: the loop.
        around: the frame around the loop, made of the arrays that it reads and the trips of the loops around it.
    """

    def __init__(self, program: Program, step: LoopStep, around: Callable[[Arrays, Arrays], Frame]) -> None:
        self._program = program
        self._step = step
        self._around = around
        self._begin = jax.jit(self._traced_begin)
        self._run = jax.jit(self._traced_run, donate_argnums=2)
        self._end = jax.jit(self._traced_end)

    def __call__(self, arrays: Arrays, trips: Arrays) -> Outcome:
        """Run the loop."""
        self._program.loop_strategies[self._step.loop] = LoopStrategy("while", "it runs a stretch of trips at a time")
        carry, goes_on = self._begin(arrays, trips)
        until, most = 0, 1
        while goes_on:
            until, began = until + most, time.perf_counter()
            carry, goes_on = self._run(arrays, trips, carry, jnp.int64(until))
            goes_on.block_until_ready()
            most = _adjusted(most, time.perf_counter() - began)
        return self._end(arrays, trips, carry)

    def _traced_begin(self, arrays: Arrays, trips: Arrays) -> tuple[Carry | None, Any]:
        loop = enter(self._program, self._step, self._around(arrays, trips))
        if loop is None:
            return None, False
        carry = loop.begin()
        # the next stretch takes the memory over, so it must not be that of what is given
        return jax.tree.map(jnp.copy, carry), loop.goes_on(carry)

    def _traced_run(self, arrays: Arrays, trips: Arrays, carry: Carry, until: Any) -> tuple[Carry, Any]:
        loop = enter(self._program, self._step, self._around(arrays, trips))
        assert loop is not None
        goes_on, trip = loop.goes_on, loop.trip
        carry = lax.while_loop(lambda each: jnp.logical_and(each.trip < until, goes_on(each)), trip, carry)
        return carry, goes_on(carry)

    def _traced_end(self, arrays: Arrays, trips: Arrays, carry: Carry | None) -> Outcome:
        frame = self._around(arrays, trips)
        loop = enter(self._program, self._step, frame)
        if loop is not None and carry is not None:
            loop.leave(loop.done(carry))
        return self._program.outcome(frame)


def _adjusted(trips: int, seconds: float) -> int:
    """The number of trips of the next stretch, after one that took some seconds."""
    if seconds < SHORTEST:
        return trips * (8 if seconds < SHORTEST / 8 else 2)
    return max(1, trips // 2) if seconds > LONGEST else trips
