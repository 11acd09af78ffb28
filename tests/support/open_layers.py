"""Layers of random networks whose lengths only a call knows.

``Drawing`` knows each length while it draws. Here a tensor has *dims*: a number for a length that is the same in all
calls, and a letter or the name of an input for one that is not. All numbers are whole and small, so that every runtime
computes them exactly, in any order and in 32 bits.
"""

from collections.abc import Callable
from random import Random

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import numpy_type
from tests.support.tensor_drawing import NUMBERS, Drawing, Op

Dims = tuple[int | str, ...]
Recipe = Callable[["OpenLayers", ITensor, list[ITensor]], ITensor | None]
Reading = tuple[ITensor, int, ITensor]

ROWS = 7
"""The length of axes that are read at the number of an iteration: larger than any trip count, also after the last one.
"""
MOST = {trt.int8: 10, trt.uint8: 10}
"""The largest numbers of types in which products of larger ones would not fit; of others, it is ``LARGE``."""
LARGE = 50
SUMMED = [trt.float32, trt.int32, trt.int64]
"""The types whose sums and matrix products other runtimes compute."""
MOST_AXES = 3

RECIPES: list[Recipe] = []
READS: list[Recipe] = []
"""Those that read at the number of an iteration, and are drawn more often in loops."""


def draws(recipe: Recipe) -> Recipe:
    RECIPES.append(recipe)
    return recipe


def reads(recipe: Recipe) -> Recipe:
    READS.append(recipe)
    return recipe


def is_certain(length: int | str) -> bool:
    """Whether an axis has elements in all calls, and always as many."""
    return isinstance(length, int) and length > 0


