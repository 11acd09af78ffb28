"""Ranges and random numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.model.formulas.base import Operand, as_dtype
from netloop.model.formulas.rearrange import Length, Numbers
from netloop.model.formulas.reduce import Reducing
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import CumulativeOperation, FillOperation, UnaryOperation
from netloop.values.types import LARGEST_KNOWN_VALUE


class Filling(Reducing):
    """Formulas that generate numbers."""

    def arange(self, count: Length, start: Operand = 0, step: Operand = 1) -> ITensor:
        """The numbers ``start + i * step`` for i in ``range(count)``, of the type of ``start`` or int64."""
        start = self.tensor(start)
        dtype = start.type.dtype
        number, first, by = self.known(self.tensor(count)), self.known(start), self.known(step)
        if number is not None and first is not None and by is not None:
            size = max(int(number), 0)
            if size * dtype.itemsize <= LARGEST_KNOWN_VALUE:
                places = np.arange(size)
                return self.constant((first.reshape(()) + places.astype(dtype) * by.reshape(())).astype(dtype))
        alpha, beta = self.scalar(start), self.flat(self.tensor(step, start))
        return self._filled(FillOperation.LINSPACE, [count], dtype, alpha, beta)

    def arange_between(self, start: ITensor, limit: ITensor, step: ITensor) -> ITensor:
        """The numbers from ``start`` up to, but excluding, ``limit``; all three are 0-D and of one type."""
        distance = self.sub(limit, start)
        if distance.type.is_float:
            count = self.unary(UnaryOperation.CEIL, self.div(distance, step))
        else:
            count = self.sub(0, self.floor_div(self.sub(0, distance), step))
        return self.arange(self.maximum(self.cast(count, np.int64), 0), start, step)

    def uniform(
        self, shape: Sequence[Length] | Numbers, dtype: np.dtype[Any], low: float = 0.0, high: float = 1.0
    ) -> ITensor:
        """Uniformly distributed numbers from ``low`` up to, but excluding, ``high``."""
        ends = (self.constant(number, dtype) for number in (low, high))
        return self._filled(FillOperation.RANDOM_UNIFORM, shape, dtype, *ends)

    def normal(
        self, shape: Sequence[Length] | Numbers, dtype: np.dtype[Any], mean: float = 0.0, deviation: float = 1.0
    ) -> ITensor:
        """Normally distributed numbers."""
        moments = (self.constant(number, dtype) for number in (mean, deviation))
        return self._filled(FillOperation.RANDOM_NORMAL, shape, dtype, *moments)

    def drawn_classes(self, shares: ITensor, count: Length) -> ITensor:
        """Class indices, int64[batch, count], drawn with the probabilities of float32[batch, classes]."""
        last = self.sub(self.tensor(self.length(shares, 1)), 1)
        drawn = self.uniform([self.length(shares, 0), count, 1], np.dtype(np.float32))
        below = self.expand_dims(self.cumulative(CumulativeOperation.SUM, shares, 1), [1])
        passed = self.sum(self.cast(self.less_equal(below, drawn), np.int64), [2])
        return self.minimum(passed, last)  # a rounded sum of all probabilities may be below the number drawn

    def _filled(
        self, op: FillOperation, shape: Sequence[Length] | Numbers, dtype: np.dtype[Any], *ends: ITensor
    ) -> ITensor:
        listed = self.list_tensor(shape)
        dims = self.ints(listed)
        layer = self.network.add_fill(dims or [], op, as_dtype(dtype))
        if dims is None:
            layer.set_input(0, listed)
        for index, end in enumerate(ends, 1):
            layer.set_input(index, end)
        return self.output(layer)
