"""Cost heuristic: steps that are cheaper than the overhead of an iteration or a branch."""

from collections.abc import Iterable, Iterator

from netloop.model.graph.infer import TypeTable
from netloop.model.layers.loop import IIteratorLayer
from netloop.model.layers.pointwise import POINTWISE
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import IfStep, LoopStep, Step

FREE = IConstantLayer, IIteratorLayer
MOST_LAYERS = 32
MOST_ELEMENTS = 64
"""Above about 96 elements XLA's vectorizer for CPUs takes another form, and a small body several times as long."""
MOST_WORK = 512
"""The number of elements of an unrolled body. XLA fuses its iterations, and its code for more is much slower."""
FACTORS = 16, 8, 4, 2, 1
"""The numbers of iterations to unroll."""
LEAST_WORK = 4
"""The work of a layer with few elements, in elements."""


def is_small(steps: Iterable[Step], types: TypeTable) -> bool:
    """Whether steps are at most 32 element-wise layers of at most 64 elements each.

    A conditional counts with both of its branches; a loop is never small.
    """
    return _are_few(list(_sizes(steps, types)))


def unroll_factor(steps: Iterable[Step], types: TypeTable, stacks: bool) -> int:
    """The number of iterations of a body to unroll: more than one if it is small.

    A loop that ``stacks`` rows unrolls less: its rows become a chain of updates, which XLA may copy.
    """
    sizes = list(_sizes(steps, types))
    if not _are_few(sizes) or (stacks and max(sizes, default=0) > 1):
        return 1
    work = sum(max(size, LEAST_WORK) for size in sizes)
    factor = next(factor for factor in FACTORS if factor * work <= MOST_WORK or factor == 1)
    return max(1, factor // 2) if stacks else factor


def _are_few(sizes: list[int]) -> bool:
    return len(sizes) <= MOST_LAYERS and max(sizes, default=0) <= MOST_ELEMENTS


def _sizes(steps: Iterable[Step], types: TypeTable) -> Iterator[int]:
    """The number of elements of each step; more than the limit for a step that is not element-wise."""
    for step in steps:
        if isinstance(step, IfStep):
            yield from (types[tensor].volume for tensor in step.writes)
            for branch in step.branches:
                yield from _sizes(branch.steps, types)
        elif isinstance(step, LoopStep) or not isinstance(step.layer, (*POINTWISE, *FREE)):
            yield MOST_ELEMENTS + 1
        elif isinstance(step.layer, POINTWISE):
            yield from (types[tensor].volume for tensor in step.writes)
