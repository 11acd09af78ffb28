"""One conditional to ``lax.cond``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.lower.frame import Frame
from netloop.nest import IfStep

if TYPE_CHECKING:
    from netloop.lower.program import Program


def lower_conditional(program: Program, step: IfStep, frame: Frame) -> None:
    """Bring the outputs of a conditional into the frame; only the branch taken is computed."""
    condition = program.read(step.condition, frame)
    if isinstance(condition, np.ndarray):
        taken = 0 if condition else 1
        program.run(step.branches[taken].steps, frame)
        results: Any = [program.array(each, frame) for each in step.results(taken)]
    else:
        results, status = lax.cond(condition, _branch(program, step, 0, frame), _branch(program, step, 1, frame))
        frame.status = status if program.can_fail([step]) else frame.status
    frame.values.update(zip(step.writes, results, strict=True))


def _branch(program: Program, step: IfStep, branch: int, frame: Frame) -> Callable[[], tuple[list[Any], Any]]:
    def run() -> tuple[list[Any], Any]:
        inside = frame.inside()
        program.run(step.branches[branch].steps, inside)
        return [program.array(each, inside) for each in step.results(branch)], jnp.int32(inside.status)

    return run
