"""Recipes that draw the attributes of layers from their whole range, many of them beyond what other formats can say.

Those of ``layer_specs`` draw what ONNX and OpenVINO can express too, and both have to agree with the reference there.
"""

from itertools import product

import numpy as np

import netloop as trt
from netloop.graph.tensor import ITensor
from netloop.types import numpy_type
from tests.support.layer_specs import NONE, VECTOR, Kinds, Recipe, Unary
from tests.support.tensor_drawing import ARITHMETIC, FLOATS, NUMBERS, REDUCIBLE, Act, Op

RANGES: list[Recipe] = []
"""The recipes of this module."""

Pool = list[ITensor]
INTEGERS = [each for each in ARITHMETIC if each not in FLOATS]
REDUCTIONS = [each for each in trt.ReduceOperation if each is not trt.ReduceOperation.NONE]
PADDING = list(trt.PaddingMode)


def draws(recipe: Recipe) -> Recipe:
    RANGES.append(recipe)
    return recipe


# ---------------------------------------------------------------------------- element by element


@draws
def exact_unary(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Roundings of quarters, the bits of integers, and which quotients are infinite or no number."""
    op = grow.choose(Unary.CEIL, Unary.FLOOR, Unary.ROUND, Unary.NOT, Unary.ISINF, Unary.ISNAN)
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
    kind = grow.choose(*ranges, Act.THRESHOLDED_RELU)
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
    return grow.tame(grow.combine(*pair, grow.choose(Op.SUM, Op.SUB, Op.PROD, Op.MAX, Op.MIN)))


@draws
def compare(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.among(tensor, ARITHMETIC)
    return grow.combine(x, grow.other(pool, x), grow.choose(Op.EQUAL, Op.LESS, Op.GREATER))


@draws
def divide(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Quotients by numbers that are not zero; those of floats that are not whole become integers again."""
    x = grow.among(tensor, ARITHMETIC)
    shape = grow.choose((1,) * len(x.shape), tuple(x.shape))
    unsigned = x.dtype not in NUMBERS and x.dtype.name.startswith("U")
    divisor = grow.choose(1, 2) + 2 * np.abs(grow.array(trt.int32, shape))
    sign = 1 if unsigned else grow.choose(-1, 1)
    y = grow.fixed((sign * divisor).astype(numpy_type(x.dtype)))
    op = grow.choose(Op.DIV, Op.FLOOR_DIV, Op.MOD, Op.FMOD)
    made = grow.combine(x, y, op)
    return grow.cast(made, trt.int32) if op is Op.DIV and x.dtype in FLOATS else made


@draws
def power(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.among(tensor, INTEGERS)
    most = grow.constant(x.dtype, grow.choose((1,) * len(x.shape), tuple(x.shape)), 0, 3)
    return grow.combine(x, most, Op.POW)


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
    flag = grow.pick(pool, lambda each: each.dtype is trt.bool and tuple(each.shape) == tuple(tensor.shape))
    flag = grow.constant(trt.bool, shape) if flag is None else flag
    return grow.network.add_select(flag, tensor, grow.other(pool, tensor)).get_output(0)


@draws
def read_any_bits(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Of types of 8, 16, 32 and 64 bits, as integers."""
    alike = [
        [trt.int8, trt.uint8, trt.fp8, trt.e5m2, trt.e8m0], [trt.int16, trt.uint16, trt.float16, trt.bfloat16],
        [trt.int32, trt.uint32, trt.float32], [trt.int64, trt.uint64, trt.float64],
    ]  # fmt: skip
    types = next((each for each in alike if tensor.dtype in each), alike[2])
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
    op, axes, keep = grow.choose(*REDUCTIONS), some_axes(grow, x), grow.coin()
    if op is trt.ReduceOperation.AVG:
        return grow.roughen(grow.network.add_reduce(grow.soft(x), op, axes, keep).get_output(0))
    if op is trt.ReduceOperation.PROD and x.dtype in FLOATS:
        x = grow.small(x, trt.int32)
    return grow.tame(grow.network.add_reduce(x, op, axes, keep).get_output(0))


@draws
def cumulate_products(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Of integers, which wrap, or sums of anything."""
    op = grow.choose(*trt.CumulativeOperation)
    types = NUMBERS if op is trt.CumulativeOperation.SUM else [trt.int32, trt.int64]
    x = grow.with_axis(grow.among(tensor, types))
    axis = grow.fixed(grow.choose(np.int32, np.int64)(grow.between(-len(x.shape), len(x.shape) - 1)))
    return grow.tame(grow.network.add_cumulative(x, axis, op, grow.coin(), grow.coin()).get_output(0))


@draws
def top_of(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.with_axis(grow.among(tensor, ARITHMETIC))
    axis = grow.axis(x)
    x = grow.concatenated([x, x], axis) if grow.coin() else x  # of equal elements the first is the top one
    number, indices = grow.between(1, x.shape[axis]), grow.choose(trt.int32, trt.int64)
    layer = grow.network.add_topk(x, grow.choose(*trt.TopKOperation), number, 1 << axis, indices)
    return layer.get_output(grow.between(0, 1))


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
    x = grow.with_axis(tensor)
    mode, rank = grow.choose(*trt.GatherMode), len(x.shape)
    dtype = grow.choose(trt.int32, trt.int64)
    if mode is trt.GatherMode.ND:
        depth = grow.between(1, rank)
        batch = grow.between(0, min(1, rank - depth))
        places = [[grow.between(-length, length - 1) for length in x.shape[batch : batch + depth]] for _ in range(6)]
        shape = (*x.shape[:batch], 2, depth)
        rows = int(np.prod(shape[:-1]))
        indices = grow.fixed(np.resize(np.array(places), (rows, depth)).reshape(shape).astype(numpy_type(dtype)))
    elif mode is trt.GatherMode.ELEMENT:
        axis = grow.axis(x)
        length = x.shape[axis]
        shape = [each if each == 1 else grow.between(1, each) for each in x.shape]
        shape[axis] = grow.between(1, 4)
        indices = grow.constant(dtype, tuple(shape), -length, length - 1)
    else:
        axis = grow.axis(x)
        batch = 1 if axis and grow.coin() else 0
        shape = (*x.shape[:batch], *grow.choose((), (1,), (3,), (2, 2)))
        indices = grow.constant(dtype, shape, -x.shape[axis], x.shape[axis] - 1)
    layer = grow.network.add_gather_v2(x, indices, mode)
    if mode is not trt.GatherMode.ND:
        layer.axis = axis - grow.choose(0, rank)
    layer.num_elementwise_dims = 0 if mode is trt.GatherMode.ELEMENT else batch
    return layer.get_output(0)


@draws
def gather_by_values(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """At indices that are computed."""
    x = grow.with_axis(tensor)
    axis = grow.axis(x)
    source = grow.pick_exact(pool, lambda each: 0 < grow.size(each) <= 6)
    if source is None:
        source = x
    number = grow.small(source, trt.int32)
    indices = grow.combine(number, grow.filled(number, x.shape[axis]), Op.MOD)
    return grow.network.add_gather(x, indices, axis).get_output(0)


@draws
def scatter_in_any_mode(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """With a reduction, indices may be equal."""
    reduction = grow.choose(*trt.ReduceOperation)
    reduction = trt.ReduceOperation.SUM if reduction is trt.ReduceOperation.AVG else reduction
    is_set = reduction is trt.ReduceOperation.NONE
    x = grow.with_axis(tensor if is_set else grow.among(tensor, NUMBERS))
    mode, axis = grow.choose(*trt.ScatterMode), grow.axis(x)
    length, dtype = x.shape[axis], grow.choose(trt.int32, trt.int64)
    if mode is trt.ScatterMode.ELEMENT:
        shape = [grow.between(1, each) for each in x.shape]
        others = [each for number, each in enumerate(shape) if number != axis]
        columns = [grow.places(length, shape[axis], is_set) for _ in range(int(np.prod(others)))]
        array = np.moveaxis(np.array(columns).reshape(*others, shape[axis]), -1, axis)
        updates = grow.constant(x.dtype, tuple(shape))
    else:
        depth = grow.between(1, len(x.shape))
        rows = list(product(*(range(each) for each in x.shape[:depth])))
        number = grow.between(1, min(3, len(rows)))
        array = np.array([rows[each] for each in grow.places(len(rows), number, is_set)])
        updates = grow.constant(x.dtype, (number, *x.shape[depth:]))
    layer = grow.network.add_scatter(x, grow.fixed(array.astype(numpy_type(dtype))), updates, mode)
    layer.axis, layer.reduction = axis if mode is trt.ScatterMode.ELEMENT else 0, reduction
    return layer.get_output(0) if is_set else grow.tame(layer.get_output(0))


@draws
def one_hot_anywhere(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """With indices out of range too."""
    indices = grow.small(tensor, grow.choose(trt.int32, trt.int64))
    values, depth = grow.constant(grow.choose(*grow.dtypes), (2,)), grow.fixed(np.int32(grow.between(1, 5)))
    axis = grow.between(-len(indices.shape) - 1, len(indices.shape))
    return grow.network.add_one_hot(indices, values, depth, axis).get_output(0)


@draws
def reverse_sequences(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    batches = grow.choose(*(each for each in (1, 2, 3) if grow.size(tensor) % each == 0))
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
    mode = grow.choose(*trt.SampleMode)
    axes = grow.chance.sample(range(len(x.shape)), grow.between(1, len(x.shape)))
    starts, sizes, strides = zip(*(span(grow, x.shape[each], mode) for each in axes), strict=True)
    layer = grow.network.add_slice(x, starts, sizes, strides)
    layer.mode, layer.axes = mode, [each - grow.choose(0, len(x.shape)) for each in axes]
    if mode is trt.SampleMode.FILL and grow.coin():
        layer.set_input(4, grow.constant(x.dtype, ()))
    return layer.get_output(0)


def span(grow: Kinds, length: int, mode: trt.SampleMode) -> tuple[int, int, int]:
    """A start, a number of elements and a stride."""
    if mode is not trt.SampleMode.STRICT_BOUNDS:
        return grow.between(-3, length + 2), grow.between(1, 4), grow.choose(1, 1, -1, 2, -2, 3)
    start, stride = grow.between(0, length - 1), grow.choose(1, 1, -1, 2, -2)
    room = (length - 1 - start) // stride if stride > 0 else start // -stride
    return start, 1 + grow.between(0, room), stride


@draws
def slice_by_values(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """From a start that is computed, of a size that is known."""
    x = grow.with_axis(tensor)
    flat = grow.reshape(x, grow.size(x))
    source = grow.pick_exact(pool, lambda each: 0 < grow.size(each) <= 6)
    start = grow.reshape(grow.one(flat if source is None else source, grow.fixed(np.int32(0))), 1)
    layer = grow.network.add_slice(flat, (0,), (grow.between(1, 4),), (grow.choose(1, -1, 2),))
    layer.set_input(1, start)
    layer.mode = grow.choose(trt.SampleMode.WRAP, trt.SampleMode.CLAMP, trt.SampleMode.FILL, trt.SampleMode.REFLECT)
    return layer.get_output(0)


@draws
def shuffle_twice(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    x = grow.with_axis(tensor)
    layer = grow.network.add_shuffle(x)
    order = grow.chance.sample(range(len(x.shape)), len(x.shape))
    layer.first_transpose = order
    moved = [x.shape[each] for each in order]
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


# ---------------------------------------------------------------------------- windows


def window(grow: Kinds, layer: trt.ILayer, is_padded: bool = True) -> None:
    """Strides, dilations and paddings of a layer with a window of at most two elements along an axis."""
    layer.stride_nd = grow.between(1, 2), grow.between(1, 2)
    if is_padded:
        layer.padding_mode = grow.choose(*PADDING)
        layer.pre_padding, layer.post_padding = ((grow.between(0, 1), grow.between(0, 1)) for _ in range(2))


def channels(grow: Kinds, tensor: ITensor, is_real: bool = True) -> ITensor:
    """An image of two channels and at least three columns, of integers at times if it need not be of floats."""
    image = grow.image(tensor)
    image = image if is_real or grow.between(0, 2) else grow.cast(image, grow.choose(trt.int32, trt.int64))
    wide = grow.concatenated([image, image, image], 3)
    plus = grow.combine(wide, grow.filled(wide, 1), Op.SUM)
    return grow.concatenated([wide, plus], 1)


@draws
def convolve_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    image = channels(grow, tensor, is_real=False)
    groups, maps = grow.choose(1, 2), grow.choose(2, 4)
    kernel = grow.array(image.dtype, (maps, 2 // groups, 1, 2))
    bias = grow.array(image.dtype, (maps,)) if grow.coin() else trt.Weights()
    layer = grow.network.add_convolution_nd(image, maps, (1, 2), kernel, bias)
    layer.num_groups = groups
    window(grow, layer)
    layer.dilation_nd = 1, grow.between(1, 2)
    return grow.tame(layer.get_output(0))


@draws
def deconvolve_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    image = channels(grow, tensor, is_real=False)
    groups, maps = grow.choose(1, 2), grow.choose(2, 4)
    kernel = grow.array(image.dtype, (2, maps // groups, 1, 2))
    bias = grow.array(image.dtype, (maps,)) if grow.coin() else trt.Weights()
    layer = grow.network.add_deconvolution_nd(image, maps, (1, 2), kernel, bias)
    layer.num_groups = groups
    layer.padding_mode, layer.stride_nd = grow.choose(*PADDING), (1, grow.between(1, 2))
    layer.pre_padding, layer.post_padding = (0, grow.between(0, 1)), (0, grow.between(0, 1))
    layer.dilation_nd = 1, grow.between(1, 2)
    return grow.tame(layer.get_output(0))


@draws
def pool_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    kind = grow.choose(*trt.PoolingType)
    image = channels(grow, tensor)
    is_exact = kind is trt.PoolingType.MAX
    layer = grow.network.add_pooling_nd(image if is_exact else grow.soft(image), kind, (1, 2))
    window(grow, layer)
    layer.pre_padding, layer.post_padding = (0, layer.pre_padding[1]), (0, layer.post_padding[1])
    layer.dilation_nd = (1, grow.between(1, 2)) if is_exact else (1, 1)
    layer.average_count_excludes_padding = grow.coin()
    if kind is trt.PoolingType.MAX_AVERAGE_BLEND:
        layer.blend_factor = grow.choose(0.25, 0.75)
    return layer.get_output(0) if is_exact else grow.roughen(layer.get_output(0))


@draws
def point_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    layer = grow.network.add_pooling_indices(channels(grow, tensor), (1, 2), grow.choose(trt.int32, trt.int64))
    layer.padding_mode, layer.stride_nd = grow.choose(*PADDING), (1, grow.between(1, 2))
    return layer.get_output(0)


# ---------------------------------------------------------------------------- sampling


@draws
def resize_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """To another shape or by scales; what is no nearest element is rough."""
    image = channels(grow, tensor)
    kind = grow.choose(*trt.InterpolationMode, trt.InterpolationMode.CUBIC)
    is_exact = kind is trt.InterpolationMode.NEAREST
    image = image if is_exact else grow.soft(image)
    layer = grow.network.add_resize(image)
    layer.resize_mode = kind
    layer.coordinate_transformation = grow.choose(*trt.ResizeCoordinateTransformation)
    if layer.coordinate_transformation is trt.ResizeCoordinateTransformation.CROP:
        layer.roi = (0, 0, 0, grow.choose(-0.25, 0.25), 1, 1, 1, grow.choose(0.75, 1.25))
        layer.extrapolation_value = grow.choose(0, 1)
    layer.nearest_rounding = grow.choose(*trt.ResizeRoundMode)
    layer.selector_for_single_pixel = grow.choose(*trt.ResizeSelector)
    layer.exclude_outside = kind is trt.InterpolationMode.CUBIC and grow.coin()
    layer.antialias = not is_exact and grow.coin()
    rows, columns = image.shape[2:]
    if grow.coin():
        layer.shape = (1, 2, grow.between(1, 2 * rows), grow.between(1, 6))
    else:
        layer.scales = (1, 1, grow.choose(1, 2), grow.choose(0.5, 1.5, 2) if columns > 1 else 2)
    return layer.get_output(0) if is_exact else grow.roughen(layer.get_output(0))


@draws
def sample_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    image = channels(grow, tensor)
    kind = grow.choose(*trt.InterpolationMode)
    is_exact = kind is trt.InterpolationMode.NEAREST
    image = image if is_exact else grow.soft(image)
    grid = grow.array(trt.float32, (1, 2, 2, 2), -5, 5) / 4
    layer = grow.network.add_grid_sample(image, grow.fixed(grid.astype(numpy_type(image.dtype))))
    layer.interpolation_mode, layer.align_corners = kind, grow.coin()
    layer.sample_mode = grow.choose(trt.SampleMode.FILL, trt.SampleMode.CLAMP, trt.SampleMode.REFLECT)
    return layer.get_output(0) if is_exact else grow.roughen(layer.get_output(0))


# ---------------------------------------------------------------------------- products


@draws
def multiply_batches(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Products of stacks of matrices, of which one may be broadcast."""
    matrix = grow.matrix(tensor)
    rows, columns = matrix.shape
    stack = grow.concatenated([grow.reshape(matrix, 1, rows, columns)] * 2, 0)
    batch, width = grow.choose(1, 2), grow.between(1, 3)
    op0, op1 = (grow.choose(NONE, trt.MatrixOperation.TRANSPOSE) for _ in range(2))
    inner = columns if op0 is NONE else rows
    other = grow.constant(matrix.dtype, (batch, inner, width) if op1 is NONE else (batch, width, inner))
    if not grow.between(0, 3):
        op0, other, op1 = NONE, grow.constant(matrix.dtype, (batch, columns)), VECTOR
    return grow.tame(grow.network.add_matrix_multiply(stack, op0, other, op1).get_output(0))


EQUATIONS = [
    "ij,kj->ki",
    "ij,kj->ikj",
    "ij,ij->",
    "ij,ij->ij",
    "ij,kl->",
    "ij,ij->ji",
    "ji,jk->ikj",
    "...j,kj->k...",
    "ij,kj",
]


@draws
def einsum_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    matrix = grow.matrix(tensor)
    return grow.tame(grow.network.add_einsum([matrix, matrix], grow.choose(*EQUATIONS)).get_output(0))


@draws
def scale_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    image = channels(grow, tensor)
    mode, axis = grow.choose(*trt.ScaleMode), grow.between(1, 3)
    shape = {trt.ScaleMode.UNIFORM: (1,), trt.ScaleMode.CHANNEL: (image.shape[axis],)}.get(mode, tuple(image.shape[1:]))
    axis = 1 if mode is trt.ScaleMode.ELEMENTWISE else axis
    shift, scale = (grow.array(image.dtype, shape) for _ in range(2))
    return grow.tame(grow.network.add_scale_nd(image, mode, shift, scale, trt.Weights(), axis).get_output(0))


@draws
def determine_two(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """The determinants of two by two matrices."""
    x = grow.soft(tensor)
    rows = grow.reshape(x, 1, grow.size(x))
    shifted = grow.combine(rows, grow.filled(rows, 1 / 2), Op.SUB)
    matrices = grow.reshape(grow.concatenated([rows, shifted, shifted, rows], 0), 2, 2, grow.size(x))
    last = grow.network.add_shuffle(matrices)
    last.first_transpose = 2, 0, 1
    return grow.roughen(grow.network.add_determinant(last.get_output(0)).get_output(0))


@draws
def transform_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """A Fourier transform along an axis of at least two elements, of complex numbers back too."""
    x = grow.soft(tensor)
    flat = grow.reshape(x, grow.size(x))
    both = grow.concatenated([flat, flat], 0)
    is_real = grow.coin()
    rows = grow.reshape(both, 1, 2 * grow.size(x), 1) if is_real else grow.reshape(both, 1, grow.size(x), 2)
    small = grow.combine(rows, grow.filled(rows, 1 / 32), Op.PROD)
    layer = grow.network.add_dft(small, inverse=not is_real, onesided=is_real and grow.coin())
    return grow.roughen(layer.get_output(0))


# ---------------------------------------------------------------------------- few bits, sources and ranks


FEW_BITS = [trt.int8, trt.fp8, trt.int4, trt.fp4]
DYNAMIC = [(trt.int8, trt.float32), (trt.fp8, trt.float32), (trt.fp8, trt.e8m0)]


@draws
def quantize_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """To each type of few bits and back, with a scale for all, for an axis or for blocks."""
    dtype, x = grow.choose(*FEW_BITS), grow.with_axis(grow.small(tensor, grow.choose(trt.float32, trt.float16)))
    axis = grow.axis(x)
    blocks = tuple(grow.choose(1, length) for length in x.shape)
    shape = grow.choose(
        (), (x.shape[axis],), tuple(length // each for length, each in zip(x.shape, blocks, strict=True))
    )
    scale = grow.cast(grow.fixed(2.0 ** grow.array(trt.int32, shape, -1, 1)), x.dtype)
    layer = grow.network.add_quantize(x, scale, dtype)
    back = grow.network.add_dequantize(layer.get_output(0), scale, x.dtype)
    layer.axis = back.axis = axis if len(shape) == 1 else -1
    return back.get_output(0)


@draws
def quantize_by_largest(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """With scales that follow from the largest number of each block, and back."""
    dtype, scale = grow.choose(*DYNAMIC)
    row = grow.reshape(grow.small(tensor), 1, grow.size(tensor))
    row = grow.concatenated([row, grow.constant(trt.float32, (1, 1), 3, 4)], 1)  # the scale of zeros is not positive
    rows = grow.concatenated([row, grow.combine(row, grow.filled(row, 2), Op.PROD)], 0)
    block = 1, grow.size(row)
    layer = grow.network.add_dynamic_quantize_v2(rows, block, dtype, scale)
    made = grow.network.add_dequantize(*layer.outputs, trt.float32)
    made.block_shape = block
    return grow.roughen(grow.combine(made.get_output(0), grow.filled(made.get_output(0), 1 / 8), Op.PROD))


@draws
def fill_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """A line of whole numbers from a start that depends on the tensor."""
    dtype, shape = grow.choose(trt.float32, trt.int32, trt.int64), grow.choose((3,), (2, 2))
    fill = grow.network.add_fill(shape, trt.FillOperation.LINSPACE, dtype)
    start = grow.reshape(grow.one(tensor, grow.constant(dtype, (1,))), 1)
    fill.set_input(1, grow.reshape(start, *()))
    fill.set_input(2, grow.constant(dtype, (len(shape),)))
    return grow.tame(fill.get_output(0))


@draws
def collect_ranks(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Every collective operation, of a single rank."""
    x = grow.with_axis(grow.among(tensor, NUMBERS))
    op = grow.choose(*trt.CollectiveOperation, *[trt.CollectiveOperation.ALL_REDUCE] * 4)
    reduces = op.name in ("ALL_REDUCE", "REDUCE", "REDUCE_SCATTER")
    reduce = grow.choose(*REDUCTIONS[:4]) if reduces else trt.ReduceOperation.NONE
    root = 0 if op.name in ("BROADCAST", "REDUCE", "GATHER", "SCATTER") else -1
    return grow.network.add_dist_collective(x, op, reduce, root, []).get_output(0)


@draws
def draw_normally(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Random numbers of each distribution, drawn anew in each iteration that a number of it enters."""
    dtype, op = grow.choose(trt.float32, trt.float64), grow.choose(*list(trt.FillOperation)[1:])
    fill = grow.network.add_fill((), op, dtype)
    fill.alpha, fill.beta = grow.choose(0.25, 0.5), grow.choose(0.75, 1)
    fill.set_input(0, grow.network.add_shape(tensor).get_output(0))
    return grow.roughen(grow.combine(fill.get_output(0), grow.small(grow.soft(tensor), dtype), Op.SUM))


@draws
def split_anywhere(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """An element of a sequence of slices, with or without their axis."""
    x = grow.with_axis(grow.among(tensor, grow.divided))
    axis = grow.axis(x)
    parts = grow.network.add_sequence_split(x, None, axis - grow.choose(0, len(x.shape)), grow.coin()).get_output(0)
    place = grow.fixed(np.int64(grow.between(-x.shape[axis], x.shape[axis] - 1)))
    return grow.network.add_sequence_at(parts, place).get_output(0)


# ---------------------------------------------------------------------------- attention and experts


@draws
def attend_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """With two heads of queries, a mask or a causal kind, or packed sequences; not always with a softmax."""
    image = grow.small(grow.image(grow.soft(tensor)))
    query = grow.concatenated([image, grow.combine(image, grow.filled(image, 1 / 2), Op.PROD)], 1)
    rows, width = image.shape[2:]
    is_packed = grow.coin()
    tensors = [grow.reshape(each, -1, each.shape[1], width) if is_packed else each for each in (query, image, image)]
    layer = grow.network.add_attention_v2(
        *tensors, grow.choose(*trt.AttentionNormalizationOp), grow.choose(*trt.CausalMaskKind)
    )
    layer.decomposable = grow.coin()
    if is_packed:
        layer.query_form = layer.key_value_form = trt.AttentionIOForm.PACKED_NHD
        cut = grow.fixed(np.int32([0, grow.between(0, rows), rows]))
        layer.query_lengths = layer.key_value_lengths = cut
    elif layer.causal_kind is trt.CausalMaskKind.NONE:
        layer.mask = grow.constant(grow.choose(trt.bool, trt.float32), (1, 1, rows, rows), 0, 1)
    small = layer.get_output(0)
    return grow.roughen(grow.combine(small, grow.filled(small, 1 / 8), Op.PROD))


@draws
def experts_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Each token goes through two of three experts, with an activation."""
    matrix = grow.small(grow.matrix(grow.soft(tensor)))
    tokens, width = matrix.shape
    choice = grow.fixed(np.array([[grow.places(3, 2, True) for _ in range(tokens)]], np.int32))
    scores = grow.fixed(grow.array(trt.float32, (1, tokens, 2)) / 4)
    layer = grow.network.add_moe(grow.reshape(matrix, 1, tokens, width), choice, scores)
    sides = [(3, width, 2), (3, width, 2), (3, 2, width)]
    weights = (grow.fixed(grow.array(trt.float32, each) / 4) for each in sides)
    layer.set_gated_weights(*weights, grow.choose(*trt.MoEActType))
    return grow.roughen(layer.get_output(0))


@draws
def update_cache_anywhere(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Of two sequences, also before the beginning and past the end."""
    image = grow.image(tensor)
    update = grow.concatenated([image, grow.combine(image, grow.filled(image, 1), Op.SUM)], 0)
    rows, width = image.shape[2:]
    cache, places = grow.constant(image.dtype, (2, 1, 4, width)), grow.constant(trt.int32, (2,), -rows, 4)
    return grow.network.add_kv_cache_update(cache, update, places, trt.KVCacheMode.LINEAR).get_output(0)
