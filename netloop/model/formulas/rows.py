"""Rows of a tensor at positions that only a run knows: slices from ``i`` to ``i + 1``."""

from netloop.model.formulas.gather import Indexing
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.pointwise import ICastLayer, IElementWiseLayer
from netloop.model.layers.rearrange import IConcatenationLayer, Rearrangement
from netloop.model.layers.sources import IShapeLayer
from netloop.values.enums import ElementWiseOperation, GatherMode
from netloop.values.types import normal_axis

ONE_NUMBER = ICastLayer, IConcatenationLayer, Rearrangement


class SingleRows(Indexing):
    """Formulas about single rows."""

    def _is_next(self, position: ITensor, other: ITensor) -> bool:
        """Whether ``other`` is the position after ``position``: its sum with 1."""
        return self._operand(other, ElementWiseOperation.SUM, 1) is number_of(position)

    def _operand(self, x: ITensor, op: ElementWiseOperation, number: int) -> ITensor | None:
        """The operand of which an operation with a number makes ``x``, which has one element; None if none does."""
        layer = number_of(x).producer
        if not isinstance(layer, IElementWiseLayer) or layer.op is not op:
            return None
        a, b = (number_of(tensor) for tensor in layer.inputs if tensor is not None)
        return a if self.ints(b) == [number] else b if self.ints(a) == [number] else None

    def _is_inside(self, position: ITensor, x: ITensor, axis: int) -> bool:
        """Whether a position is one of an axis in every run: the number of an iteration of a loop over the axis."""
        bound, length = self.bounds.get(number_of(position)), x.type.shape[axis]
        if bound is None:
            return False
        numbers = self.ints(bound)
        if numbers is not None:
            return 0 <= numbers[0] <= length  # a negative count may mean any number of iterations
        return self._is_length(self._operand(bound, ElementWiseOperation.MAX, 0) or bound, x, axis)

    def _is_length(self, number: ITensor, x: ITensor, axis: int) -> bool:
        """Whether a number is the length of an axis, read from the shape of the tensor."""
        layer = number_of(number).producer
        if not isinstance(layer, IGatherLayer) or layer.mode is not GatherMode.DEFAULT:
            return False
        lengths, index = layer.inputs
        shape = None if lengths is None else number_of(lengths).producer
        places = None if index is None else self.ints(index)
        if not isinstance(shape, IShapeLayer) or shape.inputs[0] is not x or places is None:
            return False
        return [normal_axis(place, x.type.rank) for place in places] == [axis]


def number_of(x: ITensor) -> ITensor:
    """The first tensor that has the number of a tensor of one element, which layers move, or convert to an integer."""
    while isinstance(layer := x.producer, ONE_NUMBER) and (before := layer.inputs[0]) is not None:
        if before.type.volume != 1 or not before.type.is_index:
            break
        x = before
    return x
