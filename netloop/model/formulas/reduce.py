"""Reductions, matrix products and normalizations."""

import re
import string
from collections.abc import Sequence

import numpy as np

from netloop.model.formulas.arithmetic import Arithmetic
from netloop.model.formulas.base import Operand
from netloop.model.formulas.rearrange import Length, Numbers
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import (
    CumulativeOperation,
    DataType,
    MatrixOperation,
    ReduceOperation,
    TopKOperation,
    UnaryOperation,
)
from netloop.values.types import HALVES, normal_axis


def bitmask(*axes: int) -> int:
    """Return the mask with bit i for each axis i."""
    return sum(1 << axis for axis in axes)


class Reducing(Arithmetic):
    """Formulas that combine elements along axes."""

    def reduce(self, op: ReduceOperation, x: ITensor, axes: Numbers, keep: bool = False) -> ITensor:
        """A reduction over axes; without any axis, the tensor itself."""
        listed = self.list_tensor(axes)
        values = self.ints(listed)
        if values is None:
            layer = self.network.add_reduce(x, op, 0, keep)
            layer.set_input(1, listed)
            return self.output(layer)
        chosen = {normal_axis(axis, x.type.rank) for axis in values}
        return self.output(self.network.add_reduce(x, op, bitmask(*chosen), keep)) if chosen else x

    def sum(self, x: ITensor, axes: Numbers, keep: bool = False) -> ITensor:
        """The sum over axes."""
        return self.reduce(ReduceOperation.SUM, x, axes, keep)

    def mean(self, x: ITensor, axes: Numbers, keep: bool = False) -> ITensor:
        """The mean over axes."""
        return self.reduce(ReduceOperation.AVG, x, axes, keep)

    def log_sum_exp(self, x: ITensor, axes: Numbers, keep: bool = False) -> ITensor:
        """The logarithm of the sum of exponentials over axes, without overflow."""
        highest = self.reduce(ReduceOperation.MAX, x, axes, True)
        highest = self.where(self.unary(UnaryOperation.ISINF, highest), 0.0, highest)
        terms = self.unary(UnaryOperation.EXP, self.sub(x, highest))
        tensor = self.add(self.unary(UnaryOperation.LOG, self.sum(terms, axes, True)), highest)
        return tensor if keep else self.squeeze(tensor, axes)

    def best(
        self, op: TopKOperation, x: ITensor, count: Length, axis: int, total_order: bool = False
    ) -> tuple[ITensor, ITensor]:
        """The largest or smallest elements along an axis, in order, and their int64 indices."""
        mask = bitmask(normal_axis(axis, x.type.rank))
        number = None if isinstance(count, ITensor) else count
        layer = self.network.add_topk(x, op, 0 if number is None else number, mask, DataType.INT64)
        layer.total_order = total_order
        if isinstance(count, ITensor):
            layer.set_input(1, count)
        return layer.outputs[0], layer.outputs[1]

    def cumulative(
        self, op: CumulativeOperation, x: ITensor, axis: Operand, exclusive: bool = False, reverse: bool = False
    ) -> ITensor:
        """The running sums or products along an axis; ``exclusive`` ones leave out the element itself."""
        along = self.scalar(self.tensor(axis))
        return self.output(self.network.add_cumulative(x, along, op, exclusive, reverse))

    def softmax(self, x: ITensor, axis: int) -> ITensor:
        """The softmax along an axis."""
        layer = self.network.add_softmax(x)
        layer.axes = bitmask(normal_axis(axis, x.type.rank))
        return self.output(layer)

    def log_softmax(self, x: ITensor, axis: int) -> ITensor:
        """The logarithm of the softmax along an axis."""
        below = self.sub(x, self.reduce(ReduceOperation.MAX, x, [axis], True))
        total = self.sum(self.unary(UnaryOperation.EXP, below), [axis], True)
        return self.sub(below, self.unary(UnaryOperation.LOG, total))

    def norm_1(self, x: ITensor, axes: Numbers, keep: bool = False) -> ITensor:
        """The sum of absolute values over axes."""
        return self.sum(self.unary(UnaryOperation.ABS, x), axes, keep)

    def norm_2(self, x: ITensor, axes: Numbers, keep: bool = False) -> ITensor:
        """The square root of the sum of squares over axes."""
        return self.unary(UnaryOperation.SQRT, self.sum(self.mul(x, x), axes, keep))

    def moments(self, x: ITensor, axes: Numbers) -> tuple[ITensor, ITensor]:
        """The mean and variance over axes, which keep length 1."""
        mean = self.mean(x, axes, keep=True)
        away = self.sub(x, mean)
        return mean, self.mean(self.mul(away, away), axes, keep=True)

    def inverse_deviation(self, variance: ITensor, epsilon: float) -> ITensor:
        """1 / sqrt(variance + epsilon)."""
        return self.unary(UnaryOperation.RECIP, self.unary(UnaryOperation.SQRT, self.add(variance, epsilon)))

    def matmul(self, a: ITensor, b: ITensor) -> ITensor:
        """The product of matrices, vectors or batches of them, as ``numpy.matmul``."""
        ops = [MatrixOperation.VECTOR if tensor.type.rank == 1 else MatrixOperation.NONE for tensor in (a, b)]
        own = [1 if op is MatrixOperation.VECTOR else 2 for op in ops]
        batch = max(tensor.type.rank - count for tensor, count in zip((a, b), own, strict=True))
        a, b = (
            self.expand_dims(tensor, range(batch + count - tensor.type.rank))
            for tensor, count in zip((a, b), own, strict=True)
        )
        return self.output(self.network.add_matrix_multiply(a, ops[0], b, ops[1]))

    def einsum(self, equation: str, operands: Sequence[ITensor]) -> ITensor:
        """An einsum, whose equation may have lower-case letters and capitals."""
        return self.output(self.network.add_einsum(operands, _lower_case(equation.replace(" ", ""))))

    def batch_normalized(
        self, x: ITensor, scale: ITensor, bias: ITensor, mean: ITensor, variance: ITensor, epsilon: float
    ) -> ITensor:
        """(x - mean) / sqrt(variance + epsilon) * scale + bias for each channel, axis 1; half types in float32."""
        wide, *tensors = (
            self.cast(tensor, np.float32) if tensor.type.dtype in HALVES else tensor
            for tensor in (x, scale, bias, mean, variance)
        )
        factor, bias, mean, variance = (
            self.along(self.cast(tensor, wide.type.dtype), wide.type.rank, 1) for tensor in tensors
        )
        factor = self.mul(factor, self.inverse_deviation(variance, epsilon))
        return self.cast(self.add(self.mul(self.sub(wide, mean), factor), bias), x.type.dtype)


def _lower_case(equation: str) -> str:
    """Return the equation with unused lower-case letters for its capitals."""
    capitals = sorted(set(re.findall("[A-Z]", equation)))
    free = [letter for letter in string.ascii_lowercase if letter not in equation]
    require(len(capitals) <= len(free), f"the equation {equation!r} has more than 26 different letters")
    if capitals and "->" not in equation:
        # the result has the letters in the order of the alphabet, which the new letters would change
        letters = sorted(set(re.findall("[A-Za-z]", equation)))
        dots = "..." if "..." in equation else ""
        equation += "->" + dots + "".join(letter for letter in letters if equation.count(letter) == 1)
    return equation.translate(dict(zip(map(ord, capitals), free, strict=False)))
