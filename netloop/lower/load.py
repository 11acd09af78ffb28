"""What a program can compute once, when it gets its weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from netloop.graph.infer import TypeTable
from netloop.graph.tensor import ITensor
from netloop.layers.sources import IConstantLayer
from netloop.nest import Block, IfStep, LayerStep, Step, walk, weights_alone

SMALLEST = 1 << 12
"""What reads fewer bytes is as soon computed in each call."""
MOST_GROWTH = 4
"""What is so many times as large as what it is made of is computed in each call: it would fill the memory."""


class Early(NamedTuple):
    """What follows from weights alone.

    Attributes:
        steps: the steps that compute it, in running order.
        tensors: what the rest of the program reads of it.
    """

    steps: list[LayerStep]
    tensors: list[ITensor]


def find_early(block: Block, outputs: Iterable[ITensor], types: TypeTable) -> Early:
    """What of a block follows from weights alone, and is worth to be computed early."""
    fixed = weights_alone(block)
    found: dict[ITensor, LayerStep] = {}
    for step in walk(block):
        if isinstance(step, LayerStep) and step.reads and fixed.issuperset(step.writes) and step.writes:
            ready = all(each in found or isinstance(each.producer, IConstantLayer) for each in step.reads)
            if ready and _bytes(step.writes, types) <= MOST_GROWTH * _bytes(step.reads, types):
                found.update(dict.fromkeys(step.writes, step))
    steps = list(dict.fromkeys(found.values()))
    if max((_bytes(each.reads, types) for each in steps), default=0) < SMALLEST:
        return Early([], [])
    late = [each for step in walk(block) if step not in steps for each in _own_reads(step)]
    return Early(steps, [each for each in dict.fromkeys([*late, *outputs]) if each in found])


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
