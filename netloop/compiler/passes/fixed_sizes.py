"""Let sizes that are the same in all iterations of a loop be constants."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.loop import ILoop, IRecurrenceLayer
from netloop.model.layers.pointwise import IElementWiseLayer
from netloop.model.nest import LoopStep
from netloop.values.enums import ElementWiseOperation, TripLimit
from netloop.values.types import Array, TensorType

MOST_TRIPS = 1 << 10
"""The most iterations whose sizes are computed one by one, which takes 0.1 to 0.3 ms of a compilation for each."""


class Size(NamedTuple):
    """An operand that decides the shape of a layer.

    Attributes:
        layer: the layer.
        position: the position of the operand.
        tensor: the operand.
    """

    layer: ILayer
    position: int
    tensor: ITensor


class FixedSizes(Pass):
    """Let sizes that follow from the number of the iteration, and are the same in all of them, be constants.

    The chunk ``x[i * 8 : i * 8 + 8]`` ends at the end of the axis at the latest, so that its length seems to be known
    only while the loop runs, and the loop would run on the host.
    """

    name = "fixed_sizes"
    level = 1
    # a counter that another one equals is gone
    after = ("redundant_carries",)
    on_host = True
    rule = (
        "In loops whose trip count is known when a program is compiled: sizes that follow from the number of the "
        f"iteration, such as those of consecutive chunks, are computed for all iterations, if these are at most "
        f"{MOST_TRIPS:,}. Sizes that are always the same become constants."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        sizes = _open_sizes(rewriter)
        steps = list(rewriter.loops()) if sizes else []
        flags = [_fix(rewriter, step, sizes[step.loop]) for step in steps if step.loop in sizes]
        return any(flags)


def _fix(rewriter: Rewriter, step: LoopStep, sizes: Sequence[Size]) -> bool:
    """Make constants of the sizes in a loop that are always the same; whether there were any."""
    count = _most_trips(step)
    # a size that varies in several loops may have become a constant
    sizes = [size for size in sizes if size.layer.inputs[size.position] is size.tensor]
    if not sizes or not 0 < count <= MOST_TRIPS:
        return False
    fixed = _Iterations(rewriter.network.types, step).constants(
        list(dict.fromkeys(size.tensor for size in sizes)), count
    )
    for layer, position, tensor in sizes:
        if tensor in fixed:
            layer.set_input(position, rewriter.make.constant(fixed[tensor]))
            rewriter.note(f"the size {tensor.name!r} is {fixed[tensor].tolist()} in all iterations")
    return bool(fixed)


def _most_trips(step: LoopStep) -> int:
    """The number of iterations whose sizes matter; 0 if it is not known."""
    count = step.loop.limit(TripLimit.COUNT)
    numbers = None if count is None else count.tensor(0).type.ints()
    if not numbers:
        return 0
    # a condition, and a last value that is no state, are computed as the iteration after the last one would see them
    ends = [output.tensor(0) for output in step.outputs if not output.stacks]
    is_ahead = step.loop.limit(TripLimit.WHILE) is not None or not {*ends}.issubset(step.states)
    return max(0, numbers[0]) + is_ahead


def _open_sizes(rewriter: Rewriter) -> dict[ILoop, list[Size]]:
    """The operands that decide a shape, vary in loops and are not known, by these loops."""
    result: dict[ILoop, list[Size]] = {}
    for layer in rewriter.scopes.live:
        for position in sorted(layer.SHAPE_INPUTS):
            tensor = layer.inputs[position] if position < len(layer.inputs) else None
            # a tensor of a branch that is not possible has no type
            kind = None if tensor is None else rewriter.network.types.of(tensor)
            if tensor is not None and isinstance(kind, TensorType) and kind.ints() is None:
                for loop in rewriter.scopes.chain_of(tensor):
                    result.setdefault(loop, []).append(Size(layer, position, tensor))
    return result


class _Iterations:
    """The values of tensors in a loop that follow from the number of the iteration."""

    def __init__(self, types: TypeTable, step: LoopStep) -> None:
        self._outside = {tensor: kind for tensor in step.reads if isinstance(kind := types.of(tensor), TensorType)}
        steps = ((state, _counted_by(state)) for state in step.recurrences)
        self._counters = {state.outputs[0]: (state.tensor(0).type, by) for state, by in steps if by is not None}

    def constants(self, tensors: Sequence[ITensor], count: int) -> dict[ITensor, Array]:
        """The values of those of some integers that are the same in all of the first iterations."""
        values: dict[ITensor, Array] = {}
        left = list(tensors)
        for table in islice(self._tables(), count):
            now = {tensor: kind.value for tensor in left if isinstance(kind := table.of(tensor), TensorType)}
            left = [
                tensor
                for tensor, value in now.items()
                if value is not None and np.array_equal(values.setdefault(tensor, value), value)
            ]
            if not left:
                break
        return {tensor: values[tensor] for tensor in left}

    def _tables(self) -> Iterator[TypeTable]:
        """The types in each iteration."""
        types = {counter: first for counter, (first, _) in self._counters.items()}
        while True:
            yield TypeTable({**self._outside, **types})
            for counter, (first, by) in self._counters.items():
                value = types[counter].value
                assert value is not None
                # numbers of numpy wrap around, as those of the loop do
                value = np.asarray(np.add(value, first.dtype.type(by)))
                types[counter] = TensorType(first.dtype, first.shape, value)


def _counted_by(state: IRecurrenceLayer) -> int | None:
    """The number that each iteration adds to a state of integers with a known beginning; None if it is no counter."""
    following, first = state.tensor(1).producer, state.tensor(0).type
    if not isinstance(following, IElementWiseLayer) or following.op is not ElementWiseOperation.SUM:
        return None
    if first.ints() is None:
        return None
    for at in (0, 1):
        number = operand(following, 1 - at).type.ints()
        if operand(following, at) is state.outputs[0] and number is not None and len({*number}) == 1:
            return number[0]
    return None
