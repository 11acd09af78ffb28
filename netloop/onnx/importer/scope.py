"""The names of a graph, and what they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import onnx

from netloop.formats import Unimported
from netloop.onnx.importer.call import Value
from netloop.onnx.importer.node import Bindings

Meaning = Value | Unimported | None
"""What a name stands for; None for an input that the call of a function left out."""


@dataclass
class NameScope:
    """The names of one graph or function.

    Attributes:
        opsets: the version of each domain.
        around: the scope of the graph around it; None for that of the model, and of a function.
        bindings: the attributes of the function that it is part of.
        functions: the functions that it is inside of.
        depth: how many graphs and functions are around it.
        values: what the names stand for.
    """

    opsets: Mapping[str, int]
    around: NameScope | None = None
    bindings: Bindings = field(default_factory=dict[str, onnx.AttributeProto])
    functions: tuple[str, ...] = ()
    depth: int = 0
    values: dict[str, Meaning] = field(default_factory=dict[str, Meaning])

    def inside(self, values: Mapping[str, Meaning]) -> NameScope:
        """The scope of a graph inside this one, some of whose names stand for something already."""
        return NameScope(self.opsets, self, self.bindings, self.functions, self.depth + 1, dict(values))

    def holder(self, name: str) -> NameScope | None:
        """The innermost scope that has a name; None if none has."""
        scope: NameScope | None = self
        while scope is not None and name not in scope.values:
            scope = scope.around
        return scope

    def names(self) -> Iterable[str]:
        """All names that are known here."""
        scope: NameScope | None = self
        while scope is not None:
            yield from scope.values
            scope = scope.around
