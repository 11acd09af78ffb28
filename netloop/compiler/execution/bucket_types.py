"""The types of a network for all lengths of a bucket, which follow from those for three of them.

To infer the types of a decoder takes 5 to 30 ms, as long as a hundred of its steps. But its shapes, and the integers
that follow from them, are lines from length to length; see ``LinearLengths``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from netloop.compiler.passes.growth import Affines, LinearLengths, Unbuffered
from netloop.model.graph import ILayer, ITensor, Operation, TypeTable
from netloop.values.diagnostics import LayerError
from netloop.values.types import TensorType

Table = Callable[[int], TypeTable]
"""Returns the types of a call, for the number by which a length is more than the first one."""


class _TypeLine(NamedTuple):
    """The type of a tensor for each number: its shape, and its elements if they are known."""

    first: TensorType
    shape: Affines
    elements: Affines | None

    def at(self, number: int) -> TensorType:
        shape = tuple([line.at(number) for line in self.shape])
        if self.elements is None:
            return TensorType(self.first.dtype, shape)
        elements = np.array([line.at(number) for line in self.elements], self.first.dtype)
        return TensorType(self.first.dtype, shape, elements.reshape(shape))


class BucketTypes(LinearLengths):
    """The types of the tensors of a network for the lengths of a bucket.

    Args:
        layers: the layers that depend on the length, in the order of data flow.
        valued: the tensors whose values have to be the same for all lengths.
        table: returns the types for a number.
        last: the number of the last length.

    Raises:
        Unbuffered: the network is not valid for one of the three lengths, a length lies on no line, or an integer that
            decides a shape may lie on none.
    """

    def __init__(self, layers: Sequence[ILayer], valued: Iterable[ITensor], table: Table, last: int) -> None:
        self._layers, self._table = layers, table
        self._lines: dict[ITensor, _TypeLine] = {}
        super().__init__(last)
        for layer in layers:
            self._require_lines(layer)
        for tensor in self._irregular.intersection(valued):
            raise Unbuffered(f"the value of {tensor.name!r} may not be the same for all lengths")
        # the sizes of a reshape or a slice for three lengths do not decide its shape for the others
        sized = (layer for layer in layers if any(map(self._varies, _deciding(layer))))
        self._asked = [(layer, [*self._inputs_of(layer)], [*map(self._line_of, layer.outputs)]) for layer in sized]

    @property
    def layers(self) -> Iterable[ILayer]:
        return self._layers

    def table(self, trip: int) -> TypeTable:
        return self._table(trip)

    def has(self, number: int) -> bool:
        """Whether the network is valid for a number, with types on the lines."""
        return 0 <= number <= self.last and all(_agrees(*asked, number) for asked in self._asked)

    def at(self, number: int, wanted: Iterable[ITensor]) -> TypeTable:
        """The types of some tensors for a number."""
        for tensor in wanted:
            if tensor not in self._lines:
                self._lines[tensor] = self._line_of(tensor)
        return TypeTable({tensor: self._lines[tensor].at(number) for tensor in wanted})

    def _require_lines(self, layer: ILayer) -> None:
        """Check that the types of what a layer reads and writes are lines.

        Raises:
            Unbuffered: they are not.
        """
        for tensor in layer.outputs:
            # an axis of length 1 may be broadcast, and has no padding
            if any(line.slope < 0 and line.at(self.last) <= 1 for line in self.lines(tensor)):
                raise Unbuffered(f"{tensor.name!r} becomes short")
            if not isinstance(layer, Operation) and self._is_known(tensor):
                raise Unbuffered(f"the value of {tensor.name!r} is that of a loop or conditional")
        for tensor in _deciding(layer):
            if tensor in self._irregular or (self._varies(tensor) and not isinstance(layer, Operation)):
                raise Unbuffered(f"the value of {tensor.name!r} decides what {layer.name!r} is")

    def _is_regular(self, layer: ILayer, tensor: ITensor) -> bool:
        # only integers are on lines
        kind = self.types(tensor)[0]
        can_be = kind.is_integer or kind.is_bool or not self._varies(tensor)
        return can_be and super()._is_regular(layer, tensor)

    def _inputs_of(self, layer: ILayer) -> Iterator[_TypeLine | None]:
        """The types of what a layer reads, as lines."""
        for position, tensor in enumerate(layer.inputs):
            yield None if tensor is None else self._line_of(tensor, position in layer.SHAPE_INPUTS)

    def _line_of(self, tensor: ITensor, has_elements: bool = False) -> _TypeLine:
        """The type of a tensor as a line, with the lines of its elements if it ``has_elements``.

        Raises:
            Unbuffered: not all of these are known.
        """
        elements = self.values(tensor) if has_elements else None
        if elements is not None and any(line is None for line in elements):
            raise Unbuffered(f"the value of {tensor.name!r} is known in part")
        lines = None if elements is None else tuple(line for line in elements if line is not None)
        return _TypeLine(self.types(tensor)[0], self.lines(tensor), lines)


def _deciding(layer: ILayer) -> list[ITensor]:
    """The inputs whose values decide the type of a layer, such as sizes, or the condition of a conditional."""
    if not isinstance(layer, Operation):
        return [tensor for tensor in layer.type_inputs() if tensor]
    return [tensor for at, tensor in enumerate(layer.inputs) if tensor and at in layer.SHAPE_INPUTS]


def _agrees(layer: ILayer, inputs: Sequence[_TypeLine | None], outputs: Sequence[_TypeLine], number: int) -> bool:
    """Whether the types of the outputs of a layer are those of the lines."""
    try:
        result = layer.infer(*(line and line.at(number) for line in inputs))
    except LayerError:
        return False
    types = result if isinstance(result, tuple) else (result,)
    return [*types] == [line.at(number) for line in outputs]
