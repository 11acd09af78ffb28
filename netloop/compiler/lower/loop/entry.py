"""Entering a loop: what of it runs, by which strategy, and what is poisoned without running it."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from netloop.compiler.lower.frame import Frame, first_error
from netloop.compiler.lower.loop.bounded_while import BoundedWhile
from netloop.compiler.lower.loop.kernel.jaxpr import Refused
from netloop.compiler.lower.loop.kernel_loop import is_candidate, kernel_carry
from netloop.compiler.lower.loop.outputs import leave
from netloop.compiler.lower.loop.prefix_scan import LinearLoop, Stages, stages_of
from netloop.compiler.lower.loop.reverse_guard import guarded
from netloop.compiler.lower.loop.scan import Scan
from netloop.compiler.lower.loop.state import Carry, LoopState
from netloop.compiler.lower.loop.strategy import LoopStrategy, StrategyKind, choose_strategy
from netloop.compiler.lower.loop.while_loop import WhileLoop
from netloop.compiler.lower.lowering import Lowering
from netloop.compiler.passes.forms import LoweringForm
from netloop.compiler.passes.growing_layers import BufferWriteLayer
from netloop.model.layers.loop import ILoopOutputLayer
from netloop.model.nest import LayerStep, LoopStep
from netloop.values.enums import TripLimit


def lower_loop(lowering: Lowering, step: LoopStep, frame: Frame) -> None:
    """Add the outputs of a loop to the frame."""
    state = enter(lowering, step, frame)
    if state is None:
        return
    strategy = _strategy(lowering, step)
    stages = _stages(state, strategy)
    if stages is not None:
        strategy = LoopStrategy(
            StrategyKind.PREFIX, "its states are linear, and its COUNT limit is known", strategy.trips
        )
    carry = None
    if stages is None and is_candidate(lowering):
        carry, strategy = _in_kernel(state, strategy)
    lowering.loop_strategies[step.loop] = strategy
    if carry is not None:
        leave(state, carry)
    elif stages is not None and strategy.trips is not None:
        leave(state, LinearLoop(state, strategy.trips, stages).run())
    elif strategy.kind is StrategyKind.SCAN:
        assert strategy.trips is not None
        leave(state, Scan(state, strategy.trips).run())
    elif (bound := lowering.bounds.get(step.loop.name)) is not None:
        leave(state, BoundedWhile(state, bound).run())
    else:
        carry = WhileLoop(state).run()
        leave(state, guarded(carry, step.loop) if lowering.is_pure else carry)


def _strategy(lowering: Lowering, step: LoopStep) -> LoopStrategy:
    """The strategy of a loop, with a reason that mentions its buffers."""
    strategy = choose_strategy(step.loop, lowering.facts, lowering.scopes.depth(step.loop))
    layers = (inner.layer for inner in step.body.steps if isinstance(inner, LayerStep))
    if any(isinstance(layer, BufferWriteLayer) for layer in layers):
        return replace(strategy, why=f"{strategy.why}; its states grow in buffers")
    return strategy


def _in_kernel(state: LoopState, strategy: LoopStrategy) -> tuple[Carry | None, LoopStrategy]:
    """The carry of a loop after its iterations as one kernel; None, and the reason, if it is none."""
    try:
        return kernel_carry(state, strategy)
    except Refused as reason:
        return None, replace(strategy, why=f"{strategy.why}; it is no kernel, as {reason}")


def _stages(state: LoopState, strategy: LoopStrategy) -> Stages | None:
    """The stages of a loop that prefix scans compute; None for another one."""
    lowering, step = state.lowering, state.step
    # error flags are those of one iteration, which all iterations at once do not have
    if LoweringForm.PREFIX_SCAN not in lowering.passes or state.tracks_errors or strategy.kind is not StrategyKind.SCAN:
        return None
    stages = stages_of(step, lowering.types, strategy.trips or 0)
    if stages is not None:
        lowering.note(
            LoweringForm.PREFIX_SCAN, f"states of {step.loop.name!r} that are prefix scans: {len(step.states)}"
        )
    return stages


def enter(lowering: Lowering, step: LoopStep, frame: Frame) -> LoopState | None:
    """A loop that is about to run; None if nothing of it does, as all its outputs are poisoned already."""
    if lowering.facts.exceeds_max_trips(step.loop):
        _poison_all(lowering, step, frame)
        return None
    step = _without_short_outputs(lowering, step, frame)
    return LoopState(lowering, step, frame) if step.outputs or step.has_assertions else None


def _poison_all(lowering: Lowering, step: LoopStep, frame: Frame) -> None:
    """Poison the outputs of a loop that always makes too many iterations: running it might take hours."""
    assert lowering.facts.max_trips is not None
    flag = lowering.errors.flag(True, step.loop.endless(lowering.facts.max_trips))
    for layer in step.outputs:
        _poison(lowering, layer, flag, frame)
    if step.has_assertions:
        frame.status = first_error(frame.status, flag)


def _without_short_outputs(lowering: Lowering, step: LoopStep, frame: Frame) -> LoopStep:
    """The loop without the stacked outputs that always have too little room, which are poisoned at once."""
    trips = lowering.facts.count(step.loop)
    if trips is None or step.loop.limit(TripLimit.WHILE) is not None:
        return step
    kept: list[ILoopOutputLayer] = []
    for layer in step.outputs:
        if not layer.stacks or trips <= lowering.facts.length(layer):
            kept.append(layer)
            continue
        finding = layer.finding("NL601", *layer.too_short(lowering.facts.length(layer)))
        _poison(lowering, layer, lowering.errors.flag(True, finding), frame)
    return step if len(kept) == len(step.outputs) else replace(step, outputs=kept)


def _poison(lowering: Lowering, layer: ILoopOutputLayer, flag: Any, frame: Frame) -> None:
    """Poison an output without running its loop; its value is zeros."""
    (output,) = layer.outputs
    frame.values[output] = jnp.zeros(lowering.types[output].shape, lowering.types[output].dtype)
    frame.poison([output], flag)
