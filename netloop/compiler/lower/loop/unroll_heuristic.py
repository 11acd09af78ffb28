"""Cost heuristic: steps that are cheaper than the overhead of an iteration or a branch."""

import math
from collections.abc import Iterable, Iterator

from netloop.model.graph.infer import TypeTable
from netloop.model.layers.loop import IIteratorLayer
from netloop.model.layers.pointwise import POINTWISE
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import Block, IfStep, LayerStep, LoopStep, Step, walk

FREE = IConstantLayer, IIteratorLayer
MOST_LAYERS = 32
MOST_ELEMENTS = 64
"""Above about 96 elements XLA's vectorizer for CPUs takes another form, and a small body several times as long."""
MOST_OF_A_GPU = 1 << 16
"""A kernel of so many elements takes no longer than its launch, and a branch costs the host a look at the device."""
MOST_WORK = 512
"""The number of elements of an unrolled body. XLA fuses its iterations, and its code for more is much slower."""
FACTORS = 16, 8, 4, 2, 1
"""The numbers of iterations to unroll."""
LAUNCH_FACTORS = 8, 4, 2
"""The numbers of iterations to unroll to save launches."""
KERNEL_FACTORS = 64, 32, 16, *LAUNCH_FACTORS
MOST_IN_A_KERNEL = 512
"""The most layers of an unrolled body that is one kernel: XLA compiled 256 iterations of 10 layers for 10 seconds."""
MOST_UNROLLED = 256
"""The most layers of a body that is unrolled to save launches, as XLA's time to compile grows with them."""
LEAST_WORK = 4
"""The work of a layer with few elements, in elements."""


def is_small(steps: Iterable[Step], types: TypeTable, platform: str = "cpu") -> bool:
    """Whether steps are at most 32 element-wise layers of at most 64 elements each, on GPUs 65,536.

    A conditional counts with both of its branches; a loop is never small.
    """
    return _are_few(list(_sizes(steps, types)), MOST_OF_A_GPU if platform == "gpu" else MOST_ELEMENTS)


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


def launches_factor(steps: Iterable[Step], types: TypeTable, trips: int, stacks: bool) -> int:
    """The number of iterations to unroll where launches decide, as on GPUs: 1 for a body with a loop.

    An unrolled body of element-wise layers is one kernel, and its counter another one. Of other bodies an unrolled one
    saves the launch of its counter, and joins the rows of its iterations. An LSTM of 512 took 0.89 ms in 128 single
    iterations, 0.51 four at a time and 0.47 sixteen at a time on an H100. XLA compiles as many times as long. A
    conditional of a few products XLA makes a selection, in the kernel of the next iteration's first product.
    """
    steps = list(steps)
    if trips > 1 and not stacks and (factor := kernel_factor(steps, types, trips)) > 1:
        return factor
    if any(isinstance(step, LoopStep) for step in walk(Block(steps))):
        return 1
    return _factor(steps, LAUNCH_FACTORS, MOST_UNROLLED, trips)


def kernel_factor(steps: Iterable[Step], types: TypeTable, trips: float = math.inf) -> int:
    """The number of iterations of a body that are one kernel of a GPU; 1 if not all of its layers are element-wise."""
    steps = list(steps)
    are_elementwise = max(_sizes(steps, types), default=0) < math.inf
    are_layers = all(isinstance(step, LayerStep) or is_small([step], types, "gpu") for step in steps)
    return _factor(steps, KERNEL_FACTORS, MOST_IN_A_KERNEL, trips) if are_elementwise and are_layers else 1


def _factor(steps: Iterable[Step], factors: Iterable[int], most: int, trips: float) -> int:
    """The largest of some factors for which an unrolled body has at most so many layers, and the loop as many steps."""
    layers = [step.layer for step in walk(Block(list(steps))) if isinstance(step, LayerStep)]
    work = sum(not isinstance(layer, FREE) for layer in layers)
    return next((factor for factor in factors if factor <= trips and factor * work <= most), 1)


def _are_few(sizes: list[float], most: int = MOST_ELEMENTS) -> bool:
    return len(sizes) <= MOST_LAYERS and max(sizes, default=0) <= most


def _sizes(steps: Iterable[Step], types: TypeTable) -> Iterator[float]:
    """The number of elements of each step; infinity for a step that is not element-wise."""
    for step in steps:
        if isinstance(step, IfStep):
            yield from (types[tensor].volume for tensor in step.writes)
            for branch in step.branches:
                yield from _sizes(branch.steps, types)
        elif isinstance(step, LoopStep) or not isinstance(step.layer, (*POINTWISE, *FREE)):
            yield math.inf
        elif isinstance(step.layer, POINTWISE):
            yield from (types[tensor].volume for tensor in step.writes)
