"""One conditional to ``lax.cond``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.lower.frame import Frame, first
from netloop.lower.loop.unroll_heuristic import is_small
from netloop.nest import IfStep

if TYPE_CHECKING:
    from netloop.lower.program import Program


def lower_conditional(program: Program, step: IfStep, frame: Frame) -> None:
    """Bring the outputs of a conditional into the frame; only the branch taken is computed."""
    condition, known = program.read(step.condition, frame), program.types[step.condition].value
    if isinstance(condition, np.ndarray) or (known is not None and not _alike(program, step)):
        _take(program, step, frame, 0 if known else 1)
        return
    carries = program.can_fail([step]) or frame.fault(step.reads) is not None
    branches = [_branch(program, step, branch, frame, carries) for branch in (0, 1)]
    if not carries and "if_conversion" in program.passes and is_small([step], program.types):
        program.note("if_conversion", f"both branches of {step.conditional.name!r} are computed")
        _select(condition, branches, step, frame)
        return
    results, faults, status = lax.cond(condition, *branches)
    decided = frame.fault([step.condition])
    for tensor, result, fault in zip(step.writes, results, faults, strict=True):
        frame.values[tensor] = result
        frame.poison([tensor], first(decided, fault))
    if step.has_assertions:
        frame.status = first(frame.status, decided, status)


def _select(condition: Any, branches: Sequence[Callable[[], Any]], step: IfStep, frame: Frame) -> None:
    """Compute both branches, which is faster than going one of two ways where both are small and cannot fail."""
    (true, _, _), (false, _, _) = (branch() for branch in branches)
    for tensor, one, other in zip(step.writes, true, false, strict=True):
        frame.values[tensor] = jnp.where(condition, one, other)


def _take(program: Program, step: IfStep, frame: Frame, branch: int) -> None:
    program.run(step.branches[branch].steps, frame)
    for tensor, result in zip(step.writes, step.results(branch), strict=True):
        frame.values[tensor] = program.array(result, frame)
        frame.poison([tensor], frame.fault([result]))


def _alike(program: Program, step: IfStep) -> bool:
    """Whether both branches give the same types; if not, the value that the condition has while building decides."""
    pairs = zip(step.results(0), step.results(1), strict=True)
    return all(program.types[true] == program.types[false] for true, false in pairs)


def _branch(program: Program, step: IfStep, branch: int, frame: Frame, carries: bool) -> Callable[[], Any]:
    def run() -> Any:
        inside = frame.inside()
        program.run(step.branches[branch].steps, inside)
        results = step.results(branch)
        faults = [first(0, inside.fault([each])) if carries else None for each in results]
        return [program.array(each, inside) for each in results], faults, jnp.int32(inside.status)

    return run
