"""A network that is lowered for some types of its inputs, of which engines trace functions of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netloop.compiler.lower import Program, require_program
from netloop.compiler.lower.program import Outcome
from netloop.compiler.passes import Improved, Note
from netloop.compiler.recipe import Recipe
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.check import ValidatedNetwork
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import ExecutionError, Finding


class Lowered:
    """A network after the passes, as a program that JAX traces.

    Every engine has one for each set of input types, and adds its own function: one call, a row of many, a step.

    Attributes:
        source: the network after the passes.
        program: its program, which records the strategy of each loop.
        inputs: its inputs, in order.
    """

    def __init__(self, source: Improved, recipe: Recipe) -> None:
        self.source = source
        self.program: Program = recipe.program(source)
        self.inputs = source.network.inputs

    @staticmethod
    def of(network: INetworkDefinition, types: TypeTable, validated: ValidatedNetwork, recipe: Recipe) -> Lowered:
        """A network, by a recipe.

        Raises:
            NetworkError: a shape is data-dependent, or a layer computes on the host.
        """
        require_program(network, types)
        return Lowered(recipe.improved(network, types, validated), recipe)

    @property
    def notes(self) -> list[Note]:
        """The changes of the passes; those of forms of lowering are there once a function was traced."""
        return [*self.source.notes, *self.program.notes]

    def run(self, weights: Mapping[ITensor, Any], arrays: Sequence[Any]) -> Outcome:
        """The outputs, while JAX traces: given the weight arguments by tensor, and the inputs in order."""
        return self.program({**weights, **dict(zip(self.inputs, arrays, strict=True))})

    def function(self, function: Any, **options: Any) -> XlaFunction:
        """A function that runs the program, compiled with what the program needs; the options are those of jax.jit."""
        return XlaFunction(function, self.program, **options)

    def finding(self, flag: Any) -> Finding | None:
        """The failure behind an error flag; None if there is none."""
        return self.program.errors.finding(flag) if flag is not None and int(flag) else None

    def require(self, flag: Any) -> None:
        """Raise ExecutionError if a computation failed."""
        failure = self.finding(flag)
        if failure is not None:
            raise ExecutionError(failure)
