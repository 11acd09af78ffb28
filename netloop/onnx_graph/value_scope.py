"""The values of a network's tensors in one graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop
from netloop.onnx_graph.graph import OnnxGraph, Value


@dataclass(eq=False)
class ValueScope:
    """The values of tensors while a graph is built; tensors that are not here are in the outer scope.

    Attributes:
        graph: the graph that gets new nodes.
        around: the outer scope; None for the outermost.
        values: the values that were computed here.
        iterations: the numbers of the current iterations of the loops that were entered here.
        ended: the loops whose last iteration is over here.
    """

    graph: OnnxGraph
    around: ValueScope | None = None
    values: dict[ITensor, Value] = field(default_factory=dict[ITensor, Value])
    iterations: dict[ILoop, Value] = field(default_factory=dict[ILoop, Value])
    ended: set[ILoop] = field(default_factory=set[ILoop])

    def inside(self, graph: OnnxGraph | None = None) -> ValueScope:
        """Return a scope nested in this one, for a subgraph or for the same graph."""
        return ValueScope(graph or self.graph, self, ended=set(self.ended))

    def value(self, tensor: ITensor) -> Value:
        """The value of a tensor here."""
        scope: ValueScope | None = self
        while scope is not None:
            if tensor in scope.values:
                return scope.values[tensor]
            scope = scope.around
        raise AssertionError(f"{tensor.name!r} has no value here")

    def iteration(self, loop: ILoop) -> Value:
        """The number of the current iteration of a loop, int64."""
        scope: ValueScope | None = self
        while scope is not None:
            if loop in scope.iterations:
                return scope.iterations[loop]
            scope = scope.around
        raise AssertionError(f"{loop.name!r} was not entered here")
