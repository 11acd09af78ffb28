"""Graphs of ONNX operators while they are made: what a file says, without its names and limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netloop.graph.layer import ILayer
from netloop.types import Array, Shape, TensorType


@dataclass(eq=False)
class Value:
    """A tensor of a graph.

    Attributes:
        dtype: the element type.
        name: what it is to be called; another name if that is taken.
        array: the numbers of a constant; None for what is computed.
        shape: its lengths, with -1 for those that only a run tells; None if nothing is known of them.
    """

    dtype: np.dtype[Any]
    name: str = ""
    array: Array | None = None
    shape: Shape | None = None


@dataclass(eq=False)
class OnnxNode:
    """An operator with its inputs and outputs.

    Attributes:
        op: what it is called in ONNX.
        inputs: what it reads; None for an input left out.
        outputs: what it makes.
        attributes: its attributes; a ``OnnxGraph`` for a subgraph.
        name: what it is to be called.
        layer: the layer for which it is there; None if it is for a loop or conditional.
    """

    op: str
    inputs: list[Value | None]
    outputs: list[Value]
    attributes: dict[str, Any]
    name: str = ""
    layer: ILayer | None = None


@dataclass(eq=False)
class OnnxGraph:
    """Nodes in running order, and what goes in and out."""

    name: str
    inputs: list[tuple[Value, TensorType]] = field(default_factory=list[tuple[Value, TensorType]])
    outputs: list[tuple[Value, TensorType]] = field(default_factory=list[tuple[Value, TensorType]])
    nodes: list[OnnxNode] = field(default_factory=list[OnnxNode])
    made: set[Value] = field(default_factory=set[Value])

    def add(self, node: OnnxNode) -> None:
        """Add a node at the end."""
        self.nodes.append(node)
        self.made.update(node.outputs)

    def add_input(self, name: str, type: TensorType) -> Value:
        """A new input."""
        value = Value(type.dtype, name, shape=type.shape)
        self.inputs.append((value, type))
        return value

    def add_output(self, value: Value, type: TensorType, name: str = "") -> Value:
        """Make a value an output: itself if one of its own nodes makes it, and it is none yet, or else a copy."""
        if value not in self.made or any(value is each for each, _ in self.outputs):
            copy = Value(type.dtype, name or value.name, shape=type.shape)
            self.add(OnnxNode("Identity", [value], [copy], {}, "Identity"))
            value = copy
        self.outputs.append((value, type))
        return value

    def values(self) -> Iterator[Value]:
        """What its nodes read and make."""
        for node in self.nodes:
            yield from (each for each in (*node.inputs, *node.outputs) if each is not None)

    def walk(self) -> Iterator[tuple[OnnxGraph, int]]:
        """The graph and all graphs inside of it, each with its depth."""
        stack = [(self, 0)]
        while stack:
            graph, depth = stack.pop()
            yield graph, depth
            inside = (each for node in graph.nodes for each in node.attributes.values() if isinstance(each, OnnxGraph))
            stack += [(each, depth + 1) for each in inside]
