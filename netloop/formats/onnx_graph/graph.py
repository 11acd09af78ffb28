"""Graphs of ONNX operators, before they get unique names and become a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netloop.model.graph.layer import ILayer
from netloop.values.types import Array, Shape, TensorType


@dataclass(eq=False)
class Value:
    """A tensor of a graph.

    Attributes:
        dtype: the element type.
        name: the name that it should get; the file makes it unique.
        array: the numbers of a constant; None for a computed tensor.
        shape: its dims, with -1 for data-dependent ones; None if not even the rank is known.
    """

    dtype: np.dtype[Any]
    name: str = ""
    array: Array | None = None
    shape: Shape | None = None


@dataclass(eq=False)
class OnnxNode:
    """An operator with the values that it reads and computes.

    Attributes:
        op: its name in ONNX.
        inputs: None for an input left out.
        attributes: an ``OnnxGraph`` for a subgraph.
        name: the name that it should get; the file makes it unique.
        layer: the layer that it was added for; None for a loop or conditional.
    """

    op: str
    inputs: list[Value | None]
    outputs: list[Value]
    attributes: dict[str, Any]
    name: str = ""
    layer: ILayer | None = None

    def graphs(self) -> list[OnnxGraph]:
        """The graphs nested in it."""
        return [value for value in self.attributes.values() if isinstance(value, OnnxGraph)]


@dataclass(eq=False)
class OnnxGraph:
    """Nodes in order of execution, with the inputs and outputs of the graph."""

    name: str
    inputs: list[tuple[Value, TensorType]] = field(default_factory=list[tuple[Value, TensorType]])
    outputs: list[tuple[Value, TensorType]] = field(default_factory=list[tuple[Value, TensorType]])
    nodes: list[OnnxNode] = field(default_factory=list[OnnxNode])
    computed: set[Value] = field(default_factory=set[Value])

    def add(self, node: OnnxNode) -> None:
        """Add a node at the end."""
        self.nodes.append(node)
        self.computed.update(node.outputs)

    def add_input(self, name: str, type: TensorType) -> Value:
        """Add an input."""
        value = Value(type.dtype, name, shape=type.shape)
        self.inputs.append((value, type))
        return value

    def add_output(self, value: Value, type: TensorType, name: str = "") -> Value:
        """Make a value an output, by a copy if no node of the graph computes it or if it is an output already."""
        if value not in self.computed or any(value is other for other, _ in self.outputs):
            copy = Value(type.dtype, name or value.name, shape=type.shape)
            self.add(OnnxNode("Identity", [value], [copy], {}, "Identity"))
            value = copy
        self.outputs.append((value, type))
        return value

    def values(self) -> Iterator[Value]:
        """The values that its nodes read and compute."""
        for node in self.nodes:
            yield from (value for value in (*node.inputs, *node.outputs) if value is not None)

    def walk(self) -> Iterator[OnnxGraph]:
        """The graph and all graphs nested in it."""
        stack = [self]
        while stack:
            yield (graph := stack.pop())
            stack += [inner for node in graph.nodes for inner in node.graphs()]

    def prune(self) -> None:
        """Remove the nodes, also of the graphs nested in it, whose outputs nothing reads."""
        read, kept = {value for value, _ in self.outputs}, list[OnnxNode]()
        for node in reversed(self.nodes):
            if read.isdisjoint(node.outputs):
                continue
            kept.append(node)
            read.update(value for value in node.inputs if value is not None)
            for graph in node.graphs():
                graph.prune()
                read.update(value for inner in graph.walk() for value in inner.read_values())
        self.nodes = kept[::-1]

    def read_values(self) -> Iterator[Value]:
        """The values that its nodes and its outputs read."""
        yield from (value for value, _ in self.outputs)
        yield from (value for node in self.nodes for value in node.inputs if value is not None)
