"""Buffers for what grows in a loop, and the trip counts that say how much of them counts."""

import numpy as np

from netloop.compiler.passes.buffer_layers import BufferRowsLayer
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph import ITensor
from netloop.model.layers.loop import ILoop, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.pointwise import IElementWiseLayer
from netloop.model.nest import LoopStep
from netloop.values.diagnostics import Finding, NetworkError, reason
from netloop.values.enums import ElementWiseOperation, TripLimit

LEAST_ROWS = 8
"""The least number of rows of a buffer."""
MOST_ROWS = 1 << 12
"""The most iterations for which a loop with a WHILE, which may end much earlier, gets a buffer."""


def has_open_end(step: LoopStep) -> bool:
    """Whether a loop has no COUNT, or may make far fewer iterations: only a run knows how many."""
    count = step.loop.limit(TripLimit.COUNT)
    numbers = None if count is None else count.tensor(0).type.ints()
    # a buffer has a row for each iteration of the COUNT, however few a WHILE lets be made
    is_few = numbers is not None and numbers[0] <= MOST_ROWS
    return count is None or (step.loop.limit(TripLimit.WHILE) is not None and not is_few)


def number_of_iterations(rewriter: Rewriter, step: LoopStep) -> ITensor:
    """The trip count, which without a WHILE is the COUNT, and may then be negative."""
    counts, count = rewriter.trip_counts, step.loop.limit(TripLimit.COUNT)
    if step.loop not in counts:
        if count is not None and step.loop.limit(TripLimit.WHILE) is None:
            counts[step.loop] = count.tensor(0)
        else:
            counts[step.loop] = rewriter.make.last(step.loop, rewriter.make.counter(step.loop))
    return counts[step.loop]


def counted_loop(number: ITensor) -> ILoop | None:
    """The loop of which a number is the trip count, as the last value of its counter."""
    end = number.producer
    counter = end.tensor(0).producer if isinstance(end, ILoopOutputLayer) and not end.stacks else None
    if not isinstance(counter, IRecurrenceLayer) or counter.tensor(0).type.ints() != [0]:
        return None
    following, now = counter.tensor(1).producer, counter.outputs[0]
    if not isinstance(following, IElementWiseLayer) or following.op is not ElementWiseOperation.SUM:
        return None
    counts = any(operand(following, at) is now and operand(following, 1 - at).type.ints() == [1] for at in (0, 1))
    return counter.loop if counts else None


def most_iterations(rewriter: Rewriter, step: LoopStep) -> int | None:
    """The largest number of iterations of a loop; None if it is not known, or may be far above what it makes."""
    limit, bound = step.loop.limit(TripLimit.COUNT), rewriter.bounds.get(step.loop.name)
    numbers = None if limit is None or has_open_end(step) else limit.tensor(0).type.ints()
    if numbers and step.loop.limit(TripLimit.WHILE) is None:
        # it makes as many, whatever its bound is
        return max(0, *numbers)
    known = [*(numbers or ()), *(() if bound is None else (bound,))]
    return max(0, min(known)) if known else None


def bound_of(rewriter: Rewriter, step: LoopStep) -> int:
    """The largest number of iterations of a loop of a pure function.

    Raises:
        NetworkError: it is not known.
    """
    most = most_iterations(rewriter, step)
    if most is None:
        raise NetworkError(without_bound(step.loop))
    return most


def without_bound(loop: ILoop) -> Finding:
    """The finding about a loop of a pure function of which only a run knows how long its results are."""
    what = f"{loop.name!r} appends in each iteration, and only a run knows how many it makes"
    fix = f"netloop.to_jax(network, bound={{{loop.name!r}: n}}), where n is the largest number of iterations"
    return Finding("NL674", what, loop.where, reason("NL674"), fix, at=loop)


def not_padded(loop: ILoop, refusal: Exception) -> Finding:
    """The finding about a loop of a pure function that makes something which cannot be in a buffer."""
    what = f"{loop.name!r} makes tensors of other lengths in each iteration, and {refusal}"
    return Finding("NL675", what, loop.where, reason("NL675"), "netloop.compile runs it as it is", at=loop)


def buffer_rows(rewriter: Rewriter, count: ITensor) -> ITensor:
    """The number of rows of a buffer for a COUNT that only a run knows; int64, 0-D."""
    least = rewriter.make.constant(np.array(LEAST_ROWS, np.int64))
    return rewriter.network.add(BufferRowsLayer(), [least, count]).outputs[0]
