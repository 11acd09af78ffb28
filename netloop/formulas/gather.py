"""Elements by index."""

from netloop.enums import DataType, GatherMode, ReduceOperation, ScatterMode
from netloop.formulas.rearrange import Arranging, Length
from netloop.graph.tensor import ITensor


class Indexing(Arranging):
    """Formulas that read and write by index; negative indices count from the end."""

    def gather(self, x: ITensor, indices: ITensor, axis: int = 0) -> ITensor:
        """The slices of an axis that indices name; the axes of the indices take its place."""
        return self.made(self.network.add_gather(x, indices, axis))

    def gather_elements(self, x: ITensor, indices: ITensor, axis: int) -> ITensor:
        """For each index the element at its own place, but along the axis at the index."""
        layer = self.network.add_gather_v2(x, indices, GatherMode.ELEMENT)
        layer.axis = axis
        return self.made(layer)

    def gather_nd(self, x: ITensor, indices: ITensor, batch_axes: int = 0) -> ITensor:
        """The slices at the positions that the last axis of the indices tells."""
        layer = self.network.add_gather_v2(x, indices, GatherMode.ND)
        layer.num_elementwise_dims = batch_axes
        return self.made(layer)

    def scatter_elements(
        self, x: ITensor, indices: ITensor, updates: ITensor, axis: int, by: ReduceOperation = ReduceOperation.NONE
    ) -> ITensor:
        """``x`` with each update written at its own place, but along the axis at its index, or combined with it."""
        layer = self.network.add_scatter(x, indices, updates, ScatterMode.ELEMENT)
        layer.axis = axis
        layer.reduction = by
        return self.made(layer)

    def scatter_nd(
        self, x: ITensor, indices: ITensor, updates: ITensor, by: ReduceOperation = ReduceOperation.NONE
    ) -> ITensor:
        """``x`` with the updates at the positions that the last axis of the indices tells, written or combined."""
        layer = self.network.add_scatter(x, indices, updates, ScatterMode.ND)
        layer.reduction = by
        return self.made(layer)

    def one_hot(self, indices: ITensor, depth: Length, values: ITensor, axis: int = -1) -> ITensor:
        """Along a new axis ``values[1]`` at the place that an index names, and ``values[0]`` elsewhere."""
        count = self.scalar(self.tensor(depth))
        return self.made(self.network.add_one_hot(indices, values, count, axis))

    def nonzero(self, x: ITensor) -> ITensor:
        """The indices of all elements that are not 0, a column each; int64."""
        return self.made(self.network.add_non_zero(x, DataType.INT64))
