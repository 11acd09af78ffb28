"""Loops whose states are linear: each state is a prefix scan, and all else runs for all iterations at once.

A state with the next value ``a * s + b``, element by element, where ``a`` and ``b`` depend on no state that is still to
be computed, is linear, and so are up to four states together that depend on each other: ``linear_scan.py`` computes
their values in all iterations. On a GPU an iteration costs at least one launch, 3 to 5 us, whatever it computes: a
running sum of 4,096 rows took 50 ms there as a loop and 0.04 ms as a prefix scan. On CPUs a loop reads and writes each
number once, and prefix scans lost.

The products of many ``a`` may overflow where a loop would not, as ``0 * inf`` is no number. So the loop itself is the
other branch: it runs if a value of a state is not finite. Products may also underflow: what an iteration contributes to
a later one is lost where the factors between them have a product below the smallest number (1e-38 in float32).
Of several states the error is of the order of the products of the matrices, as that of the loop is.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from netloop.compiler.lower.loop.fission import may_run_at_once
from netloop.compiler.lower.loop.iterators import all_slices
from netloop.compiler.lower.loop.linear_scan import Linear, joined, linear_scan
from netloop.compiler.lower.loop.rows import in_bytes
from netloop.compiler.lower.loop.scan import Scan
from netloop.compiler.lower.loop.state import Carry, LoopState
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import IIteratorLayer, IRecurrenceLayer
from netloop.model.layers.pointwise import IElementWiseLayer, IIdentityLayer, ISelectLayer, IUnaryLayer
from netloop.model.manual_axes import cond
from netloop.model.nest import Block, LayerStep, LoopStep
from netloop.values.enums import ElementWiseOperation as Op
from netloop.values.enums import UnaryOperation
from netloop.values.types import TINY

FEWEST_TRIPS = 16
"""A prefix scan has about ten launches, which are those of a few iterations of a loop."""
MOST_BYTES = 1 << 30
"""The most bytes of the values of a loop, which all lie in memory at once."""
MOST_COUPLED = 4
"""The most states that are linear together: each is multiplied by as many factors in each round of a scan."""
FLOATS = np.dtype(np.float32), np.dtype(np.float64)
INTEGERS = np.dtype(np.int32), np.dtype(np.int64)
"""The types of linear states: sums of narrower floating-point numbers depend on their order in their first digits."""
ASSOCIATIVE = Op.MAX, Op.MIN, Op.AND, Op.OR, Op.XOR
"""The operations, besides linear ones, by which a state may be joined with a number of the iteration."""


@dataclass(frozen=True)
class Stage:
    """A state, or several that depend on each other, and what is computed for all iterations before.

    Attributes:
        steps: the steps that run first; they read no state that is not computed.
        recurrences: the recurrences of the states.
        update: the steps from the states to their next values.
    """

    steps: list[LayerStep]
    recurrences: list[IRecurrenceLayer]
    update: list[LayerStep]

    @property
    def states(self) -> list[ITensor]:
        """The values of the recurrences in an iteration."""
        return [recurrence.outputs[0] for recurrence in self.recurrences]

    @property
    def following(self) -> list[ITensor]:
        """Their values in the next one."""
        return [recurrence.tensor(1) for recurrence in self.recurrences]


@dataclass(frozen=True)
class Stages:
    """A loop body as stages, and the steps that remain for the rows of stacked outputs."""

    stages: list[Stage]
    rest: list[LayerStep]


def stages_of(step: LoopStep, types: TypeTable, trips: int) -> Stages | None:
    """The stages of a loop of which every state is linear or associative; None if one is not, or memory is short.

    A loop without a state has no stage.
    """
    body = [inner for inner in step.iteration if not _is_iterator(inner)]
    layers = [inner for inner in body if isinstance(inner, LayerStep) and may_run_at_once(inner)]
    tensors = [*step.states, *(tensor for inner in layers for tensor in inner.writes)]
    is_small = trips * sum(types[tensor].nbytes for tensor in tensors) <= MOST_BYTES
    # XLA's code for many values of fewer than 8 bits is invalid on CPUs, and on GPUs it refuses their slices
    is_tiny = any(types[tensor].dtype in TINY for tensor in tensors)
    if len(layers) < len(body) or trips < FEWEST_TRIPS or not is_small or is_tiny:
        return None
    stages, left, unknown = list[Stage](), layers, list(step.recurrences)
    while unknown:
        dependent = _dependent(left, [recurrence.outputs[0] for recurrence in unknown])
        groups = [_group(recurrence, unknown, dependent) for recurrence in unknown]
        stage = _stage(min(groups, key=len), left, dependent, types)
        if stage is None or trips * len(stage.states) ** 2 * types[stage.states[0]].nbytes > MOST_BYTES:
            return None
        stages.append(stage)
        unknown = [recurrence for recurrence in unknown if recurrence not in stage.recurrences]
        left = [inner for inner in left if inner not in stage.steps]
    return Stages(stages, left)


def _is_iterator(step: Any) -> bool:
    return isinstance(step, LayerStep) and isinstance(step.layer, IIteratorLayer)


def _dependent(steps: Iterable[LayerStep], states: Iterable[ITensor]) -> dict[ITensor, set[ITensor]]:
    """The states on which tensors depend; tensors that depend on none are not in it."""
    result = {state: {state} for state in states}
    for step in steps:
        reached = set[ITensor]().union(*(result.get(tensor, ()) for tensor in step.reads))
        if reached:
            result.update(dict.fromkeys(step.writes, reached))
    return result


def _group(
    recurrence: IRecurrenceLayer, unknown: Sequence[IRecurrenceLayer], dependent: dict[ITensor, set[ITensor]]
) -> list[IRecurrenceLayer]:
    """A recurrence, and those whose states must be computed together with its state, or before."""
    reached, before = {recurrence}, set[IRecurrenceLayer]()
    while reached != before:
        before = set(reached)
        read = set[ITensor]().union(*(dependent.get(member.tensor(1), ()) for member in before))
        reached |= {other for other in unknown if other.outputs[0] in read}
    return [other for other in unknown if other in reached]


def _stage(
    group: list[IRecurrenceLayer], steps: list[LayerStep], dependent: dict[ITensor, set[ITensor]], types: TypeTable
) -> Stage | None:
    """The stage of some recurrences; None if their states are not linear."""
    free = [step for step in steps if dependent.keys().isdisjoint(step.writes)]
    following = [recurrence.tensor(1) for recurrence in group]
    needed = Block(list(steps)).needed([tensor for tensor in following if tensor in dependent])
    stage = Stage(free, group, [step for step in steps if step in needed and step not in free])
    if following[0] not in dependent or _is_linear(stage.update, stage.states, types):
        return stage
    return stage if _is_associative(stage.update, stage.states, types) else None


def _is_linear(update: Sequence[LayerStep], states: Sequence[ITensor], types: TypeTable) -> bool:
    """Whether each value of an update is a sum of factors times states and a term, of the type of the states."""
    linear, wanted = {*states}, types[states[0]]
    if len(states) > MOST_COUPLED or len({types[state].without_value() for state in states}) > 1:
        return False
    for step in update:
        layer, written = step.layer, step.writes[0]
        places = {place for place, tensor in enumerate(layer.inputs) if tensor in linear}
        if wanted.dtype not in (*FLOATS, *INTEGERS) or types[written] != wanted.without_value():
            return False
        if not _keeps_linear(layer, places, wanted.dtype):
            return False
        linear.add(written)
    return True


def _keeps_linear(layer: Any, places: set[int], dtype: Any) -> bool:
    """Whether a layer makes a linear value of those inputs that are."""
    if isinstance(layer, IElementWiseLayer):
        if layer.op is Op.PROD:
            return len(places) == 1
        return layer.op in (Op.SUM, Op.SUB) or (layer.op is Op.DIV and places == {0} and dtype in FLOATS)
    if isinstance(layer, ISelectLayer):
        return 0 not in places
    return isinstance(layer, IIdentityLayer) or (isinstance(layer, IUnaryLayer) and layer.op is UnaryOperation.NEG)


def _is_associative(update: Sequence[LayerStep], states: Sequence[ITensor], types: TypeTable) -> bool:
    """Whether an update joins a single state with a number of the iteration by one associative operation."""
    if len(update) != 1 or len(states) != 1 or not isinstance(layer := update[0].layer, IElementWiseLayer):
        return False
    is_same = types[layer.outputs[0]] == types[states[0]].without_value()
    return is_same and layer.op in ASSOCIATIVE and list(layer.inputs).count(states[0]) == 1


class LinearLoop:
    """A loop of a known trip count whose states are computed by prefix scans."""

    def __init__(self, state: LoopState, trips: int, stages: Stages) -> None:
        self._state, self._lowering, self._trips, self._stages = state, state.lowering, trips, stages

    def run(self) -> Carry:
        """The carry after all iterations, with the rows of the stacked outputs as its buffers."""
        carry, is_finite = self._at_once()
        if is_finite is not None:
            # both branches return the same; the loop is the branch for what only it computes
            states, buffers = cond(is_finite, lambda: _results(carry), lambda: _results(self._loop()))
            carry = carry._replace(states=states, buffers=buffers)
        steps = [*self._stages.rest, *(step for stage in self._stages.stages for step in stage.steps)]
        self._lowering.batched_layers[self._state.step.loop] = [step.layer for step in steps]
        return carry._replace(trip=self._trips)

    def _loop(self) -> Carry:
        return Scan(self._state, self._trips, is_rare=True).run()

    def _at_once(self) -> tuple[Carry, Any]:
        """The carry after all iterations, and whether all values of floating-point states are finite."""
        values, finite, inside = self._slices(), list[Any](), self._state.iteration(self._trips)
        for stage in self._stages.stages:
            values |= self._run(stage.steps, values)
            firsts = [self._lowering.array(layer.tensor(0), self._state.frame) for layer in stage.recurrences]
            results = self._elements(stage, firsts, values)
            for state, following, first, elements in zip(stage.states, stage.following, firsts, results, strict=True):
                values[following], inside.values[following] = elements, elements[-1]
                values[state] = jnp.concatenate([first[None], elements[:-1]])
                if stage.update and elements.dtype in FLOATS:
                    finite.append(_are_finite(lax.stop_gradient(elements)))
        values |= self._run(self._stages.rest, values)
        rows = [in_bytes(self._row(row, values), self._lowering.platform) for row in self._state.step.rows]
        carry = self._state.pack(self._state.initial(), inside)._replace(buffers=rows)
        return carry, reduce(operator.and_, finite) if finite else None

    def _slices(self) -> dict[ITensor, Any]:
        step = self._state.step
        return {
            iterator.outputs[0]: all_slices(self._lowering, iterator, self._trips, self._state.frame)
            for iterator in step.iterators
        }

    def _run(self, steps: Sequence[LayerStep], values: dict[ITensor, Any]) -> dict[ITensor, Any]:
        """The tensors that some steps write in all iterations, along axis 0, without those that are known already."""
        written = [tensor for step in steps for tensor in step.writes if tensor not in values]

        def iteration(trip: Any, present: dict[int, Any]) -> list[Any]:
            inside = self._state.iteration(trip)
            inside.values.update(zip(values, present.values(), strict=True))
            self._lowering.run(steps, inside)
            return [self._lowering.array(tensor, inside) for tensor in written]

        present = dict(enumerate(values.values()))
        return dict(zip(written, jax.vmap(iteration)(jnp.arange(self._trips), present), strict=True))

    def _row(self, tensor: ITensor, values: dict[ITensor, Any]) -> jax.Array:
        """A value for all iterations; one from outside of the loop is the same in each."""
        if tensor in values:
            return values[tensor]
        array = self._lowering.array(tensor, self._state.frame)
        return jnp.broadcast_to(array, (self._trips, *array.shape))

    def _elements(self, stage: Stage, firsts: Sequence[Any], values: dict[ITensor, Any]) -> Sequence[jax.Array]:
        """The next values of states in all iterations."""
        states, number = stage.states, len(stage.states)
        layer = stage.update[0].layer if stage.update else None
        if isinstance(layer, IElementWiseLayer) and layer.op in ASSOCIATIVE:
            (first,), (other,) = firsts, (tensor for tensor in _operands(stage.update[0]) if tensor is not states[0])
            shape = (self._trips, *first.shape)
            numbers = jnp.broadcast_to(self._row(other, values), shape)
            return [lax.associative_scan(layer.lower, numbers.at[0].set(layer.lower(first, numbers[0])))]
        linear = {state: Linear(tuple(int(i == place) for i in range(number)), 0) for place, state in enumerate(states)}

        def value(tensor: ITensor) -> Linear:
            return linear.get(tensor) or Linear((0,) * number, self._row(tensor, values))

        for step in stage.update:
            linear[step.writes[0]] = joined(step.layer, [value(tensor) for tensor in _operands(step)])
        return linear_scan([value(tensor) for tensor in stage.following], firsts, self._trips)


def _operands(step: LayerStep) -> list[ITensor]:
    return [tensor for tensor in step.layer.inputs if tensor is not None]


@custom_vmap
def _are_finite(elements: jax.Array) -> jax.Array:
    """Whether all numbers are finite, under ``vmap`` those of all rows: by row, both branches would be computed."""
    return jnp.all(jnp.isfinite(elements))


@_are_finite.def_vmap
def _of_all_rows(rows: int, are_batched: Any, elements: jax.Array) -> tuple[jax.Array, bool]:
    return _are_finite(elements), False


def _results(carry: Carry) -> tuple[list[Any], list[Any]]:
    return carry.states, carry.buffers
