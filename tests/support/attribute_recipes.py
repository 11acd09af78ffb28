"""Recipes that draw the attributes of layers from their whole range, many of them beyond what other formats can say.

Those of ``layer_specs`` draw what ONNX and OpenVINO can express too, and both have to agree with the reference there.
"""

from itertools import product

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import numpy_type
from tests.support.layer_specs import Kinds, Recipe, Unary
from tests.support.tensor_drawing import ARITHMETIC, FLOATS, LISTED, NUMBERS, REDUCIBLE, Act, Op

RANGES: list[Recipe] = []
"""The recipes of this module."""

Pool = list[ITensor]
INTEGERS = [dtype for dtype in ARITHMETIC if dtype not in FLOATS]
UNSIGNED = [trt.uint8, trt.uint16, trt.uint32, trt.uint64]
REDUCTIONS = [operation for operation in trt.ReduceOperation if operation is not trt.ReduceOperation.NONE]
PADDING = list(trt.PaddingMode)


def draws(recipe: Recipe) -> Recipe:
    RANGES.append(recipe)
    return recipe


# ---------------------------------------------------------------------------- element by element


@draws
def exact_unary(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Roundings of quarters, the bits of integers, and which quotients are infinite or no number."""
    op = grow.next_of(Unary.CEIL, Unary.FLOOR, Unary.ROUND, Unary.NOT, Unary.ISINF, Unary.ISNAN)
    if op is Unary.NOT:
        return grow.network.add_unary(grow.among(tensor, [trt.bool, *INTEGERS]), op).get_output(0)
    x = grow.real(tensor)
    if op in (Unary.ISINF, Unary.ISNAN):
        quotient = grow.combine(x, grow.constant(x.dtype, tuple(x.shape), -1, 1), Op.DIV)
        return grow.network.add_unary(quotient, op).get_output(0)
    return grow.network.add_unary(grow.combine(x, grow.filled(x, 1 / 4), Op.PROD), op).get_output(0)


ROUGH_UNARIES = {
    Unary.EXP: 0, Unary.LOG: 1.5, Unary.SQRT: 1.5, Unary.RECIP: 2, Unary.SIN: 0, Unary.COS: 0, Unary.TAN: 0,
    Unary.SINH: 0, Unary.COSH: 0, Unary.ASIN: 0, Unary.ACOS: 0, Unary.ATAN: 0, Unary.ASINH: 0, Unary.ACOSH: 2.5,
    Unary.ATANH: 0, Unary.ERF: 0,
}  # fmt: skip
"""The functions that round, and what is added to halves of numbers from -1 to 1, where their slopes are small."""


@draws
def rough_unary(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """The sum of two functions."""
    x = grow.soft(tensor)
    half = grow.combine(x, grow.filled(x, 1 / 2), Op.PROD)
    parts = []
    for op in grow.chance.sample(list(ROUGH_UNARIES), 2):
        moved = grow.combine(half, grow.filled(x, ROUGH_UNARIES[op]), Op.SUM)
        made = grow.network.add_unary(moved, op).get_output(0)
        parts.append(grow.roughen(grow.combine(made, grow.filled(made, 1 / 4), Op.PROD)))
    return grow.roughen(grow.combine(*parts, Op.SUM))


@draws
def exact_activation(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    ranges = {Act.RELU: (0, 0), Act.LEAKY_RELU: (2, 0), Act.CLIP: (-2, 3), Act.HARD_SIGMOID: (2, -1)}
    kind = grow.next_of(*ranges, Act.THRESHOLDED_RELU)
    x = grow.among(tensor, INTEGERS) if kind is Act.RELU and grow.coin() else grow.real(tensor)
    layer = grow.network.add_activation(x, kind)
    layer.alpha, layer.beta = ranges.get(kind, (1, 0))
    return layer.get_output(0)


@draws
def rough_activation(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    kinds = Act.SIGMOID, Act.TANH, Act.ELU, Act.SELU, Act.SOFTSIGN, Act.SOFTPLUS, Act.SCALED_TANH, Act.GELU_ERF
    kind = grow.choose(*kinds, Act.GELU_TANH)
    layer = grow.network.add_activation(grow.soft(tensor), kind)
    layer.alpha, layer.beta = grow.choose(0.5, 1), grow.choose(0.5, 1)
    return grow.roughen(layer.get_output(0))


@draws
def arithmetic(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Any operation on two tensors, of which one may have axes to broadcast, and a divisor that is never zero."""
    x = grow.among(tensor, ARITHMETIC)
    y = grow.constant(x.dtype, tuple(grow.choose(1, length) for length in x.shape))
    if y.shape == x.shape:
        y = grow.other(pool, x)
    pair = grow.chance.sample([x, y], 2)
    return grow.tame(grow.combine(*pair, grow.next_of(Op.SUM, Op.SUB, Op.PROD, Op.MAX, Op.MIN)))


@draws
def compare(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.among(tensor, ARITHMETIC)
    return grow.combine(x, grow.other(pool, x), grow.next_of(Op.EQUAL, Op.LESS, Op.GREATER))


@draws
def divide(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Quotients by numbers that are not zero; those of floats that are not whole become integers again."""
    op = grow.next_of(Op.FLOOR_DIV, Op.DIV, Op.FLOOR_DIV, Op.MOD, Op.FMOD)
    x = grow.among(tensor, INTEGERS if op is Op.FLOOR_DIV and grow.between(0, 2) else ARITHMETIC)
    x = grow.combine(x, grow.filled(x, 11), Op.PROD)
    shape = grow.choose((1,) * len(x.shape), tuple(x.shape))
    unsigned = x.dtype not in NUMBERS and x.dtype.name.startswith("U")
    numbers = np.abs(grow.array(trt.int32, shape))
    divisor = grow.choose(2**numbers, 2**numbers, 1 + 2 * numbers, 2 + 2 * numbers)
    sign = 1 if unsigned else grow.choose(-1, 1, 1)
    y = grow.fixed((sign * divisor).astype(numpy_type(x.dtype)))
    made = grow.combine(x, y, op)
    return grow.cast(made, trt.int32) if op is Op.DIV and x.dtype in FLOATS else made


@draws
def power(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.among(tensor, INTEGERS)
    most = grow.constant(x.dtype, grow.choose((1,) * len(x.shape), tuple(x.shape)), 0, 3)
    return grow.combine(x, most, Op.POW)


@draws
def convert_extremes(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Numbers that few types hold, through one type, often of floats, into each type in turn; or constants."""
    x = grow.fixed(np.int32([-70000, -3, 0, 1, 6, 70000]))
    x = grow.combine(x, grow.one(tensor, x), Op.SUM) if grow.coin() else x
    made, count = [], len(grow.dtypes)
    for number in range(5 * grow.turn, 5 * grow.turn + 5):
        first, second = (
            grow.choose(grow.choose(*FLOATS), *grow.chance.sample(grow.dtypes, 1)),
            grow.dtypes[number % count],
        )
        wide = grow.cast(grow.cast(grow.cast(x, first), second), trt.float32)
        is_nan = grow.network.add_unary(wide, Unary.ISNAN).get_output(0)
        inside = grow.clip(wide, -(1 << 20), 1 << 20)
        made.append(grow.network.add_select(is_nan, grow.filled(wide, 5), inside).get_output(0))
    return grow.tame(grow.concatenated(made, 0))


@draws
def read_signs(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Whole numbers, read with a sign or without one, as the bits of floats."""
    first, second = grow.next_of((trt.int32, trt.uint32), (trt.int64, trt.uint64), (trt.uint32, trt.int32))
    whole = grow.network.add_bit_cast(grow.cast(grow.small(tensor), first), second).get_output(0)
    pairs = (trt.float32, trt.int32), (trt.float64, trt.int64)
    bits = [grow.network.add_bit_cast(grow.cast(whole, dtype), to).get_output(0) for dtype, to in pairs]
    return grow.combine(grow.cast(bits[0], trt.int64), bits[1], Op.XOR)


@draws
def round_long_integers(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Floats of unsigned integers around the middle of two floats, as the bits of the floats."""
    dtype, bits, digits = grow.choose((trt.float32, trt.int32, 24), (trt.float64, trt.int64, 53))
    step = 1 << 64 - digits
    x = grow.small(tensor, trt.uint64)
    x = grow.combine(x, grow.filled(x, step), Op.PROD)
    middle = grow.combine(x, grow.filled(x, (1 << 63) + step // 2 + grow.choose(-1, 0, 1, 1)), Op.SUM)
    return grow.network.add_bit_cast(grow.cast(middle, dtype), bits).get_output(0)


@draws
def bitwise(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.among(tensor, [trt.bool, *INTEGERS])
    if x.dtype is not trt.bool and grow.coin():
        places = grow.constant(x.dtype, tuple(x.shape), 0, 9)
        return grow.combine(x, places, grow.choose(Op.SHIFT_LEFT, Op.SHIFT_RIGHT))
    return grow.combine(x, grow.other(pool, x), grow.choose(Op.AND, Op.OR, Op.XOR))


@draws
def choose_elements(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """A selection between two tensors, by a condition that may be broadcast."""
    shape = tuple(grow.choose(1, length) for length in tensor.shape)
    flag = grow.pick(pool, lambda other: other.dtype is trt.bool and tuple(other.shape) == tuple(tensor.shape))
    flag = grow.constant(trt.bool, shape) if flag is None else flag
    return grow.network.add_select(flag, tensor, grow.other(pool, tensor)).get_output(0)


@draws
def read_any_bits(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Of types of 8, 16, 32 and 64 bits, as integers."""
    alike = [
        [trt.int8, trt.uint8, trt.fp8, trt.e5m2, trt.e8m0], [trt.int16, trt.uint16, trt.float16, trt.bfloat16],
        [trt.int32, trt.uint32, trt.float32], [trt.int64, trt.uint64, trt.float64],
    ]  # fmt: skip
    types = next((entry for entry in alike if tensor.dtype in entry), alike[2])
    return grow.network.add_bit_cast(grow.among(tensor, types), grow.choose(*types[:2])).get_output(0)


@draws
def write_any_bits(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Of whole numbers, as floats of the same bits, and back."""
    wide, narrow = grow.choose((trt.int32, trt.float32), (trt.int64, trt.float64), (trt.int16, trt.bfloat16))
    bits = grow.network.add_bit_cast(grow.cast(grow.small(tensor), narrow), wide).get_output(0)
    return grow.network.add_bit_cast(bits, narrow).get_output(0)


# ---------------------------------------------------------------------------- along axes


def some_axes(grow: Kinds, tensor: ITensor) -> int:
    """A mask of at least one axis."""
    return grow.between(1, (1 << len(tensor.shape)) - 1)


@draws
def reduce_axes(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.with_axis(grow.among(tensor, REDUCIBLE))
    op, axes, keep = grow.next_of(*REDUCTIONS), some_axes(grow, x), grow.coin()
    if op is trt.ReduceOperation.AVG:
        return grow.roughen(grow.network.add_reduce(grow.soft(x), op, axes, keep).get_output(0))
    if op is trt.ReduceOperation.PROD and x.dtype in FLOATS:
        x = grow.small(x, trt.int32)
    return grow.tame(grow.network.add_reduce(x, op, axes, keep).get_output(0))


@draws
def cumulate_products(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Of integers, which wrap, or sums of anything."""
    op, is_exclusive, is_reverse = grow.next_of(*product(trt.CumulativeOperation, (True, False), (True, False)))
    types = NUMBERS if op is trt.CumulativeOperation.SUM else [trt.int32, trt.int64]
    x = grow.with_axis(grow.among(tensor, types))
    axis = grow.fixed(grow.choose(np.int32, np.int64)(grow.between(-len(x.shape), len(x.shape) - 1)))
    return grow.tame(grow.network.add_cumulative(x, axis, op, is_exclusive, is_reverse).get_output(0))


@draws
def normalize_words(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """The lengths of numbers as words in any case, with and without some that are removed."""
    text = grow.cast(grow.among(tensor, LISTED), trt.DataType.STRING)
    case, stopwords, is_case_sensitive = grow.next_of(*product(trt.StringCase, (None, ["-1"]), (True, False)))
    row = grow.reshape(text, grow.size(text))
    words = grow.network.add_string_normalization(row, case, stopwords, is_case_sensitive).get_output(0)
    return grow.cast(grow.network.add_shape(words).get_output(0), trt.int32)


@draws
def top_of(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.with_axis(grow.among(tensor, grow.next_of(ARITHMETIC, UNSIGNED, ARITHMETIC)))
    axis = grow.axis(x)
    x = grow.concatenated([x, x], axis) if grow.between(0, 3) else x  # of equal elements the first is the top one
    number, indices = grow.between(min(2, x.shape[axis]), x.shape[axis]), grow.choose(trt.int32, trt.int64)
    layer = grow.network.add_topk(x, grow.next_of(*trt.TopKOperation), number, 1 << axis, indices)
    layer.total_order = grow.next_of(False, False, True)
    return layer.get_output(grow.next_of(0, 1, 1))


@draws
def normalize_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Over any axes after the channel, or over groups of channels, of which there are two."""
    x = grow.soft(tensor)
    row = grow.reshape(x, 1, 1, grow.size(tensor))
    x = grow.concatenated([row, grow.combine(row, grow.filled(row, 1 / 2), Op.PROD)], 1)
    add = grow.network.add_normalization_v2 if grow.coin() else grow.network.add_normalization
    ones = (1, 1, 1) if add == grow.network.add_normalization_v2 and grow.coin() else (1, 2, 1)
    scale, bias = (grow.constant(x.dtype, ones, -1, 1) for _ in range(2))
    layer = add(x, scale, bias, 0b100)
    layer.epsilon = grow.choose(0.5, 1)
    if ones == (1, 2, 1):
        layer.num_groups = grow.choose(1, 2)
    return grow.roughen(layer.get_output(0))


# ---------------------------------------------------------------------------- by index


@draws
def gather_in_any_mode(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.with_axes(tensor)
    return grow.joined(*(gathered(grow, x, *entry) for entry in product(trt.GatherMode, (0, 1))))


def gathered(grow: Kinds, x: ITensor, mode: trt.GatherMode, batch: int) -> ITensor:
    """At indices of which some are negative."""
    rank, dtype = len(x.shape), grow.choose(trt.int32, trt.int64)
    if mode is trt.GatherMode.ND:
        depth = grow.between(1, rank)
        batch = min(batch, rank - depth)
        places = [[grow.between(-length, length - 1) for length in x.shape[batch : batch + depth]] for _ in range(6)]
        shape = (*x.shape[:batch], 2, depth)
        rows = int(np.prod(shape[:-1]))
        indices = grow.fixed(np.resize(np.array(places), (rows, depth)).reshape(shape).astype(numpy_type(dtype)))
    elif mode is trt.GatherMode.ELEMENT:
        axis = grow.axis(x)
        length = x.shape[axis]
        shape = [length if length == 1 else grow.between(1, length) for length in x.shape]
        shape[axis] = grow.between(1, 4)
        indices = grow.constant(dtype, tuple(shape), -length, length - 1)
    else:
        axis = max(range(batch, rank), key=lambda index: x.shape[index])
        shape = (*x.shape[:batch], *grow.choose((), (1,), (3,), (2, 2)))
        indices = grow.constant(dtype, shape, -x.shape[axis], x.shape[axis] - 1)
    layer = grow.network.add_gather_v2(x, indices, mode)
    if mode is not trt.GatherMode.ND:
        layer.axis = axis - grow.choose(0, rank, rank)
    layer.num_elementwise_dims = 0 if mode is trt.GatherMode.ELEMENT else batch
    return layer.get_output(0)


@draws
def gather_by_values(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """At indices that are computed."""
    x = grow.with_axis(tensor)
    axis = grow.axis(x)
    source = grow.pick_exact(pool, lambda tensor: 0 < grow.size(tensor) <= 6)
    if source is None:
        source = x
    number = grow.small(source, trt.int32)
    indices = grow.combine(number, grow.filled(number, x.shape[axis]), Op.MOD)
    return grow.network.add_gather(x, indices, axis).get_output(0)


@draws
def scatter_in_any_mode(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """With a reduction, indices may be equal."""
    reduction = grow.next_of(
        *(operation for operation in trt.ReduceOperation if operation is not trt.ReduceOperation.AVG)
    )
    is_set = reduction is trt.ReduceOperation.NONE
    x = grow.with_axes(tensor if is_set else grow.among(tensor, NUMBERS))
    made = grow.joined(*(scattered(grow, x, mode, reduction) for mode in trt.ScatterMode))
    return made if is_set else grow.tame(made)


def scattered(grow: Kinds, x: ITensor, mode: trt.ScatterMode, reduction: trt.ReduceOperation) -> ITensor:
    is_set, axis = reduction is trt.ReduceOperation.NONE, grow.choose(len(x.shape) - 1, grow.axis(x))
    length, dtype = x.shape[axis], grow.choose(trt.int32, trt.int64)
    if mode is trt.ScatterMode.ELEMENT:
        shape = [grow.between(1, length) for length in x.shape]
        others = [length for number, length in enumerate(shape) if number != axis]
        columns = [grow.places(length, shape[axis], is_set) for _ in range(int(np.prod(others)))]
        array = np.moveaxis(np.array(columns).reshape(*others, shape[axis]), -1, axis)
        updates = grow.constant(x.dtype, tuple(shape))
    else:
        depth = grow.between(1, len(x.shape))
        rows = list(product(*(range(length) for length in x.shape[:depth])))
        number = grow.between(1, min(3, len(rows)))
        array = np.array([rows[place] for place in grow.places(len(rows), number, is_set)])
        updates = grow.constant(x.dtype, (number, *x.shape[depth:]))
    layer = grow.network.add_scatter(x, grow.fixed(array.astype(numpy_type(dtype))), updates, mode)
    layer.axis, layer.reduction = axis if mode is trt.ScatterMode.ELEMENT else 0, reduction
    return layer.get_output(0)


@draws
def one_hot_anywhere(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """With indices out of range too."""
    indices = grow.small(tensor, grow.choose(trt.int32, trt.int64))
    values, depth = grow.constant(grow.choose(*grow.dtypes), (2,)), grow.fixed(np.int32(grow.between(1, 5)))
    axis = grow.between(-len(indices.shape) - 1, len(indices.shape))
    return grow.network.add_one_hot(indices, values, depth, axis).get_output(0)


@draws
def reverse_sequences(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    batches = grow.choose(*(number for number in (1, 2, 3) if grow.size(tensor) % number == 0))
    length, batch_axis = grow.size(tensor) // batches, grow.between(0, 1)
    rows = grow.reshape(tensor, *((batches, length) if batch_axis == 0 else (length, batches)))
    layer = grow.network.add_reverse_sequence(rows, grow.constant(trt.int32, (batches,), 0, length))
    layer.batch_axis, layer.sequence_axis = batch_axis, 1 - batch_axis
    return layer.get_output(0)


# ---------------------------------------------------------------------------- shapes


@draws
def slice_in_any_mode(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Also before the beginning and past the end, except where the bounds are strict."""
    x = grow.with_axis(tensor)
    x = grow.concatenated([x, grow.other(pool, x)], grow.axis(x))
    modes = [*trt.SampleMode, *trt.SampleMode]
    first = grow.turn % len(trt.SampleMode)
    return grow.joined(*(sliced(grow, x, mode) for mode in modes[first : first + 3]))


def sliced(grow: Kinds, x: ITensor, mode: trt.SampleMode) -> ITensor:
    axes = grow.chance.sample(range(len(x.shape)), grow.between(1, len(x.shape)))
    starts, sizes, strides = zip(*(span(grow, x.shape[axis], mode) for axis in axes), strict=True)
    layer = grow.network.add_slice(x, starts, sizes, strides)
    layer.mode, layer.axes = mode, [axis - grow.choose(0, len(x.shape)) for axis in axes]
    if mode is trt.SampleMode.FILL and grow.coin():
        layer.set_input(4, grow.constant(x.dtype, ()))
    return layer.get_output(0)


def span(grow: Kinds, length: int, mode: trt.SampleMode) -> tuple[int, int, int]:
    """A start, a number of elements and a stride."""
    if mode is not trt.SampleMode.STRICT_BOUNDS:
        return (
            grow.choose(-3, -2, -1, length - 1, length, length + 2),
            grow.between(2, 5),
            grow.choose(1, 1, -1, 2, -2, 3),
        )
    start, stride = grow.between(0, length - 1), grow.choose(1, 1, -1, 2, -2)
    room = (length - 1 - start) // stride if stride > 0 else start // -stride
    return start, 1 + grow.between(0, room), stride


@draws
def slice_by_values(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """From a start that is computed, of a size that is known; where the bounds are strict, inside of them."""
    flat = grow.reshape(tensor, grow.size(tensor))
    flat = grow.concatenated([flat, grow.other(pool, flat), flat], 0)
    source = grow.pick_exact(pool, lambda tensor: 0 < grow.size(tensor) <= 6)
    start = grow.reshape(grow.one(flat if source is None else source, grow.fixed(np.int32(0))), 1)
    mode, stride, size = grow.next_of(*trt.SampleMode), grow.next_of(1, -1, 2), grow.between(2, 4)
    if mode is trt.SampleMode.STRICT_BOUNDS:
        size = min(size, 1 + (grow.size(flat) - 1) // abs(stride))
        reach = (size - 1) * abs(stride)
        start = grow.combine(start, grow.filled(start, grow.size(flat) - reach), Op.MOD)
        start = grow.combine(start, grow.filled(start, reach if stride < 0 else 0), Op.SUM)
    layer = grow.network.add_slice(flat, (0,), (size,), (stride,))
    layer.set_input(1, start)
    layer.mode = mode
    return layer.get_output(0)


@draws
def shuffle_twice(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.with_axis(tensor)
    layer = grow.network.add_shuffle(x)
    order = grow.chance.sample(range(len(x.shape)), len(x.shape))
    layer.first_transpose = order
    moved = [x.shape[layer] for layer in order]
    kind = grow.between(0, 3)
    shape = [moved, [0] * len(moved), [*moved[:-1], -1], [*moved, 1]][kind]
    layer.reshape_dims = shape
    layer.second_transpose = grow.chance.sample(range(len(shape)), len(shape))
    return layer.get_output(0)


@draws
def unsqueeze_anywhere(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    rank = len(tensor.shape) + 1
    axes = grow.fixed(np.int64([grow.between(-rank, rank - 1)]))
    made = grow.network.add_unsqueeze(tensor, axes).get_output(0)
    ones = [number for number, length in enumerate(made.shape) if length == 1]
    if grow.coin():
        return made
    return grow.network.add_squeeze(made, grow.fixed(np.int32([grow.choose(*ones)]))).get_output(0)


@draws
def concatenate_parts(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Parts of different lengths, in another order, or with another tensor between them."""
    x = grow.with_axis(tensor)
    axis = grow.axis(x)
    length = x.shape[axis]
    cut = grow.between(0, length)
    parts = [grow.part(x, axis, 0, cut), grow.other(pool, x), grow.part(x, axis, cut, length - cut)]
    return grow.concatenated(grow.chance.sample(parts, grow.between(2, 3)), axis - grow.choose(0, len(x.shape)))


@draws
def pad_anywhere(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    image = grow.image(tensor)
    rows, columns = image.shape[2:]
    before = [grow.between(-(rows > 1), 2), grow.between(-(columns > 2), 2)]
    after = [grow.between(0, 2), grow.between(-(columns > 2), 1)]
    return grow.network.add_padding_nd(image, before, after).get_output(0)


@draws
def known_branch(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """The branch that a known condition takes, of two of different lengths or ranks."""
    x = grow.with_axis(tensor)
    other = grow.reshape(x, 1, *x.shape) if grow.coin() else grow.concatenated([x, x], grow.axis(x))
    conditional = grow.network.add_if_conditional()
    conditional.set_condition(grow.fixed(np.bool_(grow.coin())))
    return conditional.add_output(*grow.chance.sample([x, other], 2)).get_output(0)
