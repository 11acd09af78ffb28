"""Tensors of random networks, drawn, converted and combined so that engine and reference can be compared exactly.

Most arithmetic is exact: floats are whole numbers of at most 64, and integers wrap alike everywhere. So an engine and
the reference agree to the last bit, whatever is decided by a tensor.
Where a layer rounds, its result is *rough*: at most 1, known to within ``TOLERANCE``, and mixed only in ways that keep
errors from growing. Nothing is decided by a rough tensor.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import jax.numpy as jnp
import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import NUMPY_TYPES, numpy_type

Op, Act = trt.ElementWiseOperation, trt.ActivationType
DTYPES = [dtype for dtype in NUMPY_TYPES if dtype is not trt.DataType.STRING]
FLOATS = [trt.float32, trt.float16, trt.bfloat16, trt.float64]
NUMBERS = [*FLOATS, trt.int32, trt.int64]
"""The types of most arithmetic."""
ARITHMETIC = [*NUMBERS, trt.int8, trt.int16, trt.uint8, trt.uint16, trt.uint32, trt.uint64]
"""The types of all arithmetic."""
REDUCIBLE = [*NUMBERS, trt.int8, trt.uint8]
LISTED = [trt.bool, trt.float32, trt.float16, trt.float64, trt.int32, trt.int64, trt.int8, trt.uint8]
"""Types of which ONNX has sequences."""

UNSIGNED = (trt.uint2, trt.uint4, trt.uint8, trt.uint16, trt.uint32, trt.uint64)
LEAST = {trt.bool: 0, trt.int2: -2, trt.e8m0: 1, **dict.fromkeys(UNSIGNED, 0)}
MOST = {trt.bool: 1, trt.int2: 1, trt.uint2: 3, trt.e8m0: 2}
"""The numbers with which all types can be written exactly: from -4 to 4, except for these."""

LATEST = 3
"""The number of latest tensors from which most are drawn."""

BOUND = 63
"""Sums and products of a few small numbers are below it, and whole numbers up to it exact in all types of FLOATS."""
SHRINK = 1 / 8
"""The factor of rough results; no layer here makes differences more than 4 times as large."""

TOLERANCE = {dtype: 2 * float(jnp.finfo(numpy_type(dtype)).eps) for dtype in FLOATS}
"""The absolute difference from the reference that a rough tensor of an engine may have; its numbers are at most 1.

