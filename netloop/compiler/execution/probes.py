"""Observe the tensors inside an engine: run its network with every element of them as an output."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.execution.program_cache import Given, ProgramCache
from netloop.compiler.host import NO_TYPE, HostProgram
from netloop.compiler.lower import constants_of, has_program
from netloop.compiler.lower.loop.facts import known_count
from netloop.compiler.recipe import Recipe
from netloop.model.call_inputs import check_values
from netloop.model.check import ValidatedNetwork
from netloop.model.device_errors import completed
from netloop.model.graph import ITensor, TypeTable
from netloop.model.layers.loop import ILoop
from netloop.model.nest import Block, IfStep, LayerStep, Scopes
from netloop.model.network import INetworkDefinition
from netloop.values.enums import LoopOutput
from netloop.values.types import Array

Position = tuple[Any, ...]
"""The position of a tensor in running order: numbers compared lexicographically, with a loop for its iteration."""

TripCounts = Mapping[ITensor, Sequence[int]]


def record_elements(
    network: INetworkDefinition,
    counts: TripCounts,
    inputs: Mapping[str, Any],
    max_trips: int | None,
    recipe: Recipe | None = None,
) -> dict[ITensor, Array | None]:
    """Run a network and return the elements of some tensors, stacked along one axis for each enclosing loop.

    Poisoned elements are not marked: their values are undefined.

    Args:
        network: the network.
        counts: for each tensor, the number of stacked iterations of each enclosing loop, the outermost first.
        inputs: an array for each input, by name.
        max_trips: the largest number of iterations of a loop, each time it is entered; None for any number.
        recipe: that of the engine, whose device, platform and precision of products count; None for the default ones.

    Returns:
        An array for each tensor; None if a run on the host failed in it or before it, or its elements have different
        shapes.

    Raises:
        ExecutionError: the device failed, perhaps as it has no memory for so many outputs.
    """
    copy, stacked = probed(network, counts)
    # without passes, which would remove tensors that are looked at
    plain = Recipe(max_trips=max_trips)
    if recipe is not None:
        plain = replace(plain, placement=recipe.placement, platform=recipe.platform, precision=recipe.precision)
    values = dict(zip(copy.outputs, _run(copy, inputs, plain), strict=True))
    return {tensor: values[output] for tensor, output in stacked.items()}


def probed(network: INetworkDefinition, counts: TripCounts) -> tuple[INetworkDefinition, dict[ITensor, ITensor]]:
    """A copy of a network with more outputs: the elements of some tensors, stacked along one axis for each loop.

    Args:
        network: the network.
        counts: for each tensor, the number of stacked iterations of each enclosing loop, the outermost first.

    Returns:
        The copy, and its output for each tensor.
    """
    copy = network.copy()
    vars(copy)["builder"] = None  # which has logged the warnings about the network
    scopes = Scopes(copy)
    stacked = {tensor: _stacked(copy, scopes, _copy_of(tensor, copy), count) for tensor, count in counts.items()}
    taken = {tensor.name for tensor in (*copy.inputs, *copy.outputs)}
    for number, tensor in enumerate(stacked.values()):
        if not tensor.is_network_output:
            tensor.name = _free(f"probe {number}", taken)  # inside a network, names may be equal
            copy.mark_output(tensor)
    return copy, stacked


def _free(name: str, taken: Collection[str]) -> str:
    """A name that is not taken."""
    return name if name not in taken else _free(f"{name}'", taken)


def _copy_of(tensor: ITensor, network: INetworkDefinition) -> ITensor:
    assert tensor.producer is not None
    return network.layers[tensor.producer.index].outputs[tensor.position]


def _stacked(network: INetworkDefinition, scopes: Scopes, tensor: ITensor, counts: Sequence[int]) -> ITensor:
    for loop, count in reversed(list(zip(scopes.chain_of(tensor), counts, strict=True))):
        output = loop.add_loop_output(tensor, LoopOutput.CONCATENATE)
        # without a spare row, an engine that makes one iteration too many would poison the last element; and a loop
        # that is known to make more iterations than the outputs need would be refused
        rows = max(count + 1, known_count(loop, network.types) or 0)
        output.set_input(1, network.add_constant((), np.array(rows, np.int64)).outputs[0])
        tensor = output.outputs[0]
    return tensor


def _run(network: INetworkDefinition, inputs: Mapping[str, Any], recipe: Recipe) -> list[Array | None]:
    """The outputs of a network, in the order in which they were marked."""
    result = recipe.placement.moved(check_values(network.inputs, inputs))
    with recipe.placement.settings():
        constants = {constant.outputs[0]: constant.evaluate() for constant in constants_of(network)}

        def make(types: TypeTable, validated: ValidatedNetwork, given: Given) -> Callable[[Given], list[Any]]:
            if not has_program(network, types):
                return HostProgram(network, validated, types, recipe.host_options).computed
            lowered = LoweredNetwork.of(network, types, validated, recipe)

            def trace(weights: list[Any], arrays: list[Any]) -> list[Any]:
                return lowered.run(dict(zip(constants, weights, strict=True)), arrays).values

            function = lowered.function(trace)
            return lambda known: completed(function(*([known[key] for key in keys] for keys in (constants, given))))

        values = ProgramCache(network, make, recipe.placement).find(result)({**constants, **result})
    return [None if type(value) in NO_TYPE else np.asarray(value) for value in values]


def positions(block: Block, before: Position = ()) -> Iterator[tuple[ITensor, Position]]:
    """Yield the tensors of a block, each with its position in running order."""
    for number, step in enumerate(block.steps):
        here = (*before, number)
        if isinstance(step, LayerStep):
            yield from ((tensor, here) for tensor in step.writes)
        elif isinstance(step, IfStep):
            for branch in (0, 1):
                yield from positions(step.branches[branch], (*here, branch))
            yield from ((tensor, (*here, math.inf)) for tensor in step.writes)
        else:
            inside = (*here, step.loop)
            yield from ((recurrence.outputs[0], (*inside, -1)) for recurrence in step.recurrences)
            yield from positions(step.body, inside)
            yield from ((tensor, (*here, math.inf)) for tensor in step.writes)


def moment(position: Position, iterations: Mapping[ILoop, int]) -> tuple[float, ...]:
    """The position of one element of a tensor in running order, for an iteration of each enclosing loop."""
    return tuple(iterations[value] if isinstance(value, ILoop) else value for value in position)
