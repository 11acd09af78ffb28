"""Weight folding: compute layers that depend on weights only at load time, once, and not in each call.

Weights are arguments of the program, so XLA computes what follows from them anew in each call: 5.2 times as long for a
char-RNN of 2 x 512 by one step a call (benchmarks/RESULTS.md).
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from netloop.graph.infer import TypeTable
from netloop.graph.layer import Operation
from netloop.graph.tensor import ITensor
from netloop.layers.rearrange import IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.layers.sources import IConstantLayer
from netloop.nest import Block, IfStep, LayerStep, Step, walk, weight_only_tensors

SMALLEST = 1 << 12
"""The least number of bytes of weights for which folding gains anything."""
MOST_GROWTH = 4
"""The most that folding may multiply the bytes of its inputs by: larger results would fill the memory."""

MOVES = IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
"""Layers that compute no element: numpy has run them before XLA has compiled them."""


class WeightOnlySteps(NamedTuple):
    """The steps of a program that depend on weights only.

    Attributes:
        steps: the steps, in running order.
        tensors: their results that the rest of the program reads.
    """

    steps: list[LayerStep]
    tensors: list[ITensor]

    @property
    def only_moves(self) -> bool:
        """Whether the steps compute no element, and only move elements to other places."""
        return all(isinstance(each.layer, MOVES) for each in self.steps)

    def by_numpy(self, given: Mapping[ITensor, Any], types: TypeTable) -> list[jax.Array]:
        """The values of its tensors, computed by numpy; only for steps that move elements."""
        values: dict[ITensor, Any] = {tensor: np.asarray(array) for tensor, array in given.items()}
        for step in self.steps:
            assert isinstance(step.layer, Operation)
            arrays = [each and values.get(each, types[each].value) for each in step.layer.inputs]
            values[step.layer.outputs[0]] = step.layer.evaluate(*arrays)
        return [jnp.asarray(values[each]) for each in self.tensors]


def find_weight_folding(block: Block, outputs: Iterable[ITensor], types: TypeTable) -> WeightOnlySteps:
    """Find the steps of a block that depend on weights only and are worth folding."""
    fixed = weight_only_tensors(block)
    found: dict[ITensor, LayerStep] = {}
    for step in walk(block):
        if isinstance(step, LayerStep) and step.reads and fixed.issuperset(step.writes) and step.writes:
            ready = all(each in found or isinstance(each.producer, IConstantLayer) for each in step.reads)
            if ready and _bytes(step.writes, types) <= MOST_GROWTH * _bytes(step.reads, types):
                found.update(dict.fromkeys(step.writes, step))
    steps = dict.fromkeys(found.values())
    if max((_bytes(each.reads, types) for each in steps), default=0) < SMALLEST:
        return WeightOnlySteps([], [])
    late = [each for step in walk(block) if step not in steps for each in _own_reads(step)]
    return WeightOnlySteps(list(steps), [each for each in dict.fromkeys([*late, *outputs]) if each in found])


def _own_reads(step: Step) -> list[ITensor]:
    """The tensors that a step itself reads, without those that steps inside it read."""
    if isinstance(step, LayerStep):
        return step.reads
    if isinstance(step, IfStep):
        return [step.condition, *step.results(0), *step.results(1)]
    boundary = (*step.limits, *step.recurrences, *step.iterators, *step.outputs)
    return [each for layer in boundary for each in layer.inputs if each is not None]


def _bytes(tensors: Iterable[ITensor], types: TypeTable) -> int:
    return sum(types[each].nbytes for each in tensors)
