"""What is so small that starting it costs more than computing it."""

from __future__ import annotations

from collections.abc import Iterable

from netloop.graph.infer import TypeTable
from netloop.layers.loop import IIteratorLayer
from netloop.layers.pointwise import POINTWISE
from netloop.layers.sources import IConstantLayer
from netloop.nest import IfStep, LoopStep, Step

FREE = IConstantLayer, IIteratorLayer
MOST_LAYERS = 32
MOST_ELEMENTS = 64


def is_small(steps: Iterable[Step], types: TypeTable) -> bool:
    """Whether steps are at most 32 layers that compute element by element, at most 64 elements each.

    A conditional counts with both of its branches; a loop is never small.
    """
    return _count(steps, types) <= MOST_LAYERS


def _count(steps: Iterable[Step], types: TypeTable) -> int:
    return sum(_weight(step, types) for step in steps)


def _weight(step: Step, types: TypeTable) -> int:
    if isinstance(step, LoopStep):
        return MOST_LAYERS + 1
    if isinstance(step, IfStep):
        return sum(1 + _count(branch.steps, types) for branch in step.branches)
    if isinstance(step.layer, FREE):
        return 0
    is_short = all(0 <= types[each].volume <= MOST_ELEMENTS for each in step.writes)
    return 1 if isinstance(step.layer, POINTWISE) and is_short else MOST_LAYERS + 1
