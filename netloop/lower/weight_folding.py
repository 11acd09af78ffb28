"""What a program can compute once, when it gets its weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from netloop.graph.infer import TypeTable
from netloop.graph.layer import Operation
from netloop.graph.tensor import ITensor
from netloop.layers.rearrange import IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.layers.sources import IConstantLayer
from netloop.nest import Block, IfStep, LayerStep, Step, walk, weights_alone

SMALLEST = 1 << 12
"""What reads fewer bytes is as soon computed in each call."""
MOST_GROWTH = 4
"""What is so many times as large as what it is made of is computed in each call: it would fill the memory."""

MOVES = IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
"""Layers that compute no element: numpy is done with them before XLA has compiled them."""


class Early(NamedTuple):
    """What follows from weights alone.

    Attributes:
        steps: the steps that compute it, in running order.
        tensors: what the rest of the program reads of it.
    """

    steps: list[LayerStep]
    tensors: list[ITensor]

    @property
    def only_moves(self) -> bool:
        """Whether all that it computes are elements in other places."""
        return all(isinstance(each.layer, MOVES) for each in self.steps)

    def moved(self, given: Mapping[ITensor, Any], types: TypeTable) -> list[jax.Array]:
        """Its tensors by numpy, if it only moves elements."""
        values: dict[ITensor, Any] = {tensor: np.asarray(array) for tensor, array in given.items()}
        for step in self.steps:
            assert isinstance(step.layer, Operation)
            arrays = [each and values.get(each, types[each].value) for each in step.layer.inputs]
            values[step.layer.outputs[0]] = step.layer.evaluate(*arrays)
        return [jnp.asarray(values[each]) for each in self.tensors]


def find_early(block: Block, outputs: Iterable[ITensor], types: TypeTable) -> Early:
    """What of a block follows from weights alone, and is worth to be computed early."""
    fixed = weights_alone(block)
    found: dict[ITensor, LayerStep] = {}
    for step in walk(block):
        if isinstance(step, LayerStep) and step.reads and fixed.issuperset(step.writes) and step.writes:
            ready = all(each in found or isinstance(each.producer, IConstantLayer) for each in step.reads)
            if ready and _bytes(step.writes, types) <= MOST_GROWTH * _bytes(step.reads, types):
                found.update(dict.fromkeys(step.writes, step))
    steps = dict.fromkeys(found.values())
    if max((_bytes(each.reads, types) for each in steps), default=0) < SMALLEST:
        return Early([], [])
    late = [each for step in walk(block) if step not in steps for each in _own_reads(step)]
    return Early(list(steps), [each for each in dict.fromkeys([*late, *outputs]) if each in found])


def _own_reads(step: Step) -> Iterator[ITensor]:
    """What a step itself reads, and not the steps inside of it."""
    if isinstance(step, LayerStep):
        yield from step.reads
    elif isinstance(step, IfStep):
        yield from (step.condition, *step.results(0), *step.results(1))
    else:
        for layer in (*step.limits, *step.recurrences, *step.iterators, *step.outputs):
            yield from filter(None, layer.inputs)


def _bytes(tensors: Iterable[ITensor], types: TypeTable) -> int:
    return sum(types[each].nbytes for each in tensors)
