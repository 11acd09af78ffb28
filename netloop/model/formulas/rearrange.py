"""Shapes, and formulas that rearrange elements."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.model.formulas.base import FormulaBase, Operand
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.rearrange import axis_count
from netloop.values.dims import Dims
from netloop.values.enums import ElementWiseOperation, ReduceOperation, SampleMode
from netloop.values.types import UNKNOWN, Array, normal_axis

Length = int | ITensor
"""The length of an axis: an int if it is known, otherwise a 0-D int64 tensor."""
Numbers = Sequence[int] | Array | ITensor
"""A list of integers, or a 1-D tensor."""


class Arranging(FormulaBase):
    """Formulas that rearrange elements."""

    # ------------------------------------------------------------------ shapes

    def shape(self, x: ITensor) -> ITensor:
        """The shape of a tensor; 1-D, int64."""
        tensor_type = x.type
        return (
            self.constant(np.array(tensor_type.shape, np.int64))
            if tensor_type.is_fixed
            else self.output(self.network.add_shape(x))
        )

    def length(self, x: ITensor, axis: int) -> Length:
        """The length of an axis."""
        axis = normal_axis(axis, x.type.rank)
        length = x.type.shape[axis]
        if length != UNKNOWN:
            return length
        return self.output(self.network.add_gather(self.shape(x), self.constant(np.int64(axis)), 0))

    def size(self, x: ITensor) -> ITensor:
        """The number of elements; 0-D, int64."""
        tensor_type = x.type
        if tensor_type.is_fixed:
            return self.constant(np.int64(tensor_type.volume))
        return self.output(self.network.add_reduce(self.shape(x), ReduceOperation.PROD, 1, False))

    def merge_axes(self, x: ITensor, axis: int) -> ITensor:
        """A matrix: the axes before ``axis`` become its rows, the others its columns."""
        lengths = [self.length(x, index) for index in range(x.type.rank)]
        sides = [self.product(lengths[:axis]), self.product(lengths[axis:])]
        return self.reshape(x, sides)

    def product(self, lengths: Sequence[Length]) -> Length:
        """The product of lengths."""
        volume = math.prod(length for length in lengths if not isinstance(length, ITensor))
        product: Length = volume
        for length in lengths:
            if isinstance(length, ITensor):
                operands = self.tensor(np.int64(product)) if isinstance(product, int) else product, length
                product = self.output(self.network.add_elementwise(*operands, ElementWiseOperation.PROD))
        return product

    def list_tensor(self, lengths: Sequence[Length] | Numbers) -> ITensor:
        """Integers and tensors of integers as one 1-D int64 tensor."""
        if isinstance(lengths, ITensor):
            return self.flat(self.cast(lengths, np.int64))
        if all(not isinstance(length, ITensor) for length in lengths):
            return self.constant(np.array(lengths, np.int64).reshape(-1))
        parts = [self.flat(self.cast(self.tensor(length), np.int64)) for length in lengths]
        return self.concat(parts, 0)

    def _numbers(self, numbers: Sequence[Length] | Numbers) -> list[int] | ITensor:
        """Integers if they are known, which need no constant; else one 1-D int64 tensor."""
        if isinstance(numbers, ITensor) or any(isinstance(length, ITensor) for length in numbers):
            listed = self.list_tensor(numbers)
            values = self.ints(listed)
            return listed if values is None else values
        return np.array(numbers, np.int64).reshape(-1).tolist()

    def flat(self, x: ITensor) -> ITensor:
        """All elements along one axis; a 1-D tensor is returned as it is."""
        return x if x.type.rank == 1 else self.reshape(x, [UNKNOWN])

    def scalar(self, x: ITensor) -> ITensor:
        """A 0-D tensor of one element; a 0-D tensor is returned as it is."""
        return x if x.type.rank == 0 else self.reshape(x, [])

    def reshape(self, x: ITensor, shape: Sequence[Length] | Numbers, zero_copies: bool = False) -> ITensor:
        """The elements in another shape.

        Args:
            x: the elements.
            shape: the new shape. One length may be -1, and then follows from the others.
            zero_copies: whether a 0 stands for the length of the same axis of ``x``.
        """
        layer = self.network.add_shuffle(x)
        layer.zero_is_placeholder = zero_copies
        listed = shape if isinstance(shape, ITensor) else self.list_tensor(shape)
        values = self.ints(listed)
        if values is None:
            layer.set_input(1, listed)
        else:
            layer.reshape_dims = Dims(values)
        return self.output(layer)

    def transpose(self, x: ITensor, order: Sequence[int]) -> ITensor:
        """The axes in another order."""
        order = [normal_axis(axis, x.type.rank) for axis in order]
        if list(order) == list(range(x.type.rank)):
            return x
        layer = self.network.add_shuffle(x)
        layer.first_transpose = order
        return self.output(layer)

    def expand_dims(self, x: ITensor, axes: Numbers) -> ITensor:
        """``x`` with axes of length 1 inserted; ``axes`` are those of the result."""
        listed = self.list_tensor(axes)
        return self.output(self.network.add_unsqueeze(x, listed)) if listed.type.shape != (0,) else x

    def squeeze(self, x: ITensor, axes: Numbers | None = None) -> ITensor:
        """``x`` without axes of length 1: those named, or all."""
        if axes is None:
            return self.output(self.network.add_squeeze(x))
        listed = self.list_tensor(axes)
        return self.output(self.network.add_squeeze(x, listed)) if listed.type.shape != (0,) else x

    def aligned(self, *tensors: ITensor) -> list[ITensor]:
        """Tensors of equal rank: axes of length 1 are added in front."""
        rank = max(tensor.type.rank for tensor in tensors)
        return [self.expand_dims(tensor, range(rank - tensor.type.rank)) for tensor in tensors]

    def along(self, x: ITensor, rank: int, axis: int) -> ITensor:
        """A 1-D tensor along ``axis`` of ``rank`` axes; a scalar, or a tensor of one element, stays as it is."""
        if x.type.rank != 1 or x.type.shape == (1,):
            return x
        axis = normal_axis(axis, rank)
        return self.expand_dims(x, [index for index in range(rank) if index != axis])

    def broadcast_to(self, x: ITensor, shape: Numbers) -> ITensor:
        """``x`` broadcast to a shape; where the shape has 1, the axis keeps its length, as in ONNX's Expand."""
        wanted = self.list_tensor(shape)
        count = axis_count(wanted.type)
        rank = max(x.type.rank, count)
        x = self.expand_dims(x, range(rank - x.type.rank))
        own = self.shape(x)
        wanted = self.concat([self.constant(np.ones(rank - count, np.int64)), wanted], 0)
        ones, zeros = self.constant(np.ones(rank, np.int64)), self.constant(np.zeros(rank, np.int64))
        is_one = self.output(self.network.add_elementwise(own, ones, ElementWiseOperation.EQUAL))
        sizes = self.output(self.network.add_select(is_one, wanted, own))
        # a slice with steps of 0 reads the same element again and again
        strides = self.output(self.network.add_select(is_one, zeros, ones))
        values = self.ints(sizes)
        if values is not None:
            return x if tuple(values) == x.type.shape else self.slice(x, [0] * rank, values, strides)
        # the others keep their lengths, which so stay known
        axes = [axis for axis, length in enumerate(x.type.shape) if length in (1, UNKNOWN)]
        if not axes:
            return x
        sizes, strides = (
            self.output(self.network.add_gather(tensor, self.constant(axes), 0)) for tensor in (sizes, strides)
        )
        return self.slice(x, [0] * len(axes), sizes, strides, axes)

    def full(self, shape: Sequence[Length] | Numbers, value: Any, dtype: Any) -> ITensor:
        """One number in a shape."""
        lengths = self.list_tensor(shape)
        return self.broadcast_to(self.constant(np.full((1,) * axis_count(lengths.type), value, dtype)), lengths)

    # ------------------------------------------------------------------ parts

    def concat(self, parts: Sequence[ITensor], axis: int) -> ITensor:
        """Tensors joined along an axis."""
        if len(parts) == 1:
            return parts[0]
        layer = self.network.add_concatenation(parts)
        layer.axis = axis
        return self.output(layer)

    def stack(self, parts: Sequence[ITensor], axis: int) -> ITensor:
        """Tensors of one shape joined along a new axis."""
        return self.concat([self.expand_dims(part, [axis]) for part in parts], axis)

    def slice(
        self,
        x: ITensor,
        starts: Sequence[Length] | Numbers,
        sizes: Sequence[Length] | Numbers,
        strides: Sequence[Length] | Numbers | None = None,
        axes: Numbers | None = None,
        outside: SampleMode = SampleMode.STRICT_BOUNDS,
        fill: ITensor | None = None,
    ) -> ITensor:
        """The elements at ``starts + i * strides`` for i in ``range(sizes)``, along some axes or all.

        Args:
            x: the elements.
            starts: the first position along each axis.
            sizes: the number of elements along each axis.
            strides: the distance of positions; by default 1.
            axes: the axes of these three; by default all.
            outside: the rule for positions outside of ``x``.
            fill: the value for FILL, 0-D; by default 0.
        """
        along = None if axes is None else self._numbers(axes)
        count = x.type.rank if along is None else axis_count(along.type) if isinstance(along, ITensor) else len(along)
        values = [self._numbers(numbers) for numbers in (starts, sizes, [1] * count if strides is None else strides)]
        layer = self.network.add_slice(x, *([] if isinstance(entry, ITensor) else entry for entry in values))
        layer.mode = outside
        if isinstance(along, list):
            layer.axes = Dims(along)
        for index, entry in zip((1, 2, 3, 5), (*values, along), strict=True):
            if isinstance(entry, ITensor):
                layer.set_input(index, entry)
        if fill is not None:
            layer.set_input(4, fill)
        return self.output(layer)

    def take_first(self, x: ITensor, count: Operand, axis: int = 0) -> ITensor:
        """The first elements along an axis."""
        return self.slice(x, [0], self.list_tensor([self.tensor(count)]), axes=[axis])
