"""What is so small that starting it costs more than computing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netloop.graph.infer import TypeTable
from netloop.layers.loop import IIteratorLayer
from netloop.layers.pointwise import POINTWISE
from netloop.layers.sources import IConstantLayer
from netloop.nest import IfStep, LoopStep, Step

FREE = IConstantLayer, IIteratorLayer
MOST_LAYERS = 32
MOST_ELEMENTS = 64
MOST_TRIPS = 16
MOST_WORK = 512
"""Elements: XLA fuses all trips that are made at a time, and its code for more is slower by far."""
LEAST_WORK = 4
"""What a layer takes at least, however few its elements are."""


def is_small(steps: Iterable[Step], types: TypeTable) -> bool:
    """Whether steps are at most 32 layers that compute element by element, at most 64 elements each.

    A conditional counts with both of its branches; a loop is never small.
    """
    return _are_few(list(_sizes(steps, types)))


def trips_at_a_time(steps: Iterable[Step], types: TypeTable, stacks: bool) -> int:
    """How many trips of a body are best made at a time: more than one if it is small.

    Args:
        steps: the body.
        types: the types of its tensors.
        stacks: whether each trip also writes to an output.
    """
    sizes = list(_sizes(steps, types))
    if not _are_few(sizes) or (stacks and max(sizes, default=0) > 1):
        return 1
    work = sum(max(each, LEAST_WORK) for each in sizes)
    trips = next(each for each in (16, 8, 4, 2, 1) if each * work <= MOST_WORK or each == 1)
    return max(1, trips // 2) if stacks else trips


def _are_few(sizes: list[int]) -> bool:
    return len(sizes) <= MOST_LAYERS and max(sizes, default=0) <= MOST_ELEMENTS


def _sizes(steps: Iterable[Step], types: TypeTable) -> Iterator[int]:
    """The numbers of elements that steps make one by one; beyond all bounds where something else is among them."""
    for step in steps:
        if isinstance(step, IfStep):
            yield from (types[each].volume for each in step.writes)
            for branch in step.branches:
                yield from _sizes(branch.steps, types)
        elif isinstance(step, LoopStep) or not isinstance(step.layer, (*POINTWISE, *FREE)):
            yield MOST_ELEMENTS + 1
        elif isinstance(step.layer, POINTWISE):
            yield from (types[each].volume for each in step.writes)
