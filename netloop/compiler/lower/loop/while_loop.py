"""A loop as ``lax.while_loop``, which runs until a limit ends it."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from netloop.compiler.lower.frame import first_error
from netloop.compiler.lower.loop.outputs import empty_buffers, write_rows
from netloop.compiler.lower.loop.rows import in_bytes
from netloop.compiler.lower.loop.state import Carry, LoopState
from netloop.compiler.lower.loop.strategy import is_for_a_graph
from netloop.compiler.lower.loop.unroll_heuristic import kernel_factor
from netloop.compiler.lower.ranks import require_in_step
from netloop.compiler.passes.forms import LoweringForm
from netloop.model.manual_axes import Axes, while_loop
from netloop.values.enums import TripLimit


class WhileLoop:
    """A loop as the functions of ``lax.while_loop``.

    Where a limit is evaluated depends on errors. In a loop that cannot fail it is XLA's condition, evaluated from the
    state: cheaper than a flag that is carried. A condition of XLA's returns a bool and no error flag, and so a loop
    that tracks errors evaluates the limits of the coming iteration at the end of each one, and carries the answer.
    """

    def __init__(self, state: LoopState) -> None:
        self._state = state
        self._lowering = state.lowering
        self._loop = state.step.loop
        facts = state.lowering.facts
        self._most = facts.max_trips if facts.may_exceed_max_trips(self._loop) else None

    def run(self) -> Carry:
        """Run until a limit ends it."""
        return self.end(self.iterated(self.begin()))

    def iterated(self, carry: Carry) -> Carry:
        """The carry after the last iteration, given the one before the first."""
        factor = self._unroll()
        if factor > 1:
            note = f"{factor} iterations of {self._loop.name!r} are made between two looks at its condition"
            self._lowering.note(LoweringForm.LOOP_UNROLLING, note)
        if LoweringForm.LOOP_GRAPHS in self._lowering.passes and is_for_a_graph(self._state.step, self._lowering.facts):
            self._lowering.note(LoweringForm.LOOP_GRAPHS, f"{self._loop.name!r} is part of a CUDA graph")
        return while_loop(self.goes_on, partial(self._iterate, factor), carry, self._look)

    def _unroll(self) -> int:
        """The number of iterations between two looks of the host at the condition, of 10 to 60 us each on a GPU."""
        step, lowering = self._state.step, self._lowering
        is_allowed = LoweringForm.LOOP_UNROLLING in lowering.passes and lowering.platform == "gpu"
        # iterations after the end must change nothing: they are not selected, which would copy a buffer of rows
        if not is_allowed or self._state.tracks_errors or step.rows:
            return 1
        return kernel_factor(step.body.steps, lowering.types)

    def _iterate(self, number: int, carry: Carry) -> Carry:
        """The carry after a number of iterations, of which those after the end change nothing."""
        carry = self.iterate(carry)
        for _ in range(number - 1):
            goes_on = self.goes_on(carry)
            carry = jax.tree.map(partial(jnp.where, goes_on), self.iterate(carry), carry)
        return carry

    def _look(self, axes: Axes) -> None:
        require_in_step(self._state.step, axes)

    def begin(self) -> Carry:
        """The carry before the first iteration."""
        carry = self._state.initial(jnp.int64(0))
        if self._state.tracks_errors:
            carry = self._evaluate_limits(carry)
        return carry._replace(buffers=empty_buffers(self._state))

    def goes_on(self, carry: Carry) -> Any:
        """Whether there is another iteration."""
        wanted = self._wants_more(carry)
        return wanted if self._most is None else jnp.logical_and(carry.trip < self._most, wanted)

    def iterate(self, carry: Carry) -> Carry:
        """The carry after another iteration."""
        after, rows = self.advance(carry)
        stored = [in_bytes(row, self._lowering.platform) for row in rows]
        return after._replace(buffers=write_rows(carry.buffers, stored, carry.trip))

    def advance(self, carry: Carry) -> tuple[Carry, list[Any]]:
        """The carry after another iteration, with the buffers as they were, and the rows that belong into them."""
        step, inside = self._state.step, self._state.unpack(carry, carry.trip)
        self._lowering.run(step.iteration, inside)
        rows = [self._lowering.array(row, inside) for row in step.rows]
        after = self._state.pack(carry, inside)._replace(trip=carry.trip + 1)
        return (self._evaluate_limits(after) if self._state.tracks_errors else after), rows

    def end(self, carry: Carry) -> Carry:
        """The carry after the last iteration, with an error if a limit asks for more than ``max_trips``."""
        if self._most is None:
            return carry
        flag = self._lowering.errors.flag(self._wants_more(carry), self._loop.endless(self._most))
        return carry._replace(errors=carry.errors._replace(limits=first_error(carry.errors.limits, flag)))

    def _wants_more(self, carry: Carry) -> Any:
        """Whether the limits of the loop ask for another iteration."""
        return carry.goes_on if self._state.tracks_errors else self._evaluate_limits(carry).goes_on

    def _evaluate_limits(self, carry: Carry) -> Carry:
        """The carry with the answer of the limits; a poisoned limit ends the loop."""
        errors, count, goes_on = carry.errors, self._loop.limit(TripLimit.COUNT), self._loop.limit(TripLimit.WHILE)
        within = jnp.bool_(True)
        if count is not None:
            within = carry.trip < jnp.asarray(self._lowering.read(count.tensor(0), self._state.frame), jnp.int64)
        if self._state.tracks_errors:
            within = jnp.logical_and(within, errors.limits == 0)
        if goes_on is None:
            return carry._replace(goes_on=within)
        holds, flag = self._condition(carry)
        holds = jnp.logical_and(within, holds)
        if flag is None:
            return carry._replace(goes_on=holds)
        # where the COUNT has ended the loop nobody needs the condition, and an error in it does not count
        flag = jnp.where(within, flag, 0)
        holds = jnp.logical_and(holds, flag == 0)
        return carry._replace(goes_on=holds, errors=errors._replace(limits=first_error(errors.limits, flag)))

    def _condition(self, carry: Carry) -> tuple[Any, Any]:
        """The WHILE condition of the coming iteration, and its error flag."""
        limit = self._loop.limit(TripLimit.WHILE)
        assert limit is not None
        inside = self._state.unpack(carry, carry.trip)
        inside.is_iteration = False
        self._lowering.run(self._state.step.body.needed([limit.tensor(0)]), inside)
        return self._lowering.read(limit.tensor(0), inside), inside.error_flag([limit.tensor(0)])
