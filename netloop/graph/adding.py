"""What the ``add_`` methods of a network stand on; they are beside the layers that they add."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, check_tensor
from netloop.graph.owner import Owner
from netloop.graph.tensor import ITensor
from netloop.types import TensorType

L = TypeVar("L", bound=ILayer)


class AddsLayers(Owner):
    """A network, so far as the methods that add layers know it.

    They raise TypeError for an argument of the wrong Python type, and NetworkError for a tensor of another network.

    Attributes:
        layers: the layers, in the order in which they were added.
        types: the types of the tensors.
    """

    layers: list[ILayer]
    types: TypeTable

    def add(self, layer: L, inputs: Sequence[ITensor | None]) -> L:
        """Add a layer, wired to ``inputs``."""
        layer.attach(self.types, len(self.layers), inputs)
        self.layers.append(layer)
        return layer


def check_tensors(inputs: Iterable[ITensor], name: str = "inputs") -> list[ITensor]:
    """The elements of ``inputs``, if all are tensors.

    Raises:
        TypeError: one is not.
    """
    return [check_tensor(each, f"{name}[{position}]") for position, each in enumerate(inputs)]


def third_from_end(tensor: ITensor) -> int:
    """The axis that TensorRT takes where none is given."""
    found = check_tensor(tensor, "input").types.of(tensor)
    return max(0, found.rank - 3) if isinstance(found, TensorType) else 0
