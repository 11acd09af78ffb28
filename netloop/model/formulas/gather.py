"""Gathers, scatters and other formulas with indices."""

from netloop.model.formulas.rearrange import Arranging, Length
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import DataType, GatherMode, ReduceOperation, ScatterMode


class Indexing(Arranging):
    """Formulas that read and write by index; negative indices count from the end."""

    def gather(self, x: ITensor, indices: ITensor, axis: int = 0) -> ITensor:
        """The slices of an axis at indices, whose axes replace it, as ``numpy.take``."""
        return self.output(self.network.add_gather(x, indices, axis))

    def gather_elements(self, x: ITensor, indices: ITensor, axis: int) -> ITensor:
        """For each index, the element at the position of the index, with the index itself along ``axis``."""
        layer = self.network.add_gather_v2(x, indices, GatherMode.ELEMENT)
        layer.axis = axis
        return self.output(layer)

    def gather_nd(self, x: ITensor, indices: ITensor, batch_axes: int = 0) -> ITensor:
        """The slices at index tuples, the rows along the last axis of ``indices``."""
        layer = self.network.add_gather_v2(x, indices, GatherMode.ND)
        layer.num_elementwise_dims = batch_axes
        return self.output(layer)

    def scatter_elements(
        self, x: ITensor, indices: ITensor, updates: ITensor, axis: int, by: ReduceOperation = ReduceOperation.NONE
    ) -> ITensor:
        """``x`` with updates written or combined by ``by``, each at its own position, with its index along ``axis``."""
        layer = self.network.add_scatter(x, indices, updates, ScatterMode.ELEMENT)
        layer.axis = axis
        layer.reduction = by
        return self.output(layer)

    def scatter_nd(
        self, x: ITensor, indices: ITensor, updates: ITensor, by: ReduceOperation = ReduceOperation.NONE
    ) -> ITensor:
        """``x`` with updates written or combined by ``by``, at the rows along the last axis of ``indices``."""
        layer = self.network.add_scatter(x, indices, updates, ScatterMode.ND)
        layer.reduction = by
        return self.output(layer)

    def one_hot(self, indices: ITensor, depth: Length, values: ITensor, axis: int = -1) -> ITensor:
        """Along a new axis ``values[1]`` at each index, and ``values[0]`` elsewhere."""
        count = self.scalar(self.tensor(depth))
        return self.output(self.network.add_one_hot(indices, values, count, axis))

    def nonzero(self, x: ITensor) -> ITensor:
        """The indices of all nonzero elements, one in each column; int64."""
        return self.output(self.network.add_non_zero(x, DataType.INT64))
