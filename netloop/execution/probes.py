"""What is inside of an engine: its network, run with every element of some tensors as an output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from netloop.call_inputs import check_values
from netloop.check import ValidatedNetwork
from netloop.diagnostics import ExecutionError
from netloop.enums import LoopOutput
from netloop.execution.compiled_program import options_for
from netloop.execution.jax_settings import on_device
from netloop.execution.program_cache import Given, Programs
from netloop.execution.stack_room import room_for
from netloop.graph.infer import TypeTable
from netloop.graph.tensor import ITensor
from netloop.host import HostProgram, Poisoned
from netloop.layers.loop import ILoop
from netloop.lower import Program, constants_of, has_program
from netloop.nest import Block, IfStep, LayerStep, Scopes
from netloop.network import INetworkDefinition
from netloop.types import Absent, Array, Tensors

SourceLocation = tuple[Any, ...]
"""When a tensor is computed: numbers to be compared one after the other, with a loop in the place of its trip."""

Lengths = Mapping[ITensor, Sequence[int]]


def watch(
    network: INetworkDefinition, lengths: Lengths, inputs: Mapping[str, Any], max_trips: int
) -> dict[ITensor, Array | None]:
    """The elements of some tensors, stacked along an axis for each loop around, the outermost first.

    What poisons an element does not matter: its value means nothing then. No loop makes more than ``max_trips``.

    Args:
        network: the network.
        lengths: the tensors, each with the number of trips that are stacked, for each loop around it.
        inputs: an array for each input, by name.
        max_trips: how many trips a loop may make, each time that it is entered.

    Returns:
        An array for each tensor; None where the run did not come so far, or the elements are of several shapes.
    """
    twin = network.copy()
    scopes = Scopes(twin)
    watched = [_stacked(twin, scopes, _twin_of(twin, tensor), each) for tensor, each in lengths.items()]
    for tensor in watched:
        twin.mark_output(tensor)
    values = dict(zip(twin.outputs, _run(twin, inputs, max_trips), strict=True))
    return dict(zip(lengths, (values[each] for each in watched), strict=True))


def _twin_of(network: INetworkDefinition, tensor: ITensor) -> ITensor:
    assert tensor.producer is not None
    return network.layers[tensor.producer.index].outputs[tensor.position]


def _stacked(network: INetworkDefinition, scopes: Scopes, tensor: ITensor, lengths: Sequence[int]) -> ITensor:
    for loop, length in reversed(list(zip(scopes.chain_of(tensor), lengths, strict=True))):
        output = loop.add_loop_output(tensor, LoopOutput.CONCATENATE)
        # a trip more than there should be would else poison the last one
        output.set_input(1, network.add_constant((), np.array(length + 1, np.int64)).outputs[0])
        tensor = output.outputs[0]
    return tensor


def _run(network: INetworkDefinition, inputs: Mapping[str, Any], max_trips: int) -> list[Array | None]:
    """The outputs of a network, in the order in which they were marked."""
    given = check_values(network.inputs, inputs)
    with on_device():
        constants = {each.outputs[0]: each.evaluate() for each in constants_of(network)}

        def make(types: TypeTable, validated: ValidatedNetwork, given: Given) -> Callable[[Given], list[Any]]:
            if not has_program(network, types):
                return HostProgram(network, validated, max_trips).values
            program = Program.of(network, types, validated, max_trips)
            tensors = [*constants, *given]

            def trace(arrays: list[Any]) -> list[Any]:
                return program(dict(zip(tensors, arrays, strict=True))).values

            with room_for(program.depth):
                lowered = jax.jit(trace).lower([*constants.values(), *given.values()])
                compiled = lowered.compile(compiler_options=options_for(program))
            return lambda known: compiled([known[each] for each in tensors])

        try:
            values = Programs(network, make).find(given)({**constants, **given})
        except ExecutionError:
            return [None] * len(network.outputs)
    return [None if isinstance(each, Poisoned | Tensors | Absent) else np.asarray(each) for each in values]


def places(block: Block, before: SourceLocation = ()) -> Iterator[tuple[ITensor, SourceLocation]]:
    """The tensors of a block, each with its place in running order."""
    for number, step in enumerate(block.steps):
        here = (*before, number)
        if isinstance(step, LayerStep):
            yield from ((each, here) for each in step.writes)
        elif isinstance(step, IfStep):
            for branch in (0, 1):
                yield from places(step.branches[branch], (*here, branch))
            yield from ((each, (*here, math.inf)) for each in step.writes)
        else:
            inside = (*here, step.loop)
            yield from ((each.outputs[0], (*inside, -1)) for each in step.recurrences)
            yield from places(step.body, inside)
            yield from ((each, (*here, math.inf)) for each in step.writes)


def moment(place: SourceLocation, trips: Mapping[ILoop, int]) -> tuple[float, ...]:
    """When the element of a tensor is computed, for trips of the loops around."""
    return tuple(trips[each] if isinstance(each, ILoop) else each for each in place)