class OpenLayers(Drawing):
    """Adds layers to a network by chance. A recipe returns None where its layer does not fit the tensor.

    Attributes:
        dims: the lengths of each tensor.
        shared: constants that are used again and again, by their type and number.
        counters: the numbers of the iterations of the loops around, from 0 or 1, each with the length, besides ROWS,
            that they stay below until the loop ends.
    """

    dtypes = [trt.float32, trt.int32, trt.int64, trt.int8, trt.uint8, trt.bool]

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.dims: dict[ITensor, Dims] = {}
        self.shared: dict[tuple[trt.DataType, float, int], ITensor] = {}
        self.counters: list[tuple[ITensor, int | str]] = []

    # ------------------------------------------------------------------ words

    def of(self, dims: Dims, tensor: ITensor) -> ITensor:
        """The tensor, of which these are the lengths."""
        self.dims[tensor] = dims
        return tensor

    def layer(self, pool: list[ITensor]) -> ITensor:
        """The output of some layer."""
        while True:
            recipes = RECIPES if self.between(0, 2) else READS
            result = self.choose(*recipes)(self, self.any(pool), pool)
            if result is not None:
                return result

    def any(self, pool: list[ITensor]) -> ITensor:
        """One of the tensors, mostly one that is open, or one of the latest."""
        open_ones = [tensor for tensor in pool if any(isinstance(length, str) for length in self.dims[tensor])]
        return self.choose(*(self.choose(pool, pool[-6:], open_ones) or pool))

    def number(self, dtype: trt.DataType, value: float, rank: int = 0) -> ITensor:
        """A number as a constant, mostly one that something else reads too."""
        key = dtype, value, rank
        if key not in self.shared or not self.between(0, 3):
            self.shared[key] = self.of((1,) * rank, self.fixed(np.full((1,) * rank, value, numpy_type(dtype))))
        return self.shared[key]

    def ranked(self, tensor: ITensor, rank: int) -> ITensor:
        """A number with some axes."""
        return self.of((1,) * rank, self.reshape(tensor, *(1,) * rank)) if rank else tensor

    def with_number(self, tensor: ITensor, value: float, op: trt.ElementWiseOperation) -> ITensor:
        """A tensor combined with a constant number."""
        dims = self.dims[tensor]
        return self.of(dims, self.combine(tensor, self.number(tensor.dtype, value, len(dims)), op))

    def are_alike(self, a: ITensor, b: ITensor) -> bool:
        return a.dtype is b.dtype and self.dims[a] == self.dims[b]

    def alike(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Another tensor of the same type, or itself."""
        others = [other for other in pool if other is not tensor and self.are_alike(other, tensor)]
        return self.choose(*others) if others else tensor

    def bounded(self, tensor: ITensor) -> ITensor:
        """A tensor whose numbers are small."""
        most = MOST.get(tensor.dtype, LARGE)
        return self.clipped(tensor, 0 if tensor.dtype is trt.uint8 else -most, most)

    def clipped(self, tensor: ITensor, least: int, most: int) -> ITensor:
        if tensor.dtype is trt.float32:
            return self.of(self.dims[tensor], self.clip(tensor, least, most))
        return self.with_number(self.with_number(tensor, most, Op.MIN), least, Op.MAX)

    def converted(self, tensor: ITensor, dtype: trt.DataType) -> ITensor:
        """Small numbers in another type."""
        if tensor.dtype is dtype:
            return tensor
        if dtype in MOST and tensor.dtype is not trt.bool:
            tensor = self.clipped(tensor, 0 if trt.uint8 in (dtype, tensor.dtype) else -MOST[dtype], MOST[dtype])
        return self.of(self.dims[tensor], self.cast(tensor, dtype))

    def summable(self, tensor: ITensor) -> ITensor:
        return tensor if tensor.dtype in SUMMED else self.converted(tensor, self.choose(*SUMMED))

    def summed(self, tensor: ITensor, axes: tuple[int, ...], keep: bool = False) -> ITensor:
        """Sums along some axes."""
        dims, mask = self.dims[tensor], sum(1 << axis for axis in axes)
        rest = [1 if axis in axes else length for axis, length in enumerate(dims) if keep or axis not in axes]
        layer = self.network.add_reduce(self.summable(tensor), trt.ReduceOperation.SUM, mask, keep)
        return self.bounded(self.of(tuple(rest), layer.get_output(0)))

    def total(self, tensor: ITensor, dtype: trt.DataType) -> ITensor:
        """The sum of all elements in a type."""
        axes = tuple(range(len(self.dims[tensor])))
        number = self.summed(tensor, axes) if axes else self.summable(tensor)
        if dtype is trt.bool:
            return self.with_number(number, 0, Op.GREATER)
        return self.converted(number, dtype)

    def stirred(self, tensor: ITensor, other: ITensor) -> ITensor:
        """A tensor of the same type that depends on both."""
        number = self.ranked(self.total(other, tensor.dtype), len(self.dims[tensor]))
        op = Op.XOR if tensor.dtype is trt.bool else Op.SUM
        result = self.of(self.dims[tensor], self.combine(tensor, number, op))
        return result if tensor.dtype is trt.bool else self.bounded(result)

    def length(self, tensor: ITensor, axis: int) -> ITensor:
        """The length of an axis, int64[]."""
        shape = self.network.add_shape(tensor).get_output(0)
        index = self.fixed(np.int32(axis)) if self.coin() else self.fixed(np.int64(axis))
        return self.of((), self.network.add_gather(shape, index, 0).get_output(0))

    def axis_of(self, tensor: ITensor, is_wanted: Callable[[int | str], bool]) -> int | None:
        axes = [axis for axis, length in enumerate(self.dims[tensor]) if is_wanted(length)]
        return self.choose(*axes) if axes else None

    def without(self, tensor: ITensor, axis: int) -> Dims:
        """The lengths of all axes but one."""
        dims = self.dims[tensor]
        return dims[:axis] + dims[axis + 1 :]

    def squeezed(self, tensor: ITensor, axis: int) -> ITensor:
        """The tensor without an axis of length 1, by one of the layers that do so."""
        dims = self.without(tensor, axis)
        if self.coin():
            return self.of(dims, self.network.add_squeeze(tensor, self.fixed(np.int32([axis]))).get_output(0))
        if sum(isinstance(length, str) for length in dims) < 2:
            lengths = [length if isinstance(length, int) else -1 for length in dims]
            return self.of(dims, self.reshape(tensor, *lengths))
        return self.summed(tensor, (axis,))

    # ------------------------------------------------------------------ numbers

    @draws
    def mix(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        other = self.alike(tensor, pool)
        ops = [Op.SUM, Op.PROD, Op.MAX, Op.MIN, *([] if tensor.dtype is trt.uint8 else [Op.SUB])]
        op = self.choose(*([Op.AND, Op.OR, Op.XOR] if tensor.dtype is trt.bool else ops))
        result = self.of(self.dims[tensor], self.combine(tensor, other, op))
        return self.bounded(result) if op in (Op.SUM, Op.SUB, Op.PROD) else result

    @draws
    def stir(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.stirred(tensor, self.any(pool))

    @draws
    def compare(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        if tensor.dtype is trt.bool:
            return None
        op = self.choose(Op.LESS, Op.GREATER, Op.EQUAL)
        if self.coin():
            return self.with_number(tensor, self.choose(0, 1), op)
        return self.of(self.dims[tensor], self.combine(tensor, self.alike(tensor, pool), op))

    @draws
    def select(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        other = self.alike(tensor, pool)
        flags = [flag for flag in pool if flag.dtype is trt.bool and self.dims[flag] == self.dims[tensor]]
        flag = self.choose(*flags) if flags else self.combine(tensor, other, Op.EQUAL)
        return self.of(self.dims[tensor], self.network.add_select(flag, other, tensor).get_output(0))

    @draws
    def convert(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.converted(tensor, self.choose(*self.dtypes))

    @draws
    def negate(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        is_flag = tensor.dtype is trt.bool
        operand = tensor if is_flag or tensor.dtype in NUMBERS else self.converted(tensor, trt.int32)
        kind = trt.UnaryOperation.NOT if is_flag else self.choose(trt.UnaryOperation.NEG, trt.UnaryOperation.ABS)
        return self.of(self.dims[tensor], self.network.add_unary(operand, kind).get_output(0))

    # ------------------------------------------------------------------ sums and products

    @draws
    def reduce(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.axis_of(tensor, lambda length: True)
        return None if axis is None else self.summed(tensor, (axis,), self.coin())

    @draws
    def largest(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.axis_of(tensor, is_certain)
        if axis is None:
            return None
        op = self.choose(trt.ReduceOperation.MAX, trt.ReduceOperation.MIN)
        layer = self.network.add_reduce(self.summable(tensor), op, 1 << axis, False)
        return self.of(self.without(tensor, axis), layer.get_output(0))

    @draws
    def multiply(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """The product with a constant matrix, or of a matrix with itself, whose inner axis may be empty."""
        dims = self.dims[tensor]
        if len(dims) != 2:
            return None
        x, (rows, columns), none = self.converted(tensor, trt.float32), dims, trt.MatrixOperation.NONE
        if isinstance(columns, int) and self.coin():
            weights = self.constant(trt.float32, (columns, 2))
            return self.bounded(
                self.of((rows, 2), self.network.add_matrix_multiply(x, none, weights, none).get_output(0))
            )
        layer = self.network.add_matrix_multiply(x, trt.MatrixOperation.TRANSPOSE, x, none)
        return self.bounded(self.of((columns, columns), layer.get_output(0)))

    # ------------------------------------------------------------------ choosing

    @draws
    def gather(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.axis_of(tensor, is_certain)
        if axis is None:
            return None
        dims, places = self.dims[tensor], self.choose((), (1,), (2,))
        indices = self.constant(self.choose(trt.int32, trt.int64), places, 0, int(dims[axis]) - 1)
        result = self.network.add_gather(tensor, indices, axis).get_output(0)
        return self.of(dims[:axis] + places + dims[axis + 1 :], result)

    def reading(self, pool: list[ITensor], is_wanted: Callable[[int | str], bool]) -> Reading | None:
        """A tensor, one of its axes, and the number of an iteration, which is smaller than the length."""
        inside = [(counter, bound) for counter, bound in self.counters if counter in pool]
        if not inside:
            return None
        counter, bound = self.choose(*inside)
        axes = [(tensor, axis) for tensor in pool for axis, length in enumerate(self.dims[tensor])
                if length in (ROWS, bound) and is_wanted(length)]  # fmt: skip
        axes = [(tensor, axis) for tensor, axis in axes if self.dims[tensor][axis] == bound and self.coin()] or axes
        if not axes:
            return None
        return *self.choose(*axes), self.converted(counter, self.choose(trt.int32, trt.int64))

    @reads
    def read_by_gather(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """The slice at the number of an iteration."""
        place = self.reading(pool, lambda length: True)
        return None if place is None else self.read(*place)

    def read(self, tensor: ITensor, axis: int, index: ITensor) -> ITensor:
        """A slice of a tensor, by a number, or by a list of one."""
        if self.coin():
            return self.of(self.without(tensor, axis), self.network.add_gather(tensor, index, axis).get_output(0))
        part = self.network.add_gather(tensor, self.reshape(index, 1), axis).get_output(0)
        dims = self.dims[tensor]
        return self.squeezed(self.of((*dims[:axis], 1, *dims[axis + 1 :]), part), axis)

    @reads
    def read_by_slice(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """The slice at the number of an iteration, cut out from a computed start on."""
        place = self.reading(pool, lambda length: length in (ROWS, "m"))
        if place is None:
            return None
        tensor, axis, index = place
        dims = self.dims[tensor]
        part = self.cut(tensor, axis, index, self.number(index.dtype, 1))
        return self.squeezed(self.of((*dims[:axis], 1, *dims[axis + 1 :]), part), axis)

    @reads
    def read_rest(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """The sum of what remains of an axis from the number of an iteration on."""
        place = self.reading(pool, lambda length: length == ROWS)
        if place is None:
            return None
        tensor, axis, index = place
        size = self.combine(self.number(index.dtype, ROWS), index, Op.SUB)
        rest, dims = self.without(tensor, axis), self.dims[tensor]
        lengths = [length for length in rest if isinstance(length, int)]
        if len(lengths) < len(rest):
            return None
        part = self.summed(self.of(dims, self.cut(tensor, axis, index, size)), (axis,))
        return self.of(rest, self.reshape(part, *lengths))  # the type of a part of a computed size has no lengths

    def cut(self, tensor: ITensor, axis: int, start: ITensor, size: ITensor) -> ITensor:
        """A part of an axis, of a computed start and size."""
        rank, zero = len(self.dims[tensor]), self.number(start.dtype, 0)
        layer = self.network.add_slice(tensor, [0] * rank, [1] * rank, [1] * rank)
        layer.set_input(1, self.listed([start if place == axis else zero for place in range(rank)]))
        sizes = [self.cast(self.length(tensor, place), start.dtype) for place in range(rank)]
        layer.set_input(2, self.listed([size if place == axis else sizes[place] for place in range(rank)]))
        return layer.get_output(0)

    def listed(self, numbers: list[ITensor]) -> ITensor:
        """Numbers of one type as a list."""
        return self.of((len(numbers),), self.concatenated([self.reshape(number, 1) for number in numbers], 0))

    @draws
    def top(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.axis_of(tensor, lambda length: is_certain(length) or length == "m")
        if axis is None:
            return None
        dims = self.dims[tensor]
        most = self.between(1, dims[axis]) if isinstance(dims[axis], int) else 1
        layer = self.network.add_topk(self.summable(tensor), self.choose(*trt.TopKOperation), most, 1 << axis)
        return self.of((*dims[:axis], most, *dims[axis + 1 :]), layer.get_output(self.between(0, 1)))

    @draws
    def suppress(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """How many of some boxes far from each other have scores above a half, and the sum of their places."""
        number = self.ranked(self.total(tensor, trt.float32), 3)
        scores = self.of((1, 3, 1), self.combine(self.constant(trt.float32, (1, 3, 1)), number, Op.SUM))
        corners = 10 * np.arange(3, dtype=np.float32)[:, None] + np.float32([0, 0, 4, 4])
        layer = self.network.add_nms(self.fixed(corners[None]), scores, self.fixed(np.int32(self.between(1, 3))))
        layer.set_input(3, self.fixed(np.float32(0.5)))
        layer.set_input(4, self.fixed(np.float32(0.5)))
        if self.coin():
            return self.of((), layer.get_output(1))
        return self.summed(self.of(("?", 3), layer.get_output(0)), (0,))

    @draws
    def find(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """The sums of the places of what is not zero."""
        rank = len(self.dims[tensor])
        if not rank:
            return None
        places = self.network.add_non_zero(self.converted(tensor, trt.bool)).get_output(0)
        return self.summed(self.of((rank, "?"), places), (1,))

    # ------------------------------------------------------------------ shapes

    @draws
    def transpose(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        dims, order = self.dims[tensor], self.chance.sample(range(len(self.dims[tensor])), len(self.dims[tensor]))
        layer = self.network.add_shuffle(tensor)
        layer.first_transpose = order
        return self.of(tuple(dims[axis] for axis in order), layer.get_output(0))

    @draws
    def unsqueeze(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        dims = self.dims[tensor]
        if len(dims) >= MOST_AXES:
            return None
        axis = self.between(0, len(dims))
        layer = self.network.add_unsqueeze(tensor, self.fixed(np.int32([axis])))
        return self.of((*dims[:axis], 1, *dims[axis:]), layer.get_output(0))

    @draws
    def double(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """The tensor and another one, side by side; along an open axis, their sum."""
        axis = self.axis_of(tensor, lambda length: True)
        if axis is None:
            return None
        dims, other = self.dims[tensor], self.alike(tensor, pool)
        both = self.concatenated([tensor, other], axis)
        if isinstance(dims[axis], int):
            return self.of((*dims[:axis], 2 * int(dims[axis]), *dims[axis + 1 :]), both)
        return self.summed(self.of((*dims[:axis], "?", *dims[axis + 1 :]), both), (axis,))

    @draws
    def measure(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """All lengths, or the product of one with another number."""
        dims = self.dims[tensor]
        if not dims:
            return None
        if self.coin():
            return self.of((len(dims),), self.network.add_shape(tensor).get_output(0))
        length = self.length(tensor, self.between(0, len(dims) - 1))
        return self.bounded(self.of((), self.combine(length, self.total(self.choose(*pool), trt.int64), Op.PROD)))

    @draws
    def fill(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """0, 2, 4 ... or all of one number, as many as an axis has elements."""
        axis = self.axis_of(tensor, lambda length: True)
        if axis is None:
            return None
        layer = self.network.add_fill((1,), trt.FillOperation.LINSPACE, self.choose(*SUMMED))
        layer.set_input(0, self.reshape(self.length(tensor, axis), 1))
        layer.alpha, layer.beta = self.between(0, 1), self.choose(0, 2)
        return self.of((self.dims[tensor][axis],), layer.get_output(0))

    @draws
    def flatten(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """The same in the shape of another tensor that has as many elements, which only the call knows."""
        dims = self.dims[tensor]
        if len(dims) < 2:
            return None
        shape = self.network.add_shape(tensor).get_output(0)
        layer = self.network.add_shuffle(tensor)
        layer.zero_is_placeholder = False
        order = self.chance.sample(range(len(dims)), len(dims))
        layer.set_input(1, self.network.add_gather(shape, self.fixed(np.int64(order)), 0).get_output(0))
        return self.of(tuple(dims[axis] for axis in order), layer.get_output(0))
