"""A compiled while loop that stops when its buffers are full, and goes on with larger ones."""

from collections.abc import Callable, Sequence
from typing import Any

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
from netloop.model.nest import LoopStep

Arrays = Sequence[Any]


class PartialWhile:
    """A loop as two compiled functions: one that begins it, and one that goes on, each until some iteration.

    The program holds only this loop. ``around`` makes the frame around it, from the arrays that it reads and the
    numbers of the current iterations of the enclosing loops, and ``phase`` the context of each phase of a compilation.
    """

    def __init__(
        self, program: Program, step: LoopStep, around: Callable[[Arrays, Arrays], Frame], phase: Phase
    ) -> None:
        self._program = program
        self._step = step
        self._around = around
        self._first = XlaFunction(self._traced_first, program, phase)
        self._next = XlaFunction(self._traced_next, program, phase)

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the larger of its functions needs besides inputs and outputs."""
        return max(self._first.scratch_size, self._next.scratch_size)

    def __call__(self, arrays: Arrays, trips: Arrays, carry: Carry | None, until: int) -> tuple[Carry, Any, Outcome]:
        """The carry after an iteration, whether the loop goes on, and the outputs, which are valid if it does not."""
        strategy = LoopStrategy(StrategyKind.WHILE, "its states grow in buffers that become twice as large when full")
        self._program.loop_strategies[self._step.loop] = strategy
        if carry is None:
            return self._first(arrays, trips, jnp.int64(until))
        return self._next(arrays, trips, jnp.int64(until), carry)

    def _traced_first(self, arrays: Arrays, trips: Arrays, until: Any) -> tuple[Carry | None, Any, Outcome]:
        return self._traced_next(arrays, trips, until, None)

    def _traced_next(
        self, arrays: Arrays, trips: Arrays, until: Any, carry: Carry | None
    ) -> tuple[Carry | None, Any, Outcome]:
        frame = self._around(arrays, trips)
        state = enter(self._program, self._step, frame)
        if state is None:
            return None, False, self._program.outcome(frame)
        loop = WhileLoop(state)
        carry = lax.while_loop(
            lambda carry: jnp.logical_and(carry.trip < until, loop.goes_on(carry)),
            loop.iterate,
            loop.begin() if carry is None else _in_larger_buffers(carry, loop.begin()),
        )
        goes_on = loop.goes_on(carry)
        leave(state, loop.end(carry))
        return carry, goes_on, self._program.outcome(frame)


def _in_larger_buffers(carry: Carry, begin: Carry) -> Carry:
    """A carry whose states are written into the first elements of those of the beginning of a loop."""
    pairs = zip(carry.states, begin.states, strict=True)
    return carry._replace(
        states=[
            state if state.shape == larger.shape else lax.dynamic_update_slice(larger, state, (0,) * state.ndim)
            for state, larger in pairs
        ]
    )
