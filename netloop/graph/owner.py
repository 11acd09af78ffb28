"""The interface by which tensors and layers call the network that owns them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netloop.enums import DataType
    from netloop.graph.tensor import ITensor


class Owner:
    """The owner of tensors and layers. This one, for those in no network, does nothing."""

    def shape_tensors(self) -> frozenset[ITensor]:
        """The tensors whose values decide the shape of some tensor."""
        return frozenset()

    def convert(self, tensor: ITensor, dtype: DataType) -> None:
        """Give an input or output another element type than the layers compute with."""

    def advise(self, topic: str, what: str) -> None:
        """Log a hint, once for each topic."""
