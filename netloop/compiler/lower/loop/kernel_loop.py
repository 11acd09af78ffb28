"""Loops that become one kernel of a GPU each, and why others do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from netloop.compiler.lower.loop.kernel import triton
from netloop.compiler.lower.loop.kernel.conversion import LoopKernel
from netloop.compiler.lower.loop.kernel.jaxpr import Refused
from netloop.compiler.lower.loop.scan import Scan
from netloop.compiler.lower.loop.state import Carry, LoopState
from netloop.compiler.lower.loop.strategy import LoopStrategy, StrategyKind
from netloop.compiler.lower.loop.while_loop import WhileLoop
from netloop.compiler.lower.lowering import Lowering
from netloop.compiler.passes.forms import LoweringForm
from netloop.model.layers.loop import ILoop
from netloop.model.nest import LoopStep, walk
from netloop.values.enums import TripLimit

OF_LAUNCHES = frozenset({
    LoweringForm.PREFIX_SCAN, LoweringForm.LOOP_FISSION, LoweringForm.LOOP_UNROLLING, LoweringForm.LOOP_GRAPHS,
    LoweringForm.LOOP_KERNELS,
})  # fmt: skip
"""The forms that save launches, of which a kernel has one: inside of it a loop is lowered as it is."""


def is_candidate(lowering: Lowering) -> bool:
    """Whether loops of a program may be kernels: those of pure functions may be differentiated, and exported."""
    return LoweringForm.LOOP_KERNELS in lowering.passes and not lowering.is_pure


def kernel_carry(state: LoopState, strategy: LoopStrategy) -> tuple[Carry, LoopStrategy]:
    """The carry of a loop after its iterations, which are one kernel, and its strategy.

    Raises:
        Refused: it does not become a kernel.
    """
    lowering, step = state.lowering, state.step
    _require_possible(lowering, step)
    with lowering.without(OF_LAUNCHES):
        carry, kernel = (_scanned if strategy.kind is StrategyKind.SCAN else _repeated)(state, strategy)
    name = step.loop.name
    lowering.note(LoweringForm.LOOP_KERNELS, f"{name!r} is {kernel.described}")
    inside = lowering.loop_strategies
    for loop in filter(inside.__contains__, _loops_inside(step)):
        inside[loop] = LoopStrategy(StrategyKind.KERNEL, f"it is in the kernel of {name!r}", inside[loop].trips)
    return carry, LoopStrategy(StrategyKind.KERNEL, f"its iterations are {kernel.described}", strategy.trips)


def _require_possible(lowering: Lowering, step: LoopStep) -> None:
    if not triton.is_there():
        raise Refused("this release of JAX has no kernels for it")
    if jax.sharding.get_abstract_mesh().manual_axes:
        raise Refused("it runs on a mesh of devices")
    for loop in (step.loop, *_loops_inside(step)):
        # a kernel cannot be interrupted, and nothing else runs on the device until it ends
        if loop.limit(TripLimit.COUNT) is None and lowering.facts.max_trips is None:
            raise Refused(f"{loop.name!r} has neither a COUNT limit nor max_trips, and a kernel cannot be interrupted")


def _loops_inside(step: LoopStep) -> Iterator[ILoop]:
    return (inner.loop for inner in walk(step.body) if isinstance(inner, LoopStep))


def _scanned(state: LoopState, strategy: LoopStrategy) -> tuple[Carry, LoopKernel]:
    assert strategy.trips is not None
    loop, trips = Scan(state, strategy.trips), strategy.trips
    kernel = LoopKernel(loop.iterated, (state.initial(), loop.slices()))
    carry, rows = kernel.called()
    return carry._replace(trip=trips, buffers=rows), kernel


def _repeated(state: LoopState, strategy: LoopStrategy) -> tuple[Carry, LoopKernel]:
    loop = WhileLoop(state)
    kernel = LoopKernel(loop.iterated, (loop.begin(),))
    carry: Any = kernel.called()
    return loop.end(carry), kernel
