"""Sums and products over axes."""

from collections.abc import Sequence

from netloop.compose.arrange import Arranging
from netloop.enums import MatrixOperation, ReduceOperation
from netloop.graph.tensor import ITensor
from netloop.types import normal_axis


class Reducing(Arranging):
    """Formulas that combine elements along axes."""

    def reduce(self, op: ReduceOperation, x: ITensor, axes: Sequence[int], keep: bool = False) -> ITensor:
        """A sum, product, maximum, minimum or mean over some axes; without any, the tensor itself."""
        chosen = {normal_axis(axis, x.type.rank) for axis in axes}
        if not chosen:
            return x
        return self.made(self.network.add_reduce(x, op, sum(1 << axis for axis in chosen), keep))

    def sum(self, x: ITensor, axes: Sequence[int], keep: bool = False) -> ITensor:
        """The sum over some axes."""
        return self.reduce(ReduceOperation.SUM, x, axes, keep)

    def mean(self, x: ITensor, axes: Sequence[int], keep: bool = False) -> ITensor:
        """The mean over some axes."""
        return self.reduce(ReduceOperation.AVG, x, axes, keep)

    def softmax(self, x: ITensor, axis: int) -> ITensor:
        """The exponentials along an axis, divided by their sum."""
        layer = self.network.add_softmax(x)
        layer.axes = 1 << normal_axis(axis, x.type.rank)
        return self.made(layer)

    def matmul(self, a: ITensor, b: ITensor) -> ITensor:
        """The product of matrices, of vectors, or of batches of them, as ``numpy.matmul`` forms it."""
        ops = [MatrixOperation.VECTOR if each.type.rank == 1 else MatrixOperation.NONE for each in (a, b)]
        own = [1 if op is MatrixOperation.VECTOR else 2 for op in ops]
        batch = max(each.type.rank - count for each, count in zip((a, b), own, strict=True))
        a, b = (
            self.expand_dims(each, range(batch + count - each.type.rank))
            for each, count in zip((a, b), own, strict=True)
        )
        return self.made(self.network.add_matrix_multiply(a, ops[0], b, ops[1]))
