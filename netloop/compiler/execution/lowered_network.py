"""A network that is lowered for some types of its inputs, of which engines trace functions of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from netloop.compiler.launches import Launches
from netloop.compiler.lower import Program, has_program, require_program
from netloop.compiler.lower.program import Outcome
from netloop.compiler.passes import Improved, Note
from netloop.compiler.phases import PhaseTimer
from netloop.compiler.recipe import Recipe
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.check import ValidatedNetwork
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop
from netloop.model.network import INetworkDefinition
from netloop.process.garbage_collection import collection_paused
from netloop.values.diagnostics import ExecutionError, Finding, NetworkError
from netloop.values.tensor_values import integer


class LoweredNetwork:
    """A network after the passes, as a program that JAX traces.

    Every engine has one for each set of input types, and adds its own function: one call, a row of many, a step.

    Attributes:
        source: the network after the passes.
        program: its program, which records the strategy of each loop.
        inputs: its inputs, in order.
        timer: the times of the phases in which it and its functions are made.
    """

    def __init__(self, source: Improved, recipe: Recipe, timer: PhaseTimer) -> None:
        self.source, self.timer = source, timer
        # weak, as engines drop the functions of shapes that they have not met for long; in order
        self._functions = WeakKeyDictionary[XlaFunction, None]()
        self.program: Program = recipe.program(source)
        self.inputs = source.network.inputs

    @staticmethod
    def of(
        network: INetworkDefinition,
        types: TypeTable,
        validated: ValidatedNetwork,
        recipe: Recipe,
        timer: PhaseTimer | None = None,
    ) -> LoweredNetwork:
        """A network, by a recipe.

        Raises:
            NetworkError: a shape is data-dependent, or a layer computes on the host.
        """
        timer = timer or PhaseTimer()
        # the collector would look through thousands of new layers again and again, and find no garbage
        with timer.phase("passes"), collection_paused:
            source = recipe.prepared(network, types, validated)
            if not has_program(source.network, source.types):
                _refuse(source, network, types)
        return LoweredNetwork.of_program(source, recipe, timer)

    @staticmethod
    def of_program(source: Improved, recipe: Recipe, timer: PhaseTimer) -> LoweredNetwork:
        """A network that one program holds, by a recipe."""
        with timer.phase("passes", continues=True), collection_paused:
            return LoweredNetwork(recipe.improved(source), recipe, timer)

    @property
    def network(self) -> INetworkDefinition:
        """The network after the passes."""
        return self.source.network

    @property
    def loops(self) -> list[ILoop]:
        """Its loops, in order."""
        return self.source.network.loops

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the largest of its functions needs besides inputs, outputs and weights."""
        return max((function.scratch_size for function in self._functions), default=0)

    @property
    def launches(self) -> Launches | None:
        """The launches of a call of each of its compiled functions on a GPU; None on other devices."""
        launches = (function.launches for function in self._functions)
        return Launches.joined(number for number in launches if number is not None)

    @property
    def seconds(self) -> dict[str, float]:
        """The duration of each phase so far."""
        return self.timer.seconds

    @property
    def notes(self) -> list[Note]:
        """The changes of the passes; those of forms of lowering are there once a function was traced."""
        return [*self.source.notes, *self.program.notes]

    def run(self, weights: Mapping[ITensor, Any], arrays: Sequence[Any]) -> Outcome:
        """The outputs, while JAX traces: given the weight arguments by tensor, and the inputs in order."""
        # threads of a pure function trace it at the same time
        with self.program.lock:
            return self.program({**weights, **dict(zip(self.inputs, arrays, strict=True))})

    def function(self, function: Any, **options: Any) -> XlaFunction:
        """A function that runs the program, compiled with what the program needs; the options are those of jax.jit."""
        compiled = XlaFunction(function, self.program, self.timer.phase, **options)
        self._functions[compiled] = None
        return compiled

    def finding(self, flag: Any) -> Finding | None:
        """The failure behind an error flag; None if there is none."""
        # it waits for the program
        return self.program.errors.finding(flag) if flag is not None and integer(flag) else None

    def require(self, flag: Any) -> None:
        """Raise ExecutionError if a computation failed."""
        failure = self.finding(flag)
        if failure is not None:
            raise ExecutionError(failure)


def _refuse(source: Improved, network: INetworkDefinition, types: TypeTable) -> None:
    """Raise the error about a network that no program holds, which names layers of the user.

    Raises:
        NetworkError: always.
    """
    try:
        # lists that passes have replaced are no reason
        require_program(source.network, source.types)
    except NetworkError as error:
        if all(isinstance(finding.at, ILayer) and finding.at.index < len(network.layers) for finding in error.findings):
            raise
    require_program(network, types)
