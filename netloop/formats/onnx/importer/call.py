"""The arguments of operator functions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import onnx

from netloop.formats.onnx.importer.node import ImportedNode
from netloop.formats.shared.alternatives import Value, merged
from netloop.formats.shared.assumptions import Assumptions
from netloop.formats.shared.importer import Maybe as Maybe
from netloop.formats.shared.importer import choose
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition
from netloop.values.types import normal_axis

T = TypeVar("T")


@dataclass(frozen=True)
class Subgraph:
    """A graph inside a node, such as the body of a loop; its nodes may read the names around it.

    Attributes:
        proto: the graph.
        values: adds its nodes to the network; takes its inputs and returns its outputs, each of which may be
            alternatives.
    """

    proto: onnx.GraphProto
    values: Callable[[Sequence[ITensor]], list[Value]]

    def __call__(self, *inputs: ITensor) -> list[ITensor]:
        """Add the nodes of the graph to the network; return its outputs as tensors."""
        return [value for value in map(merged, self.values(inputs)) if isinstance(value, ITensor)]


@dataclass(frozen=True)
class NodeCall:
    """A node to translate into layers: the first argument of an operator function.

    Attributes:
        node: the node.
        make: the builder of its layers.
        subgraph: returns the graph in an attribute.
        assumptions: the branches that the import assumes to be taken.
        part: returns the nodes between some values around the node, by name, and another one as a network.
        attempt: returns the outputs that a function adds; None if something in them cannot be imported.
    """

    node: ImportedNode
    make: FormulaBuilder
    subgraph: Callable[[str], Subgraph]
    assumptions: Assumptions
    part: Callable[[Mapping[str, ITensor], str], INetworkDefinition]
    attempt: Callable[[Callable[[], list[ITensor]]], list[ITensor] | None]

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute: the node's, or the default of the standard, or ``default``."""
        return self.node.attribute(name, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute as a bool."""
        return bool(self.attribute(name, default))

    def axis(self, x: ITensor, name: str = "axis", default: int | None = None) -> int:
        """The axis of a tensor that an attribute names, counted from the front."""
        return normal_axis(self.attribute(name, default), x.type.rank)

    def wants(self, output: int) -> bool:
        """Whether the node has output number ``output``."""
        return output < len(self.node.proto.output) and bool(self.node.proto.output[output])

    def choice(self, name: str, choices: Mapping[str, T], default: Any = None) -> T:
        """The choice for the word that an attribute has."""
        return choose(name, self.attribute(name, default), choices)
