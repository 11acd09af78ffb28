"""A conditional as ``lax.cond``, as a selection between both branches, or as the branch that is known to be taken."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.compiler.lower.frame import Frame, first_error
from netloop.compiler.lower.loop.unroll_heuristic import is_small
from netloop.compiler.lower.lowering import Lowering
from netloop.compiler.lower.ranks import require_in_step
from netloop.compiler.passes.forms import LoweringForm
from netloop.model.manual_axes import cond
from netloop.model.nest import IfStep


def lower_conditional(lowering: Lowering, step: IfStep, frame: Frame) -> None:
    """Add the outputs of a conditional to the frame."""
    condition, value = lowering.read(step.condition, frame), lowering.types[step.condition].value
    if isinstance(condition, np.ndarray) or (value is not None and not _have_equal_types(lowering, step)):
        _take(lowering, step, frame, 0 if value else 1)
        return
    tracks_errors = lowering.facts.can_fail([step], frame.ended) or frame.error_flag(step.reads) is not None
    branches = [_branch(lowering, step, branch, frame, tracks_errors) for branch in (0, 1)]
    # A conditional in a loop is 39 times as fast with if-conversion (benchmarks/notes.md), but an expensive branch is
    # then computed whether or not it is taken, and an error in the branch that is not taken must not count.
    is_cheap = is_small([step], lowering.types, lowering.platform)
    if not tracks_errors and LoweringForm.IF_CONVERSION in lowering.passes and is_cheap:
        lowering.note(LoweringForm.IF_CONVERSION, f"both branches of {step.conditional.name!r} are computed")
        (true, _, _), (false, _, _) = (branch() for branch in branches)
        for tensor, one, other in zip(step.writes, true, false, strict=True):
            frame.values[tensor] = jnp.where(condition, one, other)
        return
    results, flags, status = cond(condition, *branches, look=partial(require_in_step, step))
    decided = frame.error_flag([step.condition])
    for tensor, result, flag in zip(step.writes, results, flags, strict=True):
        frame.values[tensor] = result
        frame.poison([tensor], first_error(decided, flag))
    if step.has_assertions:
        frame.status = first_error(frame.status, decided, status)


def _take(lowering: Lowering, step: IfStep, frame: Frame, branch: int) -> None:
    """Compute one branch, which is known while compiling."""
    lowering.run(step.branches[branch].steps, frame)
    for tensor, result in zip(step.writes, step.results(branch), strict=True):
        frame.values[tensor] = lowering.array(result, frame)
        frame.poison([tensor], frame.error_flag([result]))


def _have_equal_types(lowering: Lowering, step: IfStep) -> bool:
    """Whether both branches have the same types; if not, the value of the condition while building decides."""
    pairs = zip(step.results(0), step.results(1), strict=True)
    return all(lowering.types[true] == lowering.types[false] for true, false in pairs)


def _branch(lowering: Lowering, step: IfStep, branch: int, frame: Frame, tracks_errors: bool) -> Callable[[], Any]:
    def run() -> Any:
        inside = frame.inside()
        lowering.run(step.branches[branch].steps, inside)
        results = step.results(branch)
        # both branches of lax.cond return values of the same types, so a flag is 0 and not None
        flags = [first_error(0, inside.error_flag([result])) if tracks_errors else None for result in results]
        return [lowering.array(result, inside) for result in results], flags, jnp.int32(inside.status)

    return run
