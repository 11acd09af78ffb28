"""The values of a network's tensors in one graph."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, field

from netloop.formats.onnx_graph.graph import OnnxGraph, Value
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop


@dataclass(eq=False)
class ValueScope:
    """The values of tensors while a graph is built, with those of the outer scopes.

    Attributes:
        graph: the graph that gets new nodes.
        values: the values of tensors; new ones are seen here and in inner scopes only.
        iterations: the numbers of the current iterations of the loops that were entered, int64.
        ended: the loops whose last iteration is over here.
    """

    graph: OnnxGraph
    values: ChainMap[ITensor, Value] = field(default_factory=ChainMap[ITensor, Value])
    iterations: ChainMap[ILoop, Value] = field(default_factory=ChainMap[ILoop, Value])
    ended: set[ILoop] = field(default_factory=set[ILoop])

    def inside(self, graph: OnnxGraph | None = None) -> ValueScope:
        """Return a scope nested in this one, for a subgraph or for the same graph."""
        return ValueScope(graph or self.graph, self.values.new_child(), self.iterations.new_child(), set(self.ended))
