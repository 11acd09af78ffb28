"""Loops whose states are linear: each state is a prefix scan, and all else runs for all iterations at once.

A state with the next value ``a * s + b``, element by element, where ``a`` and ``b`` depend on no state that is still to
be computed, is linear. Two such steps in a row are again one, ``a2 * a1 * s + (a2 * b1 + b2)``, so that the values of
all iterations need as many steps after each other as the number of iterations has digits. On a GPU an iteration costs
at least one launch, 3 to 5 us, whatever it computes: a running sum of 4,096 rows took 50 ms there as a loop and
0.04 ms as a prefix scan. On CPUs a loop reads and writes each number once, and prefix scans lost.

The products of many ``a`` may overflow where a loop would not, as ``0 * inf`` is no number. So the loop itself is the
other branch: it runs if a value of a state is not finite. Products may also underflow: what an iteration contributes to
a later one is lost where the factors between them have a product below the smallest number (1e-38 in float32).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from netloop.compiler.lower.loop.fission import may_run_at_once
from netloop.compiler.lower.loop.iterators import all_slices
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
CHUNK = 16
"""The number of steps that are made one after the other before the results of chunks are joined."""
FLOATS = np.dtype(np.float32), np.dtype(np.float64)
INTEGERS = np.dtype(np.int32), np.dtype(np.int64)
"""The types of linear states: sums of narrower floating-point numbers depend on their order in their first digits."""
ASSOCIATIVE = Op.MAX, Op.MIN, Op.AND, Op.OR, Op.XOR
"""The operations, besides linear ones, by which a state may be joined with a number of the iteration."""


@dataclass(frozen=True)
class Stage:
    """A state, and the steps that are made for all iterations before it is computed.

    Attributes:
        steps: the steps that run first; they read no state that is not computed.
        recurrence: the recurrence of the state.
        update: the steps from the state to its next value.
    """

    steps: list[LayerStep]
    recurrence: IRecurrenceLayer
    update: list[LayerStep]


@dataclass(frozen=True)
class Stages:
    """A loop body as stages, and the steps that remain for the rows of stacked outputs."""

    stages: list[Stage]
    rest: list[LayerStep]


class Linear(NamedTuple):
    """The values ``factor * state + term``, for all iterations along axis 0; a factor or term that is an int is exact.

    A value that does not depend on the state has the factor 0.
    """

    factor: Any
    term: Any


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
        stage = next(filter(None, (_stage(recurrence, left, dependent, types) for recurrence in unknown)), None)
        if stage is None:
            return None
        stages.append(stage)
        unknown.remove(stage.recurrence)
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


def _stage(
    recurrence: IRecurrenceLayer, steps: list[LayerStep], dependent: dict[ITensor, set[ITensor]], types: TypeTable
) -> Stage | None:
    """The stage of a recurrence; None if its state is not linear, or depends on one that is not computed."""
    state, following = recurrence.outputs[0], recurrence.tensor(1)
    free = [step for step in steps if dependent.keys().isdisjoint(step.writes)]
    if following not in dependent:
        return Stage(free, recurrence, [])
    needed = Block(list(steps)).needed([following])
    update = [step for step in steps if step in needed and step not in free]
    depends_on_itself = dependent[following] == {state}
    is_known = depends_on_itself and (_is_linear(update, state, types) or _is_associative(update, state, types))
    return Stage(free, recurrence, update) if is_known else None


def _is_linear(update: Sequence[LayerStep], state: ITensor, types: TypeTable) -> bool:
    """Whether each value of an update is ``a * state + b``, of the type of the state."""
    linear, wanted = {state}, types[state]
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


def _is_associative(update: Sequence[LayerStep], state: ITensor, types: TypeTable) -> bool:
    """Whether an update joins the state with a number of the iteration by one associative operation."""
    if len(update) != 1 or not isinstance(layer := update[0].layer, IElementWiseLayer):
        return False
    is_same = types[layer.outputs[0]] == types[state].without_value()
    return is_same and layer.op in ASSOCIATIVE and list(layer.inputs).count(state) == 1


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
            state, following = stage.recurrence.outputs[0], stage.recurrence.tensor(1)
            first = self._lowering.array(stage.recurrence.tensor(0), self._state.frame)
            elements = self._elements(stage, first, values)
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

    def _elements(self, stage: Stage, first: Any, values: dict[ITensor, Any]) -> jax.Array:
        """The next value of a state in all iterations."""
        state, following = stage.recurrence.outputs[0], stage.recurrence.tensor(1)
        if not stage.update and following is not state:
            return self._row(following, values)
        if not stage.update:
            return jnp.broadcast_to(first, (self._trips, *first.shape))
        layer = stage.update[0].layer
        if isinstance(layer, IElementWiseLayer) and layer.op in ASSOCIATIVE:
            (other,) = (tensor for tensor in layer.inputs if tensor is not None and tensor is not state)
            shape = (self._trips, *first.shape)
            numbers = jnp.broadcast_to(self._row(other, values), shape)
            return lax.associative_scan(layer.lower, numbers.at[0].set(layer.lower(first, numbers[0])))
        linear = {state: Linear(1, 0)}
        for step in stage.update:
            operands = [linear.get(tensor) or Linear(0, self._row(tensor, values)) for tensor in _operands(step)]
            linear[step.writes[0]] = _joined(step.layer, operands)
        factor, term = linear[following]
        return linear_scan(factor, term, first, self._trips)


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


# ---------------------------------------------------------------------------- linear values


def _joined(layer: Any, operands: Sequence[Linear]) -> Linear:
    """The linear value that a layer computes of others."""
    if isinstance(layer, ISelectLayer):
        (_, condition), a, b = operands
        return Linear(*(jnp.where(condition, *pair) for pair in zip(a, b, strict=True)))
    if isinstance(layer, IUnaryLayer):
        return Linear(*(-part for part in operands[0]))
    if not isinstance(layer, IElementWiseLayer):
        return operands[0]
    a, b = operands
    if layer.op is Op.SUM:
        return Linear(*map(_plus, a, b))
    if layer.op is Op.SUB:
        return Linear(_plus(a.factor, -b.factor), _plus(a.term, -b.term))
    if layer.op is Op.DIV:
        return Linear(a.factor / b.term, 0 if _is(a.term, 0) else a.term / b.term)
    scaled, number = (b, a.term) if _is(a.factor, 0) else (a, b.term)
    return Linear(*(_times(part, number) for part in scaled))


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int) and value == number


def _plus(a: Any, b: Any) -> Any:
    return b if _is(a, 0) else a if _is(b, 0) else a + b


def _times(a: Any, b: Any) -> Any:
    return 0 if _is(a, 0) or _is(b, 0) else b if _is(a, 1) else a if _is(b, 1) else a * b


# ---------------------------------------------------------------------------- scans


def linear_scan(factor: Any, term: Any, first: jax.Array, trips: int) -> jax.Array:
    """The values of ``s = factor * s + term`` from ``first`` on, along axis 0, one for each of ``trips`` iterations.

    Factor and term are ints, or one array for each iteration along axis 0, or one row for all.
    """
    shape = (trips, *first.shape)

    def whole(value: Any) -> jax.Array:
        return jnp.broadcast_to(jnp.asarray(value, first.dtype), shape)

    if _is(factor, 0):
        return whole(term)
    if _is(factor, 1):
        return first + lax.cumsum(whole(term), 0)
    if _is(term, 0):
        return first * lax.cumprod(whole(factor), 0)
    factors, sums = _composed(whole(factor), whole(term))
    return factors * first + sums


def _composed(factors: jax.Array, terms: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The factor and term of the first iterations together, for each number of them.

    In chunks one step after the other, and then over the chunks: ``lax.associative_scan`` writes and reads twice as
    many bytes, and XLA compiles it three times as long.
    """
    trips = len(factors)
    if trips <= CHUNK:
        return _sequential(factors, terms, 0)
    rest = -trips % CHUNK
    pads = [(0, rest), *[(0, 0)] * (factors.ndim - 1)]
    chunks = (-1, CHUNK, *factors.shape[1:])
    inner_factors, inner_terms = _sequential(
        jnp.pad(factors, pads, constant_values=1).reshape(chunks), jnp.pad(terms, pads).reshape(chunks), 1
    )
    outer_factors, outer_terms = _composed(inner_factors[:, -1], inner_terms[:, -1])
    # the state before a chunk is that after the chunk before it
    before_factors = jnp.concatenate([jnp.ones_like(outer_factors[:1]), outer_factors[:-1]])[:, None]
    before_terms = jnp.concatenate([jnp.zeros_like(outer_terms[:1]), outer_terms[:-1]])[:, None]
    results = inner_factors * before_factors, inner_factors * before_terms + inner_terms
    joined = (array.reshape(-1, *factors.shape[1:])[:trips] for array in results)
    return next(joined), next(joined)


def _sequential(factors: jax.Array, terms: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
    """The same along an axis, one step after the other."""
    rows = [[lax.index_in_dim(array, place, axis, keepdims=False) for place in range(array.shape[axis])]
            for array in (factors, terms)]  # fmt: skip
    steps = list(zip(*rows, strict=True))
    results = [steps[0]]
    for factor, term in steps[1:]:
        before_factor, before_term = results[-1]
        results.append((factor * before_factor, factor * before_term + term))
    first, second = zip(*results, strict=True)
    return jnp.stack(first, axis), jnp.stack(second, axis)
