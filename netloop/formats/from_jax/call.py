"""The first argument of rules: an equation that is being imported."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from netloop.formats.from_jax.element_types import array_aval, element_type
from netloop.formats.from_jax.facts import Facts
from netloop.model.formulas import FormulaBuilder, Length
from netloop.model.graph.tensor import ITensor


@dataclass(frozen=True)
class EquationCall:
    """An equation that is being imported.

    Attributes:
        equation: the equation.
        facts: the facts about the tensors of the network.
        inline: a function that adds the equations of a jaxpr to the network, and returns its results.
        reads: how often equations and results of the same jaxpr read each variable.
    """

    equation: JaxprEqn
    facts: Facts
    inline: Callable[[ClosedJaxpr | Jaxpr, Sequence[ITensor]], list[ITensor]]
    reads: Counter[Any]

    @property
    def make(self) -> FormulaBuilder:
        """The formula builder of the network."""
        return self.facts.make

    @property
    def name(self) -> str:
        """The name of the primitive."""
        return self.equation.primitive.name

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the equation."""
        return self.equation.params

    def ints(self, name: str) -> list[int]:
        """The integers of a parameter."""
        return ints(self.params[name])

    @property
    def result(self) -> Any:
        """The abstract value of the first result."""
        return self.equation.outvars[0].aval

    @property
    def results(self) -> list[Any]:
        """The abstract values of all results."""
        return [variable.aval for variable in self.equation.outvars]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of the first result."""
        return element_type(self.result)

    def operand(self, index: int) -> Any:
        """The abstract value of an operand, of shape ``.shape``; its lengths may be symbolic."""
        return self.equation.invars[index].aval

    def is_read_once(self, index: int) -> bool:
        """Whether nothing else reads an operand."""
        return self.reads[self.equation.invars[index]] == 1

    def lengths(self, shape: Sequence[Any]) -> list[Length]:
        """A shape whose lengths may be symbolic, as numbers and tensors."""
        return [self.facts.lengths.length(length) for length in shape]

    def define(self, function: Callable[..., Any], *operands: ITensor, as_parts: bool = True) -> list[ITensor]:
        """Add the equations of a function of arrays to the network; return its results.

        Args:
            function: the function, of the arrays of the equation's operands.
            operands: their tensors.
            as_parts: whether it takes complex numbers as their parts.
        """
        atoms: list[Any] = [variable.aval for variable in self.equation.invars]
        avals = [array_aval(atom) if as_parts else jax.ShapeDtypeStruct(atom.shape, atom.dtype) for atom in atoms]
        return self.trace(function, avals, operands)

    def trace(self, function: Callable[..., Any], avals: Sequence[Any], operands: Sequence[ITensor]) -> list[ITensor]:
        """Add the equations of a function of arrays of some types to the network; return its results."""
        with jax.enable_x64(True):
            return self.inline(jax.make_jaxpr(function)(*avals), operands)


def ints(values: Sequence[Any]) -> list[int]:
    """Integers of Python for those of a parameter, which may be numpy's."""
    return [int(value) for value in values]
