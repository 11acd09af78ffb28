"""The number of iterations that each loop of a network makes for some inputs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netloop.compiler.execution.executable import Executable
from netloop.compiler.lower.loop.facts import known_count
from netloop.compiler.recipe import Recipe
from netloop.model.call_inputs import check_values
from netloop.model.check import require_valid
from netloop.model.graph import ITensor, TypeTable
from netloop.model.layers.loop import ILoop
from netloop.model.nest import Block, IfStep, LoopStep
from netloop.model.network import INetworkDefinition
from netloop.values.enums import ElementWiseOperation, LoopOutput, TripLimit
from netloop.values.types import TensorType

Around = tuple[LoopStep | tuple[IfStep, int], ...]
"""The loops and the branches of conditionals around a step, the outermost first."""


@dataclass(frozen=True)
class TripCount:
    """The iterations of one loop.

    Attributes:
        loop: the loop.
        inside: the names of the loops around it, the outermost first.
        iterations: the number of its iterations, in all iterations of the loops around it together.
    """

    loop: ILoop
    inside: tuple[str, ...]
    iterations: int


def trip_counts(
    network: INetworkDefinition, inputs: Mapping[str, Any], max_trips: int | None = None
) -> list[TripCount]:
    """The iterations of each loop on which an output depends.

    Counts that follow from the inputs and shapes alone take no run. For the others a copy of the network runs, with
    more outputs: these numbers.

    Args:
        network: the network.
        inputs: an array for each input, by name.
        max_trips: the largest number of iterations of a loop whose count is not known before the run, each time it is
            entered; where a loop of known count makes more, as many as that one. None for any number.

    Raises:
        NetworkError: the network is invalid.
        InputError: an input is missing, unknown, or of another type or shape.
        ExecutionError: a loop makes more iterations, or a computation failed.
    """
    # whether a network is valid for all these values is for the run itself to say
    types, steps = _types(network, inputs), list(_loops(require_valid(network).block))
    known = {step: _known(step, types) for step, _ in steps}
    totals = [_product([known[loop] if isinstance(loop, LoopStep) else None for loop in (*around, step)])
              for step, around in steps]  # fmt: skip
    if None in totals:
        # a program has one limit for all loops, and one of known length ends, however long it is
        most = None if max_trips is None else max(max_trips, *(number or 0 for number in known.values()))
        totals = _counted(network, [(step.loop, around) for step, around in steps], inputs, most)
    names = [tuple(loop.loop.name for loop in around if isinstance(loop, LoopStep)) for _, around in steps]
    return [TripCount(step.loop, name, int(total or 0))
            for (step, _), name, total in zip(steps, names, totals, strict=True)]  # fmt: skip


def _types(network: INetworkDefinition, inputs: Mapping[str, Any]) -> TypeTable:
    """The types of the tensors, with the values of small inputs."""
    types = {tensor: tensor.type for tensor in network.inputs}
    for tensor, value in check_values(network.inputs, inputs).items():
        if tensor.type.is_tensor and not tensor.type.is_string:
            types[tensor] = TensorType.of(np.asarray(value))
    return TypeTable(types)


def _loops(block: Block, around: Around = ()) -> Iterator[tuple[LoopStep, Around]]:
    """The loops of a block in running order, each with what is around it."""
    stack: list[tuple[Block, Around]] = [(block, around)]
    while stack:
        block, around = stack.pop()
        inner: list[tuple[Block, Around]] = []
        for step in block.steps:
            if isinstance(step, LoopStep):
                yield step, around
                inner.append((step.body, (*around, step)))
            elif isinstance(step, IfStep):
                inner += [(branch, (*around, (step, number))) for number, branch in enumerate(step.branches)]
        # the last one is taken first, so that loops come in running order
        stack += reversed(inner)


def _known(step: LoopStep, types: TypeTable) -> int | None:
    """The trip count of a loop, if it follows from types."""
    limit = step.loop.limit(TripLimit.COUNT)
    if limit is None or step.loop.limit(TripLimit.WHILE) is not None:
        return None
    return known_count(step.loop, types) if isinstance(types.of(limit.tensor(0)), TensorType) else None


def _product(counts: Sequence[int | None]) -> int | None:
    """The product of some counts; None if one is not known."""
    product = 1
    for count in counts:
        if count is None:
            return None
        product *= count
    return product


def _counted(
    network: INetworkDefinition, loops: Sequence[tuple[ILoop, Around]], inputs: Mapping[str, Any], most: int | None
) -> list[int | None]:
    """The iterations of loops in a run."""
    copy = network.copy(shares_weights=True)
    vars(copy)["builder"] = None  # which has logged the warnings about the network
    # the outputs stay, because loops are nested by what the outputs need
    for number, (loop, around) in enumerate(loops):
        counter = _Counter(network, copy).of(loop, around)
        counter.name = f"iterations of loop {number}"
        copy.mark_output(counter)
    result = [*Executable(copy, Recipe.of(None, max_trips=most))(inputs).values()][-len(loops) :]
    return [int(np.asarray(array)) for array in result]


class _Counter:
    """Adds counters to a copy of a network."""

    def __init__(self, network: INetworkDefinition, copy: INetworkDefinition) -> None:
        self._copy = copy
        self._loops = dict(zip(network.loops, copy.loops, strict=True))
        self._conditionals = dict(zip(network.conditionals, copy.conditionals, strict=True))

    def of(self, loop: ILoop, around: Around) -> ITensor:
        """The number of iterations of a loop, in all iterations of the loops around it."""
        count = self._sum(loop, self._number(1))
        # from the inside out, as each loop adds up what is counted in its iterations
        for other in reversed(around):
            if isinstance(other, LoopStep):
                count = self._sum(other.loop, count)
            else:
                step, branch = other
                results = (count, self._number(0)) if branch == 0 else (self._number(0), count)
                count = self._conditionals[step.conditional].add_output(*results).outputs[0]
        return count

    def _sum(self, loop: ILoop, number: ITensor) -> ITensor:
        """The sum of a number over the iterations of a loop."""
        copied = self._loops[loop]
        state = copied.add_recurrence(self._number(0))
        total = self._copy.add_elementwise(state.outputs[0], number, ElementWiseOperation.SUM)
        state.set_input(1, total.outputs[0])
        return copied.add_loop_output(state.outputs[0], LoopOutput.LAST_VALUE).outputs[0]

    def _number(self, number: int) -> ITensor:
        return self._copy.add_constant((), np.array(number, np.int64)).outputs[0]
