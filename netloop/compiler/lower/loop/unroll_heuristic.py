"""Cost heuristic: steps that are cheaper than the overhead of an iteration or a branch."""

from collections.abc import Iterable, Iterator

from netloop.model.graph.infer import TypeTable
from netloop.model.layers.loop import IIteratorLayer
from netloop.model.layers.pointwise import POINTWISE
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import IfStep, LayerStep, LoopStep, Step

FREE = IConstantLayer, IIteratorLayer
MOST_LAYERS = 32
MOST_ELEMENTS = 64
"""Above about 96 elements XLA's vectorizer for CPUs takes another form, and a small body several times as long."""
MOST_WORK = 512
"""The number of elements of an unrolled body. XLA fuses its iterations, and its code for more is much slower."""
FACTORS = 16, 8, 4, 2, 1
"""The numbers of iterations to unroll."""
LAUNCH_FACTORS = 8, 4, 2
"""The numbers of iterations to unroll to save launches."""
MOST_UNROLLED = 256
"""The most layers of a body that is unrolled to save launches, as XLA's time to compile grows with them."""
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


def launches_factor(steps: Iterable[Step], trips: int) -> int:
    """The number of iterations to unroll where launches decide, as on GPUs: up to 8, and 1 for a body with a loop.

    An unrolled body saves the launch of its counter, joins the rows of its iterations, and has the five launches from
    which XLA makes a CUDA graph of it. An LSTM of 512 took 0.89 ms in 128 single iterations, 0.51 four at a time and
    0.47 sixteen at a time on an H100; compiling took as many times as long as iterations were unrolled.
    """
    steps = list(steps)
    if not all(isinstance(step, LayerStep) for step in steps):
        return 1
    layers = sum(not isinstance(step.layer, FREE) for step in steps)
    return next((factor for factor in LAUNCH_FACTORS if factor <= trips and factor * layers <= MOST_UNROLLED), 1)


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
