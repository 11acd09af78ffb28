"""Equations of jaxprs as nodes of a model: their names and places."""

from __future__ import annotations

from dataclasses import dataclass

from jax.extend.core import JaxprEqn

from netloop.formats.from_jax.places import OF_JAX, scope_name, source_location
from netloop.values.diagnostics import SourceLocation


@dataclass(frozen=True)
class EquationNode:
    """An equation to import.

    Attributes:
        equation: the equation.
        scopes: the names of ``jax.named_scope`` around it, the outermost first.
        source_location: the line of the user's code that it comes from.
    """

    equation: JaxprEqn
    scopes: tuple[str, ...]
    source_location: SourceLocation

    @classmethod
    def inside(cls, around: EquationNode | None, equation: JaxprEqn) -> EquationNode:
        """An equation of a jaxpr inside another equation, or of the function itself."""
        scope = scope_name(str(equation.source_info.name_stack))
        place = source_location(equation, around.source_location if around else OF_JAX)
        return cls(equation, (*(around.scopes if around else ()), *([scope] if scope else [])), place)

    @property
    def name(self) -> str:
        """The primitive, with the scopes in front."""
        return "/".join([*self.scopes, self.operator])

    @property
    def operator(self) -> str:
        """The primitive."""
        return self.equation.primitive.name

    @property
    def description(self) -> str:
        """The primitive: the place is a line of its own."""
        return self.operator
