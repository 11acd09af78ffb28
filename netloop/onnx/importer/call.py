"""What an operator's function is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import onnx

from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.node import OnnxNode

Value = ITensor
"""What a name of a graph stands for."""
Result = Value | Sequence[Value | None]
"""The outputs of a node: one value, or a list of them, None for one that is not wanted."""


class Subgraph(Protocol):
    """A graph inside a node, such as the body of a loop; it sees the names around it.

    Attributes:
        proto: the graph.
    """

    proto: onnx.GraphProto

    def __call__(self, *inputs: Value) -> list[Value]:
        """Add the nodes of the graph to the network.

        Args:
            inputs: what its inputs stand for.

        Returns:
            What its outputs stand for.
        """
        ...


@dataclass(frozen=True)
class Call:
    """A node that is to become layers.

    Attributes:
        node: the node.
        make: what adds layers.
        subgraph: the graph in an attribute.
    """

    node: OnnxNode
    make: FormulaBuilder
    subgraph: Callable[[str], Subgraph]

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, as the node, the standard or ``default`` gives it."""
        return self.node.attribute(name, default)

    def wants(self, output: int) -> bool:
        """Whether the node has an output of this number."""
        return output < len(self.node.proto.output) and bool(self.node.proto.output[output])


Operator = Callable[..., Result]
"""Makes layers of a node: ``add(call, a, b)``, an argument for each input, None for one that is left out."""
