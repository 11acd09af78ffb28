"""The layers that make buffers of loops, and read their first rows, on the host."""

from collections.abc import Sequence

import numpy as np

from netloop.model.graph import ITensor, layer
from netloop.model.layers.sequence import HostOperation, ISequenceConcatenationLayer, require_tensors
from netloop.values.enums import LayerType
from netloop.values.types import UNKNOWN, Array, SequenceType, Shape, Tensors, TensorType, normal_axis


@layer(LayerType.INTERNAL, "Rows Of A Buffer")
class BufferRowsLayer(HostOperation):
    """The number of rows of a buffer, int64[]: at least input 0, and a power of two of at least the COUNT, input 1.

    A program is then compiled for each power of two, and not for each COUNT.
    """

    MAX_INPUTS = 2

    def infer(self, least: TensorType, count: TensorType | None = None) -> TensorType:
        return least.with_shape(())

    def type_inputs(self) -> Sequence[ITensor | None]:
        # the COUNT decides no shape, so that no program is compiled for its value
        return self.inputs[:1]

    def evaluate(self, least: Array, count: Array) -> Array:
        return np.array(max(int(least), 1 << max(0, int(count.reshape(())) - 1).bit_length()), least.dtype)


@layer(LayerType.INTERNAL, "Filled Part")
class FilledPartLayer(HostOperation):
    """The first elements of a buffer (input 0) after a number of iterations (input 1): slope * number + start.

    On the host, which cuts by a view: a program would be compiled for each length.

    Attributes:
        axis: the axis of the elements.
        slope: the number of elements of an iteration.
        start: the number of elements before the first iteration.
    """

    MAX_INPUTS = 2

    axis: int
    slope: int
    start: int

    def infer(self, buffer: TensorType, number: TensorType | None = None) -> TensorType:
        return buffer.with_shape(UNKNOWN if axis == self.axis else n for axis, n in enumerate(buffer.shape))

    def type_inputs(self) -> Sequence[ITensor | None]:
        # the number decides the shape, but no program is to be compiled for each number
        return self.inputs[:1]

    def evaluate(self, buffer: Array, number: Array) -> Array:
        length = self.slope * max(0, int(number.reshape(()))) + self.start
        result: Array = buffer[(slice(None),) * self.axis + (slice(length),)]
        return result


@layer(LayerType.INTERNAL, "List Of Rows")
class RowListLayer(HostOperation):
    """The first rows of a tensor (input 0) as a sequence, as many as a number (input 1) says; all without a number.

    With flags (input 2), one for each row, only those of the first rows whose flag is set.
    """

    MAX_INPUTS = 3

    def infer(
        self, rows: TensorType, number: TensorType | None = None, flags: TensorType | None = None
    ) -> SequenceType:
        return SequenceType(rows.dtype, element=rows.shape[1:])

    def evaluate(self, rows: Array, number: Array | None = None, flags: Array | None = None) -> Tensors:
        return Tensors(rows if number is None else _chosen_rows(rows, number, flags))


def _chosen_rows(rows: Array, number: Array, flags: Array | None) -> Array:
    """The first rows, as many as a number says, or those of them whose flags are set."""
    count = max(0, int(number.reshape(())))
    return rows[:count] if flags is None else rows[:count][flags[:count]]


@layer(LayerType.INTERNAL, "Joined Rows")
class JoinedRowsLayer(HostOperation):
    """The first rows of a tensor (input 0), as many as a number (input 1) says, joined as the tensors of a sequence.

    With flags (input 2), one for each row, only those of the first rows whose flag is set.

    Attributes:
        axis: the axis along which they are joined.
        new_axis: whether it is new.
    """

    REQUIRED_INPUTS = 2
    MAX_INPUTS = 3

    axis: int
    new_axis: bool

    def infer(self, rows: TensorType, number: TensorType, flags: TensorType | None = None) -> TensorType:
        return rows.with_shape(joined_shape(self, rows.shape[1:], UNKNOWN))

    def evaluate(self, rows: Array, number: Array, flags: Array | None = None) -> Array:
        chosen = _chosen_rows(rows, number, flags)
        require_tensors(len(chosen))
        return np.moveaxis(chosen, 0, self.axis).reshape(joined_shape(self, rows.shape[1:], len(chosen)))


def joined_shape(layer: JoinedRowsLayer | ISequenceConcatenationLayer, row: Shape, count: int) -> Shape:
    """The shape of a number of rows that a layer joins."""
    axis = normal_axis(layer.axis, len(row) + layer.new_axis)
    if layer.new_axis:
        return *row[:axis], count, *row[axis:]
    return *row[:axis], UNKNOWN if count == UNKNOWN else count * row[axis], *row[axis + 1 :]
