"""The common base of loops and conditionals, and of the layers at their boundary."""

from abc import abstractmethod
from collections.abc import Container, Generator
from typing import Any, TypeVar

from netloop.model.graph import ILayer, ITensor, NetworkBase, TypeTable, check_tensor
from netloop.model.graph.call_site import call_site
from netloop.model.graph.network_base import LayerAdder
from netloop.values.checked_attributes import CheckedAttributes
from netloop.values.diagnostics import SourceLocation
from netloop.values.unpicklable import OF_A_NETWORK, Unpicklable

Trips = dict[Any, int]
"""The number of the iteration, from 0, in each enclosing ``ILoop``."""
Meaning = Generator[tuple[Any, Trips], Any, Any]
"""Computes an element: yields a tensor, or an ``ILoop`` for its trip count, and iterations; is sent the value."""

B = TypeVar("B", bound=ILayer)


class BoundaryLayers(list[Any]):
    """The boundary layers of a loop or conditional, in order; those of a class are found without a search."""

    def __init__(self) -> None:
        self._by_kind: dict[type[ILayer], list[Any]] = {}

    def append(self, layer: ILayer) -> None:
        super().append(layer)
        self._by_kind.setdefault(type(layer), []).append(layer)

    def keep(self, layers: Container[ILayer]) -> None:
        """Remove all layers that are not in ``layers``."""
        kept = [value for value in self if value in layers]
        self.clear()
        self._by_kind.clear()
        for value in kept:
            self.append(value)

    def of_kind(self, kind: type[B]) -> list[B]:
        """The layers of a class, in order."""
        return list(self._by_kind.get(kind, ()))


class ControlFlow(Unpicklable, LayerAdder, CheckedAttributes):
    """A loop or a conditional: a name, and the boundary layers that its methods add to the network."""

    UNPICKLABLE = OF_A_NETWORK
    UNLISTED = frozenset({"layers", "network", "source_location"})

    layers: BoundaryLayers
    source_location: SourceLocation

    def __init__(self, network: NetworkBase, name: str, source_location: SourceLocation | None = None) -> None:
        self._network = network
        self.name = name
        vars(self).update(layers=BoundaryLayers(), source_location=source_location or call_site())

    @property
    def network(self) -> NetworkBase:
        """The network that it belongs to."""
        return self._network

    def _bound(self, layer: B, **tensors: ITensor) -> B:
        """Add a boundary layer that reads ``tensors``, each under the name of the caller's parameter."""
        self._network.add(layer, [check_tensor(tensor, name) for name, tensor in tensors.items()])
        self.layers.append(layer)
        return layer

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class BoundaryLayer(ILayer):
    """A layer at the boundary of a loop or a conditional."""

    @abstractmethod
    def element(self, at: Trips, types: TypeTable) -> Meaning:
        """The value of the output at the iterations ``at``."""

    def tensor(self, index: int) -> ITensor:
        """Input number ``index``, which a validated network has."""
        result = self.inputs[index]
        assert result is not None, f"{self.described} has no input {index}"
        return result
