"""What a network does for the tensors and layers in it, which know it by this alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netloop.enums import DataType
    from netloop.graph.tensor import ITensor


class Owner:
    """The owner of tensors and layers. This one is that of those in no network, and does nothing."""

    def shape_tensors(self) -> frozenset[ITensor]:
        """The tensors on whose values the shape of some tensor depends."""
        return frozenset()

    def convert(self, tensor: ITensor, dtype: DataType) -> None:
        """Take an input, or give an output, in another element type than the layers compute with."""

    def advise(self, topic: str, what: str) -> None:
        """Log something that does no harm, once for each topic."""
