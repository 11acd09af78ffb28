"""Random networks of lengths that only a run knows: their open axes are what masks choose of axes of fixed lengths.

All numbers are whole and small, and what rounds is rounded down to whole numbers, so that results are exact.
"""

from collections.abc import Callable
from random import Random

import numpy as np

import netloop as trt
from netloop.compiler.host.frame import HostFrame
from netloop.compiler.host.numpy_layers import NumpyLayers
from netloop.model.graph.tensor import ITensor
from netloop.model.nest import LayerStep, Step
from tests.support.open_layers import Dims, is_certain
from tests.support.saved_networks import Saved, SavedGrower
from tests.support.tensor_drawing import Op

LONGEST = 6
"""The length of the axes of which masks choose."""
COUNTS = {"n": (0, 1, 2, 4, 5), "m": (1, 2, 3, 5), "k": (2, 4)}
"""The lengths of open axes in the calls."""
CALLS = 8
CHOSEN = "chosen"
"""The beginning of the names of the layers that ``OnlyChosen`` computes."""

Recipe = Callable[["UnknownLengths", ITensor, list[ITensor]], ITensor | None]
RECIPES: list[Recipe] = []


def draws(recipe: Recipe) -> Recipe:
    RECIPES.append(recipe)
    return recipe


def poisoned(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array up to a shape, with what would spoil any result behind its ends."""
    if value.shape == shape:
        return value
    poison: tuple[float, ...] = {"f": (np.nan, np.inf, -np.inf), "b": (True,)}.get(value.dtype.kind, ())
    if not poison:
        limits = np.iinfo(value.dtype)
        poison = limits.max, 1, limits.min
    result = np.resize(np.array(poison, value.dtype), shape)
    result[tuple(map(slice, value.shape))] = value
    return result


class OnlyChosen(NumpyLayers):
    """Has numpy compute the elements that masks choose, and nothing else, so that programs read padded elements."""

    def compute(self, step: Step, frame: HostFrame) -> bool:
        is_chosen = isinstance(step, LayerStep) and step.layer.name.startswith(CHOSEN)
        return is_chosen and super().compute(step, frame)


def network_of_unknown_lengths(number: int) -> Saved:
    """The random network of a number, with the inputs of some calls."""
    return UnknownLengths(Random(number)).grow(number)


def network_of_input_lengths(number: int) -> Saved:
    """The random network of a number whose open lengths are those of its inputs, with the inputs of some calls."""
    return InputLengths(Random(number)).grow(number)


class UnknownLengths(SavedGrower):
    """Grows a network of lengths that only a run knows.

    Attributes:
        places: the positions of the chosen elements, for each open length.
    """

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.places: dict[str, ITensor] = {}

    def grow(self, number: int) -> Saved:
        saved = super().grow(number)
        return Saved(number, saved.network, [self.call() for _ in range(CALLS)])

    def input(self, dtype: trt.DataType, dims: Dims, name: str = "x") -> ITensor:
        shape = tuple(length if isinstance(length, int) else LONGEST for length in dims)
        tensor = super().input(dtype, shape, name)
        for axis, length in enumerate(dims):
            if isinstance(length, str):
                layer = self.network.add_gather(tensor, self.chosen(length), axis)
                layer.name = f"{CHOSEN} {tensor.name} along {axis}"
                tensor = layer.get_output(0)
        return self.of(dims, tensor)

    def chosen(self, length: str) -> ITensor:
        """The positions at which the mask of an open length is true."""
        if length not in self.places:
            mask = self.network.add_input(f"mask of {length}", trt.bool, (LONGEST,))
            layer = self.network.add_shuffle(self.network.add_non_zero(mask).get_output(0))
            layer.reshape_dims, layer.name = (-1,), f"{CHOSEN} by {length}"
            self.places[length] = layer.get_output(0)
        return self.places[length]

    def call(self) -> dict[str, np.ndarray]:
        arrays = super().call()
        for length in self.places:
            mask = np.zeros(LONGEST, np.bool_)
            mask[self.chance.sample(range(LONGEST), self.choose(*COUNTS[length]))] = True
            arrays[f"mask of {length}"] = mask
        return arrays

    def layer(self, pool: list[ITensor]) -> ITensor:
        result = self.choose(*RECIPES)(self, self.any(pool), pool) if self.coin() else None
        return super().layer(pool) if result is None else result

    def output(self, loop: trt.ILoop, tensor: ITensor, rows: int | str | None) -> ITensor:
        """The rows of all iterations; of none, the reference knows no open lengths."""
        runs = rows in ("m", "k") or (isinstance(rows, int) and rows > 0)
        axes = tuple(axis for axis, length in enumerate(self.dims[tensor]) if isinstance(length, str))
        return super().output(loop, self.summed(tensor, axes) if axes and not runs else tensor, rows)

    def rounded(self, tensor: ITensor, factor: float) -> ITensor:
        """A tensor multiplied and rounded down to whole numbers, so that neither halves nor thirds are at an edge."""
        dims = self.dims[tensor]
        scaled = self.with_number(self.with_number(tensor, factor, Op.PROD), 0.28, Op.SUM)
        layer = self.network.add_unary(scaled, trt.UnaryOperation.FLOOR)
        return self.bounded(self.of(dims, layer.get_output(0)))

    def small(self, tensor: ITensor) -> ITensor:
        return self.clipped(self.converted(tensor, trt.float32), -2, 2)

    def any_axis(self, tensor: ITensor) -> int | None:
        return self.axis_of(tensor, lambda length: True)

    def filled_axis(self, tensor: ITensor) -> int | None:
        """An axis that has an element in each call."""
        return self.axis_of(tensor, lambda length: is_certain(length) or length in ("m", "k"))

    # ------------------------------------------------------------------ along axes

    @draws
    def shares(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.any_axis(tensor)
        if axis is None:
            return None
        layer = self.network.add_softmax(self.small(tensor))
        layer.axes = 1 << axis
        return self.rounded(self.of(self.dims[tensor], layer.get_output(0)), 8)

    @draws
    def mean(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.filled_axis(tensor)
        if axis is None:
            return None
        layer = self.network.add_reduce(self.summable(tensor), trt.ReduceOperation.AVG, 1 << axis, False)
        result = self.of(self.without(tensor, axis), layer.get_output(0))
        return self.rounded(result, 1) if result.dtype is trt.float32 else self.bounded(result)

    @draws
    def extreme(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.any_axis(tensor)
        if axis is None:
            return None
        operation = self.choose(trt.ReduceOperation.MAX, trt.ReduceOperation.MIN)
        layer = self.network.add_reduce(tensor, operation, 1 << axis, False)
        result = self.of(self.without(tensor, axis), layer.get_output(0))
        return result if tensor.dtype is trt.bool else self.bounded(result)

    @draws
    def running(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.any_axis(tensor)
        if axis is None:
            return None
        x, kind = self.summable(tensor), trt.CumulativeOperation.SUM
        layer = self.network.add_cumulative(x, self.fixed(np.int32(axis)), kind, self.coin(), self.coin())
        return self.bounded(self.of(self.dims[tensor], layer.get_output(0)))

    @draws
    def normal(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axes = sum(1 << axis for axis in range(len(self.dims[tensor])) if self.coin())
        if not axes:
            return None
        x, ones = self.small(tensor), (1,) * len(self.dims[tensor])
        scale, bias = self.fixed(np.ones(ones, np.float32)), self.fixed(np.zeros(ones, np.float32))
        layer = self.network.add_normalization_v2(x, scale, bias, axes)
        return self.rounded(self.of(self.dims[tensor], layer.get_output(0)), 2)

    # ------------------------------------------------------------------ products

    @draws
    def contracted(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        dims = self.dims[tensor]
        if len(dims) != 2:
            return None
        x, (a, b) = self.converted(tensor, trt.float32), dims
        equation, result = self.choose(
            ("ab,ab->b", (b,)), ("ab,cb->ac", (a, a)), ("ab,ac->cb", (b, b)), ("ab,ab->", ())
        )
        return self.bounded(self.of(result, self.network.add_einsum([x, x], equation).get_output(0)))

    @draws
    def crossed(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """The products of the elements of two vectors."""
        vectors = [other for other in pool if len(self.dims[other]) == 1 and other.dtype is not trt.bool]
        if len(vectors) < 2:
            return None
        a, b = (self.converted(self.choose(*vectors), trt.float32) for _ in range(2))
        layer = self.network.add_einsum([a, b], "a,b->ab")
        return self.bounded(self.of((*self.dims[a], *self.dims[b]), layer.get_output(0)))

    @draws
    def attention(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """Of rows to the same rows."""
        dims = self.dims[tensor]
        if len(dims) != 2 or not is_certain(dims[1]):
            return None
        zeros = self.fixed(np.int32([0, 1]))
        x = self.network.add_unsqueeze(self.small(tensor), zeros).get_output(0)
        view = self.network.add_attention_v2(
            x, x, x, self.choose(*trt.AttentionNormalizationOp), self.choose(*trt.CausalMaskKind)
        )
        layer = self.network.add_squeeze(view.get_output(0), zeros)
        return self.rounded(self.of(dims, layer.get_output(0)), 1)

    # ------------------------------------------------------------------ by position

    @draws
    def side_by_side(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.any_axis(tensor)
        if axis is None:
            return None
        dims, other = self.dims[tensor], self.alike(tensor, pool)
        length = dims[axis]
        both = 2 * length if isinstance(length, int) else f"{length}+{length}"
        return self.of((*dims[:axis], both, *dims[axis + 1 :]), self.concatenated([tensor, other], axis))

    @draws
    def last_one(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        axis = self.filled_axis(tensor)
        if axis is None:
            return None
        layer = self.network.add_gather(tensor, self.fixed(np.int32(self.choose(0, -1))), axis)
        return self.of(self.without(tensor, axis), layer.get_output(0))

    @draws
    def scattered(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """All elements of an axis added to its first or last one."""
        axis = self.filled_axis(tensor)
        if axis is None:
            return None
        x = self.summable(tensor)
        zeros = self.with_number(self.converted(x, trt.int32), 0, Op.PROD)
        layer = self.network.add_scatter(
            x, self.with_number(zeros, self.choose(0, 1), Op.SUB), x, trt.ScatterMode.ELEMENT
        )
        layer.axis, layer.reduction = axis, trt.ReduceOperation.SUM
        return self.bounded(self.of(self.dims[x], layer.get_output(0)))

    @draws
    def flat(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """A sum of all elements in a row."""
        if not self.dims[tensor]:
            return None
        return self.summed(self.of(("?",), self.reshape(tensor, -1)), (0,))


SizeRecipe = Callable[["InputLengths", ITensor, list[ITensor]], ITensor | None]
OF_SIZES: list[SizeRecipe] = []


def sizes(recipe: SizeRecipe) -> SizeRecipe:
    OF_SIZES.append(recipe)
    return recipe


class InputLengths(UnknownLengths):
    """Grows a network whose open lengths are those of its inputs, and which computes sizes of them."""

    input, call = SavedGrower.input, SavedGrower.call

    def layer(self, pool: list[ITensor]) -> ITensor:
        result = self.choose(*OF_SIZES)(self, self.any(pool), pool) if self.choose(True, False, False) else None
        return super().layer(pool) if result is None else result

    def length_of(self, tensor: ITensor, axis: int) -> ITensor:
        """The length of an axis, as a list of one number."""
        numbers = self.network.add_shape(tensor).get_output(0)
        return self.network.add_gather(numbers, self.fixed(np.int32([axis])), 0).get_output(0)

    @sizes
    def positions(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """The numbers of the elements of an axis, or from its length on."""
        axis = self.any_axis(tensor)
        if axis is None:
            return None
        layer = self.network.add_fill((-1,), trt.FillOperation.LINSPACE, trt.int64)
        length = self.length_of(tensor, axis)
        layer.set_input(0, length)
        alpha = self.reshape(length) if self.coin() else self.fixed(np.int64(0))
        layer.set_input(1, alpha)
        layer.set_input(2, self.fixed(np.int64([1])))
        result = self.converted(self.of((self.dims[tensor][axis],), layer.get_output(0)), trt.float32)
        return self.bounded(result)

    @sizes
    def rows_of_a_table(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """As many numbers of a table as an axis has elements, from the first one on or from its length on."""
        axis = self.any_axis(tensor)
        if axis is None:
            return None
        # room for a length that was joined to itself again and again: past the end of a table is an error
        table = self.fixed(np.float32(np.arange(1 << 8) % 5 - 2))
        layer = self.network.add_slice(table, (0,), (1,), (1,))
        length = self.length_of(tensor, axis)
        layer.set_input(2, length)
        if self.coin():
            layer.set_input(1, length)
        return self.of((self.dims[tensor][axis],), layer.get_output(0))

    @sizes
    def repeated(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """A number repeated along an axis."""
        axis = self.any_axis(tensor)
        if axis is None:
            return None
        layer = self.network.add_slice(self.fixed(np.float32([2])), (0,), (1,), (0,))
        layer.set_input(2, self.length_of(tensor, axis))
        return self.of((self.dims[tensor][axis],), layer.get_output(0))

    @sizes
    def alike_in_shape(self, tensor: ITensor, pool: list[ITensor]) -> ITensor | None:
        """A reshape to the computed shape that the tensor has."""
        if not self.dims[tensor]:
            return None
        layer = self.network.add_shuffle(tensor)
        layer.zero_is_placeholder = False
        lengths = [self.length_of(tensor, axis) for axis in range(len(self.dims[tensor]))]
        layer.set_input(1, self.network.add_concatenation(lengths).get_output(0))
        return self.of(self.dims[tensor], layer.get_output(0))