A layer that rounds is off by at most 8 steps of 1: its sums are short and in another order, its exp and tanh are other
polynomials, and halves are rounded once or after each step. SHRINK leaves 1 step of them, and half of what was off
before. All other tensors are equal to the last bit.
"""


def is_empty(tensor: ITensor) -> bool:
    return 0 in tuple(tensor.shape)


class Drawing:
    """Draws tensors and adds the small layers that keep their numbers exact.

    Attributes:
        dtypes: the element types to draw from.
        divided: those of them whose tensors are split into sequences.
        arithmetic: those that are added, multiplied and compared.
        chance: the source of all choices.
        turn: a number that is higher by one where recipes come again in turn.
        network: the network that grows.
        rough: the tensors that are known up to a tolerance.
    """

    dtypes = DTYPES
    divided = LISTED
    arithmetic = ARITHMETIC

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.turn = chance.randrange(1 << 16)
        self.network = trt.INetworkDefinition()
        self.rough: set[ITensor] = set()

    # ------------------------------------------------------------------ words

    def choose(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def next_of(self, *choices: Any) -> Any:
        """One of some values, each as often as the others where recipes come in turn."""
        return choices[self.turn % len(choices)]

    def coin(self) -> bool:
        return self.chance.random() < 0.5

    def between(self, least: int, most: int) -> int:
        return self.chance.randint(least, most)

    def pick(self, pool: list[ITensor], wanted: Callable[[ITensor], bool] | None = None) -> ITensor | None:
        """One of the tensors, mostly one of the latest that nobody reads yet, so that the network hangs together."""
        fitting = [tensor for tensor in pool if wanted is None or wanted(tensor)]
        if self.between(0, 3):
            fitting = [tensor for tensor in fitting if not tensor.uses][-LATEST:] or fitting[-LATEST:]
        return self.choose(*fitting) if fitting else None

    def pick_exact(self, pool: list[ITensor], wanted: Callable[[ITensor], bool]) -> ITensor | None:
        return self.pick(pool, lambda tensor: tensor not in self.rough and wanted(tensor))

    def like(self, pool: list[ITensor], tensor: ITensor) -> ITensor:
        """A tensor of the same type, and as rough, perhaps itself."""
        same = self.pick(pool, lambda other: self.are_alike(other, tensor))
        return tensor if same is None else same

    def other(self, pool: list[ITensor], tensor: ITensor) -> ITensor:
        """Another tensor of the same type, exact unless the tensor is rough; a constant if there is none."""
        found = self.pick(pool, lambda other: other is not tensor and self.are_alike(other, tensor))
        return self.constant(tensor.dtype, tuple(tensor.shape)) if found is None else found

    def are_alike(self, a: ITensor, b: ITensor) -> bool:
        return a.dtype is b.dtype and a.shape == b.shape and (a in self.rough) == (b in self.rough)

    def array(self, dtype: trt.DataType, shape: tuple[int, ...], least: int = -3, most: int = 4) -> np.ndarray:
        """Numbers that mostly repeat as little as possible, so that one in the wrong place shows."""
        numbers = range(LEAST.get(dtype, least), MOST.get(dtype, most) + 1)
        size = int(np.prod(shape))
        if self.between(0, 3):
            drawn = [
                number for _ in range(0, size, len(numbers)) for number in self.chance.sample(numbers, len(numbers))
            ]
        else:
            drawn = self.chance.choices(numbers, k=size)
        return np.array(drawn[:size], np.float64).reshape(shape).astype(numpy_type(dtype))

    def constant(self, dtype: trt.DataType, shape: tuple[int, ...], least: int = -3, most: int = 4) -> ITensor:
        return self.fixed(self.array(dtype, shape, least, most))

    def fixed(self, array: Any) -> ITensor:
        array = np.asarray(array, order="C")
        return self.network.add_constant(array.shape, array).get_output(0)

    def filled(self, like: ITensor, number: float) -> ITensor:
        """A number in the type and rank of a tensor."""
        return self.fixed(np.full((1,) * len(like.shape), number, numpy_type(like.dtype)))

    def cast(self, tensor: ITensor, dtype: trt.DataType) -> ITensor:
        return tensor if tensor.dtype is dtype else self.network.add_cast(tensor, dtype).get_output(0)

    def clip(self, tensor: ITensor, least: float, most: float) -> ITensor:
        clip = self.network.add_activation(tensor, Act.CLIP)
        clip.alpha, clip.beta = least, most
        return clip.get_output(0)

    def fold(self, tensor: ITensor, least: int, most: int) -> ITensor:
        """Whole floats from ``least`` to ``most``: remainders, of which clipping would make one number."""
        if least == -most:
            return self.combine(tensor, self.filled(tensor, most + 1), Op.FMOD)
        from_zero = self.combine(tensor, self.filled(tensor, most + 1 - least), Op.MOD)
        return self.combine(from_zero, self.filled(tensor, least), Op.SUM) if least else from_zero

    def tame(self, tensor: ITensor) -> ITensor:
        """Keep floats small and whole, so that all arithmetic on them is exact."""
        return self.fold(tensor, -BOUND, BOUND) if tensor.dtype in FLOATS else tensor

    def small(self, tensor: ITensor, dtype: trt.DataType = trt.float32) -> ITensor:
        """The tensor with numbers from -4 to 4, or what of that the type holds, in a type."""
        real = tensor if tensor.dtype in FLOATS else self.cast(tensor, trt.float32)
        return self.cast(self.fold(real, LEAST.get(dtype, -4), MOST.get(dtype, 4)), dtype)

    def among(self, tensor: ITensor, dtypes: list[trt.DataType]) -> ITensor:
        """The tensor, or the same in one of some types if it is of none of them."""
        return tensor if tensor.dtype in dtypes else self.small(tensor, self.choose(*dtypes))

    def real(self, tensor: ITensor) -> ITensor:
        """Small floats."""
        return self.small(tensor, tensor.dtype if tensor.dtype in FLOATS else self.choose(*FLOATS))

    def reshape(self, tensor: ITensor, *shape: int) -> ITensor:
        shuffle = self.network.add_shuffle(tensor)
        shuffle.reshape_dims = shape
        return shuffle.get_output(0)

    def image(self, tensor: ITensor) -> ITensor:
        """Its numbers, small floats, with four axes: [1, 1, rows, n]."""
        rows = self.choose(*(number for number in (1, 2, 3) if self.size(tensor) % number == 0))
        return self.reshape(self.real(tensor), 1, 1, rows, self.size(tensor) // rows)

    def matrix(self, tensor: ITensor) -> ITensor:
        image = self.image(tensor)
        return self.reshape(image, *image.shape[2:])

    def concatenated(self, tensors: list[ITensor], axis: int) -> ITensor:
        layer = self.network.add_concatenation(tensors)
        layer.axis = axis
        return layer.get_output(0)

    def joined(self, *tensors: ITensor) -> ITensor:
        """The elements of some tensors of one type."""
        return self.concatenated([self.reshape(tensor, self.size(tensor)) for tensor in tensors], 0)

    def part(self, tensor: ITensor, axis: int, start: int, length: int) -> ITensor:
        """Some neighbours along an axis."""
        starts, sizes = [0] * len(tensor.shape), list(tensor.shape)
        starts[axis], sizes[axis] = start, length
        return self.network.add_slice(tensor, starts, sizes, [1] * len(sizes)).get_output(0)

    def places(self, length: int, number: int, are_distinct: bool) -> list[int]:
        """Positions along an axis."""
        if are_distinct:
            return self.chance.sample(range(length), number)
        return [self.between(0, length - 1) for _ in range(number)]

    def size(self, tensor: ITensor) -> int:
        return int(np.prod(tuple(tensor.shape)))

    def axis(self, tensor: ITensor) -> int:
        return self.between(0, len(tensor.shape) - 1)

    def with_axis(self, tensor: ITensor) -> ITensor:
        return tensor if len(tensor.shape) else self.reshape(tensor, 1)

    def with_axes(self, tensor: ITensor) -> ITensor:
        """The tensor, or its elements with two axes."""
        if len(tensor.shape) > 1:
            return tensor
        columns = self.choose(*(number for number in (2, 3, 1) if self.size(tensor) % number == 0))
        return self.reshape(tensor, *self.choose((-1, columns), (columns, -1)))

    def combine(self, a: ITensor, b: ITensor, op: trt.ElementWiseOperation) -> ITensor:
        return self.network.add_elementwise(a, b, op).get_output(0)

    def one(self, tensor: ITensor, like: ITensor) -> ITensor:
        """The sum of a tensor, or its largest number, in the type and rank of another one."""
        flat = self.reshape(self.among(tensor, NUMBERS), self.size(tensor))
        op = self.choose(*[trt.ReduceOperation.SUM] * 3, trt.ReduceOperation.MAX)
        number = self.network.add_reduce(flat, op, 1, True).get_output(0)
        return self.reshape(self.small(number, like.dtype), *(1,) * len(like.shape))

    def stir(self, tensor: ITensor, other: ITensor) -> ITensor:
        """A tensor of the type of the first that depends on both."""
        if tensor.dtype in self.arithmetic:
            op = self.choose(Op.SUM, Op.SUB, Op.SUM, Op.SUB, Op.MAX)
            return self.tame(self.combine(tensor, self.one(other, tensor), op))
        if tensor.dtype is trt.bool:
            return self.combine(tensor, self.one(other, tensor), Op.XOR)
        wide = self.cast(tensor, trt.float32)
        return self.small(self.combine(wide, self.one(other, wide), Op.SUM), tensor.dtype)

    # ------------------------------------------------------------------ rough tensors

    def soft(self, tensor: ITensor) -> ITensor:
        """The tensor with numbers from -1 to 1, quarters if it is exact."""
        if tensor in self.rough:
            return tensor
        small = self.real(tensor)
        return self.combine(small, self.filled(small, 1 / 4), Op.PROD)

    def roughen(self, tensor: ITensor) -> ITensor:
        """A result that is rounded, small enough for what is made of it."""
        inside = self.clip(tensor, -1, 1)
        made = self.combine(inside, self.filled(inside, SHRINK), Op.PROD)
        self.rough.add(made)
        return made

    def blend(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Mix a rough tensor with another one."""
        alike = self.pick(
            pool, lambda other: other is not tensor and (other.dtype, other.shape) == (tensor.dtype, tensor.shape)
        )
        other = self.soft(self.constant(tensor.dtype, tuple(tensor.shape)) if alike is None else alike)
        return self.roughen(
            self.combine(tensor, other, self.choose(Op.SUM, Op.SUB, Op.SUM, Op.SUB, Op.PROD, Op.MAX, Op.MIN))
        )
