"""The names of a graph and their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

import onnx

from netloop.formats.onnx.importer.node import Bindings, ImportedNode
from netloop.formats.shared.alternatives import Value


@dataclass
class NameScope:
    """The names of one graph or function.

    Attributes:
        opsets: the version of each domain.
        around: the scope of the graph around it; None for the model's own graph and for a function.
        bindings: the attributes of the function that it belongs to.
        calls: the nodes that call the functions around it, the outermost first.
        depth: the number of graphs and functions around it.
        values: the values of its names.
        graphs: the graph or function itself, once its nodes are added, and those around it, the innermost first.
    """

    opsets: Mapping[str, int]
    around: NameScope | None = None
    bindings: Bindings = field(default_factory=dict[str, onnx.AttributeProto])
    calls: tuple[ImportedNode, ...] = ()
    depth: int = 0
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    graphs: tuple[onnx.GraphProto | onnx.FunctionProto, ...] = ()

    def inside(self, values: Mapping[str, Value]) -> NameScope:
        """The scope of a graph inside this one, with the values of its inputs."""
        return NameScope(self.opsets, self, self.bindings, self.calls, self.depth + 1, dict(values))

    def defining(self, name: str) -> NameScope | None:
        """The innermost scope that defines a name; None if none does."""
        return next((scope for scope in self._outwards() if name in scope.values), None)

    def names(self) -> Iterable[str]:
        """All names that can be read here."""
        return chain.from_iterable(scope.values for scope in self._outwards())

    def _outwards(self) -> Iterator[NameScope]:
        """This scope and those around it, the innermost first."""
        scope: NameScope | None = self
        while scope is not None:
            yield scope
            scope = scope.around
