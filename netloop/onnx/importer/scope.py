"""The names of a graph and their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import onnx

from netloop.formats import Unimported
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.node import Bindings

Meaning = ITensor | Unimported | None
"""The value of a name; None for an input that the call of a function leaves out."""


@dataclass
class NameScope:
    """The names of one graph or function.

    Attributes:
        opsets: the version of each domain.
        around: the scope of the graph around it; None for the model's own graph and for a function.
        bindings: the attributes of the function that it belongs to.
        functions: the functions around it, the outermost first.
        depth: the number of graphs and functions around it.
        values: the values of its names.
    """

    opsets: Mapping[str, int]
    around: NameScope | None = None
    bindings: Bindings = field(default_factory=dict[str, onnx.AttributeProto])
    functions: tuple[str, ...] = ()
    depth: int = 0
    values: dict[str, Meaning] = field(default_factory=dict[str, Meaning])

    def inside(self, values: Mapping[str, Meaning]) -> NameScope:
        """The scope of a graph inside this one, with the values of its inputs."""
        return NameScope(self.opsets, self, self.bindings, self.functions, self.depth + 1, dict(values))

    def holder(self, name: str) -> NameScope | None:
        """The innermost scope that defines a name; None if none does."""
        scope: NameScope | None = self
        while scope is not None and name not in scope.values:
            scope = scope.around
        return scope

    def names(self) -> Iterable[str]:
        """All names that can be read here."""
        scope: NameScope | None = self
        while scope is not None:
            yield from scope.values
            scope = scope.around
