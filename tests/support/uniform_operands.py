"""Operands of random networks: one number throughout, made in every way, and others."""

from collections.abc import Callable
from random import Random
from typing import Any

import jax.numpy as jnp
import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import numpy_type
from tests.support.layer_specs import Unary
from tests.support.number_bounds import Bounds, either, is_float, of_array, product, rounded
from tests.support.tensor_drawing import Act, Drawing, Op

Shape = tuple[int, ...]
Fill = trt.FillOperation

FILLED = [trt.float32, trt.float16, trt.int32, trt.int64]
"""The types that fills make."""
NUMBERS = [0, 1, 1, 2, -1, 0.5, -0.25, 0.01, 0.1]
"""The numbers of uniform operands; of integers, the first five."""


class Operands(Drawing):
    """Draws operands, with the bounds of their numbers.

    Attributes:
        bounds: those of each tensor.
        inputs: the arrays of the network's inputs, by name.
        draw: numpy's source of numbers.
        is_whole: whether floats are small whole numbers, so that most arithmetic is exact.
    """

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.bounds: dict[ITensor, Bounds] = {}
        self.inputs: dict[str, np.ndarray] = {}
        self.draw = np.random.default_rng(chance.getrandbits(32))
        self.is_whole = self.coin()

    # ------------------------------------------------------------------ words

    def bounded(self, tensor: ITensor, bounds: Bounds) -> ITensor:
        self.bounds[tensor] = bounds
        return tensor

    def fixed(self, array: Any) -> ITensor:
        return self.bounded(super().fixed(array), of_array(np.asarray(array)))

    def entered(self, array: np.ndarray) -> ITensor:
        """An input with an array."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = array
        dtype = next(dtype for dtype in self.dtypes if numpy_type(dtype) == array.dtype)
        return self.bounded(self.network.add_input(name, dtype, array.shape), of_array(array))

    def numbers(self, dtype: trt.DataType, shape: Shape) -> np.ndarray:
        """Numbers from -4 to 4."""
        if self.is_whole or not is_float(dtype):
            return self.draw.integers(-3, 4, shape).astype(numpy_type(dtype))
        return np.clip(self.draw.normal(size=shape), -4, 4).astype(numpy_type(dtype))

    def argument(self, array: np.ndarray) -> ITensor:
        """A constant or an input, which are arguments of the program: XLA does not know their numbers."""
        return self.fixed(array) if self.coin() else self.entered(array)

    def times(self, tensor: ITensor, number: float) -> ITensor:
        factor = self.filled(tensor, number)
        bounds = product(tensor.dtype, self.bounds[tensor], self.bounds[factor])
        return self.bounded(self.combine(tensor, factor, Op.PROD), bounds)

    def tamed(self, tensor: ITensor, most: float) -> ITensor:
        """The tensor, if need be times a power of two, with numbers up to a size."""
        size = self.bounds[tensor].size
        if size <= most or not is_float(tensor.dtype):
            return tensor
        return self.times(tensor, 2.0 ** -np.ceil(np.log2(size / most)))

    def converted(self, tensor: ITensor, dtype: trt.DataType) -> ITensor:
        bounds = self.bounds[tensor]
        return self.bounded(self.cast(tensor, dtype), rounded(dtype, *bounds))

    def shaped(self, tensor: ITensor, *shape: int) -> ITensor:
        return self.bounded(self.reshape(tensor, *shape), self.bounds[tensor])

    def transposed(self, tensor: ITensor) -> ITensor:
        """The tensor with its last two axes exchanged."""
        shuffle = self.network.add_shuffle(tensor)
        axes = list(range(len(tensor.shape)))
        shuffle.first_transpose = (*axes[:-2], axes[-1], axes[-2])
        return self.bounded(shuffle.get_output(0), self.bounds[tensor])

    def window(self, tensor: ITensor, start: Shape, shape: Shape, stride: Shape) -> ITensor:
        made = self.network.add_slice(tensor, start, shape, stride).get_output(0)
        return self.bounded(made, self.bounds[tensor])

    # ------------------------------------------------------------------ operands

    def operand(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """A tensor with numbers of moderate size, of which XLA knows more or less."""
        return self.uniform(dtype, shape) if self.between(0, 2) else self.varied(dtype, shape)

    def uniform(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """One number throughout, mostly made in ways in which XLA knows that."""
        makers: list[Callable[..., ITensor]] = [
            *[self.repeated] * 15, *[self.summed, self.halves] * 5,
            *[self.filled_in, self.row_filled, self.array_of_one] * 2, self.drawn_alike,
        ]  # fmt: skip
        made = self.choose(*makers)(dtype, shape)
        return self.changed(made) if not self.between(0, 2) else made

    def number(self, dtype: trt.DataType) -> np.ndarray:
        numbers = NUMBERS[:8] if self.is_whole and self.coin() else NUMBERS
        return np.array(self.choose(*(numbers if is_float(dtype) else NUMBERS[:5])), numpy_type(dtype))

    def repeated(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """A slice of stride 0 of one element."""
        one = self.argument(self.number(dtype).reshape((1,) * len(shape)))
        return self.window(one, (0,) * len(shape), shape, (0,) * len(shape))

    def filled_in(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """A fill without steps, its start an argument."""
        made = dtype if dtype in FILLED else self.choose(trt.float32, trt.int32)
        alpha = self.argument(self.number(made))
        fill = self.network.add_fill(shape, Fill.LINSPACE, made)
        fill.set_input(1, alpha)
        fill.set_input(2, self.fixed(np.zeros(len(shape), numpy_type(made))))
        return self.converted(self.bounded(fill.get_output(0), self.bounds[alpha]), dtype)

    def row_filled(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """A fill without steps, its start an attribute, in another shape."""
        made = dtype if dtype in FILLED else trt.float32
        number = self.number(made)
        fill = self.network.add_fill((int(np.prod(shape)),), Fill.LINSPACE, made)
        fill.alpha, fill.beta = float(number), 0.0
        row = self.bounded(fill.get_output(0), of_array(number))
        return self.converted(self.shaped(row, *shape), dtype)

    def drawn_alike(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """Random numbers between one number and the same."""
        number = self.number(trt.float32)
        fill = self.network.add_fill(shape, self.choose(Fill.RANDOM_UNIFORM, Fill.RANDOM_NORMAL), trt.float32)
        fill.alpha = float(number)
        fill.beta = float(number) if fill.operation is Fill.RANDOM_UNIFORM else 0.0
        return self.converted(self.bounded(fill.get_output(0), of_array(number)), dtype)

    def summed(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """One element and zeros along each axis, in one sum."""
        made = self.argument(self.number(dtype).reshape((1,) * len(shape)))
        bounds = self.bounds[made]
        for axis, length in enumerate(shape):
            zeros = self.fixed(np.zeros((1,) * axis + (length,) + (1,) * (len(shape) - axis - 1), numpy_type(dtype)))
            made = self.combine(made, zeros, Op.SUM)
        return self.bounded(made, bounds)

    def array_of_one(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """A constant or an input that happens to be uniform."""
        return self.argument(np.full(shape, self.number(dtype)))

    def halves(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """Two uniform tensors, often of one number, next to each other."""
        axis = self.between(0, len(shape) - 1)
        if shape[axis] < 2:
            return self.repeated(dtype, shape)
        cut = self.between(1, shape[axis] - 1)
        ends = [(*shape[:axis], length, *shape[axis + 1 :]) for length in (cut, shape[axis] - cut)]
        parts = [self.repeated(dtype, end) for end in ends]
        return self.bounded(self.concatenated(parts, axis), either(*(self.bounds[part] for part in parts)))

    def changed(self, tensor: ITensor) -> ITensor:
        """A uniform tensor after a layer that leaves it uniform."""
        changes: list[Callable[[ITensor], ITensor]] = [self.turned, self.part_of_itself, self.negated, self.doubled]
        if is_float(tensor.dtype):
            changes += [self.exponential, self.rectified, self.through_another_type]
        return self.choose(*changes)(tensor)

    def turned(self, tensor: ITensor) -> ITensor:
        """Its elements in the other order and back."""
        if len(tensor.shape) < 2:
            return tensor
        shape = tuple(tensor.shape)
        other = self.shaped(tensor, *shape[:-2], shape[-1], shape[-2])
        return self.transposed(other)

    def part_of_itself(self, tensor: ITensor) -> ITensor:
        """A concatenation with itself, of which it is one half."""
        shape = tuple(tensor.shape)
        both = self.bounded(self.concatenated([tensor, tensor], 0), self.bounds[tensor])
        start = (self.between(0, shape[0]), *(0,) * (len(shape) - 1))
        return self.window(both, start, shape, (1,) * len(shape))

    def negated(self, tensor: ITensor) -> ITensor:
        return self.bounded(self.network.add_unary(tensor, Unary.NEG).get_output(0), self.bounds[tensor])

    def doubled(self, tensor: ITensor) -> ITensor:
        return self.times(tensor, 2)

    def exponential(self, tensor: ITensor) -> ITensor:
        tensor = self.tamed(tensor, 2)
        size, _, error = self.bounds[tensor]
        made = self.network.add_unary(tensor, Unary.EXP).get_output(0)
        most = float(np.exp(size))
        return self.bounded(made, rounded(tensor.dtype, most, 0, most * error, 4))

    def rectified(self, tensor: ITensor) -> ITensor:
        made = self.network.add_activation(tensor, Act.RELU).get_output(0)
        return self.bounded(made, self.bounds[tensor])

    def through_another_type(self, tensor: ITensor) -> ITensor:
        other = self.choose(trt.float32, trt.float64, trt.float16, trt.bfloat16)
        return self.converted(self.converted(tensor, other), tensor.dtype)

    # ------------------------------------------------------------------ others

    def varied(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """Different numbers."""
        makers = [*[self.some] * 6, *[self.stepped, self.along_one_axis, self.unit_matrix] * 3, self.random_fill]
        return self.choose(*makers)(dtype, shape)

    def some(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        return self.argument(self.numbers(dtype, shape))

    def stepped(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """A fill with steps along some axes, of at most 4."""
        made = dtype if dtype in (trt.float32, trt.float16) else trt.float32
        steps = np.array([self.choose(0, 1, -1) * 2.0 ** -np.ceil(np.log2(length)) for length in shape])
        alpha = self.fixed(np.array(1, numpy_type(made)))
        fill = self.network.add_fill(shape, Fill.LINSPACE, made)
        fill.set_input(1, alpha)
        fill.set_input(2, self.fixed(steps.astype(numpy_type(made))))
        size = 1 + float(np.abs(steps * shape).sum())
        unit = float(np.abs(steps[steps != 0]).min(initial=1))
        return self.converted(self.bounded(fill.get_output(0), rounded(made, size, unit, 0, 3)), dtype)

    def random_fill(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        operation = self.choose(Fill.RANDOM_UNIFORM, Fill.RANDOM_NORMAL)
        fill = self.network.add_fill(shape, operation, trt.float32)
        fill.alpha, fill.beta = -1.0, 1.0
        return self.converted(self.bounded(fill.get_output(0), rounded(trt.float32, 8, 0, 0, 4)), dtype)

    def along_one_axis(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        """A row or a column, repeated."""
        axis = self.between(0, len(shape) - 1)
        lengths = tuple(length if at == axis else 1 for at, length in enumerate(shape))
        row = self.argument(self.numbers(dtype, lengths))
        return self.window(row, (0,) * len(shape), shape, tuple(int(at == axis) for at in range(len(shape))))

    def unit_matrix(self, dtype: trt.DataType, shape: Shape) -> ITensor:
        eye = np.eye(*shape[-2:]) if len(shape) > 1 else np.eye(1, *shape)[0]
        return self.argument(np.ascontiguousarray(np.broadcast_to(eye, shape)).astype(numpy_type(dtype)))


SPECIAL = {
    "none": [],
    "nan": [np.nan],
    "infinite": [np.inf, -np.inf, np.nan],
    "small": [-0.0, 0.0, 1e-40, -1e-42],
    "largest": [1, -1],
}
"""Numbers that are written into the first input: the largest ones as multiples of that of the type."""


def sprinkled(array: np.ndarray, kind: str, draw: np.random.Generator) -> np.ndarray:
    """The array with some special numbers at random places, few of them, so that they do not meet everywhere."""
    if kind == "none" or not jnp.issubdtype(array.dtype, jnp.floating):
        return array
    scale = float(jnp.finfo(array.dtype).max) if kind == "largest" else 1
    flat = array.copy().reshape(-1)
    places = draw.choice(flat.size, size=min(flat.size, int(draw.integers(1, 4))), replace=False)
    for place in places:
        flat[place] = scale * draw.choice(SPECIAL[kind])
    return flat.reshape(array.shape)
