"""A compiled while loop in chunks of iterations, between which Python can be interrupted.

Python handles Ctrl-C only between two of its own instructions, so a loop in one compiled program would hold it off
until the end, if there is one.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from netloop.compiler.lower.frame import Frame
from netloop.compiler.lower.loop.entry import enter
from netloop.compiler.lower.loop.outputs import leave
from netloop.compiler.lower.loop.state import Carry
from netloop.compiler.lower.loop.strategy import LoopStrategy, StrategyKind
from netloop.compiler.lower.loop.while_loop import WhileLoop
from netloop.compiler.lower.program import Outcome, Program
from netloop.compiler.phases import Phase
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.device_errors import completed
from netloop.model.nest import LoopStep

SHORTEST, LONGEST = 0.05, 0.2
"""The bounds of a chunk's duration in seconds, within which its number of iterations is kept."""

Arrays = Sequence[Any]


class ChunkedWhile:
    """A loop as three compiled functions: its beginning, a chunk of iterations, and its outputs.

    The program holds only this loop. ``around`` makes the frame around it, from the arrays that it reads and the
    numbers of the current iterations of the enclosing loops, and ``phase`` the context of each phase of a compilation.
    """

    def __init__(
        self, program: Program, step: LoopStep, around: Callable[[Arrays, Arrays], Frame], phase: Phase
    ) -> None:
        self._program = program
        self._step = step
        self._around = around
        self._begin = XlaFunction(self._traced_begin, program, phase)
        self._run = XlaFunction(self._traced_run, program, phase, donate_argnums=2)
        self._end = XlaFunction(self._traced_end, program, phase)

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the largest of its functions needs besides inputs and outputs."""
        return max(function.scratch_size for function in (self._begin, self._run, self._end))

    def __call__(self, arrays: Arrays, trips: Arrays) -> Outcome:
        """Run the loop."""
        strategy = LoopStrategy(StrategyKind.WHILE, "it runs a chunk of iterations at a time")
        self._program.loop_strategies[self._step.loop] = strategy
        carry, goes_on = completed(self._begin(arrays, trips))
        until, most = 0, 1
        while goes_on:
            until, began = until + most, time.perf_counter()
            carry, goes_on = self._run(arrays, trips, carry, jnp.int64(until))
            goes_on.block_until_ready()
            most = _adjusted(most, time.perf_counter() - began)
        return completed(self._end(arrays, trips, carry))

    def _traced_begin(self, arrays: Arrays, trips: Arrays) -> tuple[Carry | None, Any]:
        state = enter(self._program, self._step, self._around(arrays, trips))
        if state is None:
            return None, False
        loop = WhileLoop(state)
        carry = loop.begin()
        # each chunk takes over the memory of its carry (donate_argnums), which must not be that of an input
        return jax.tree.map(jnp.copy, carry), loop.goes_on(carry)

    def _traced_run(self, arrays: Arrays, trips: Arrays, carry: Carry, until: Any) -> tuple[Carry, Any]:
        state = enter(self._program, self._step, self._around(arrays, trips))
        assert state is not None
        loop = WhileLoop(state)
        carry = lax.while_loop(
            lambda carry: jnp.logical_and(carry.trip < until, loop.goes_on(carry)), loop.iterate, carry
        )
        return carry, loop.goes_on(carry)

    def _traced_end(self, arrays: Arrays, trips: Arrays, carry: Carry | None) -> Outcome:
        frame = self._around(arrays, trips)
        state = enter(self._program, self._step, frame)
        if state is not None and carry is not None:
            leave(state, WhileLoop(state).end(carry))
        return self._program.outcome(frame)


def _adjusted(trips: int, seconds: float) -> int:
    """The number of iterations of the next chunk, after one that took some seconds."""
    if seconds < SHORTEST:
        return trips * (8 if seconds < SHORTEST / 8 else 2)
    return max(1, trips // 2) if seconds > LONGEST else trips
