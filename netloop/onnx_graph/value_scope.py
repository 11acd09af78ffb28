"""Which value a tensor of the network has, seen from some graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop
from netloop.onnx_graph.graph import OnnxGraph, Value


@dataclass(eq=False)
class ValueScope:
    """The values of tensors while a graph is made; what is not here is in the scope around.

    Attributes:
        graph: where new nodes go.
        around: the scope around; None for the outermost.
        values: the values that were made here.
        trips: the numbers of the trips of the loops that were entered here.
        ended: the loops of which this is after the last trip.
    """

    graph: OnnxGraph
    around: ValueScope | None = None
    values: dict[ITensor, Value] = field(default_factory=dict[ITensor, Value])
    trips: dict[ILoop, Value] = field(default_factory=dict[ILoop, Value])
    ended: set[ILoop] = field(default_factory=set[ILoop])

    def inside(self, graph: OnnxGraph | None = None) -> ValueScope:
        """A scope in this one, in a subgraph or in the same graph."""
        return ValueScope(graph or self.graph, self, ended=set(self.ended))

    def value(self, tensor: ITensor) -> Value:
        """The value of a tensor."""
        scope: ValueScope | None = self
        while scope is not None:
            if tensor in scope.values:
                return scope.values[tensor]
            scope = scope.around
        raise AssertionError(f"{tensor.name!r} has no value here")

    def trip(self, loop: ILoop) -> Value:
        """The number of the trip of a loop, int64."""
        scope: ValueScope | None = self
        while scope is not None:
            if loop in scope.trips:
                return scope.trips[loop]
            scope = scope.around
        raise AssertionError(f"{loop.name!r} was not entered here")
