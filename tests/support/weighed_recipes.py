"""Recipes of windows, products, few bits, attention and experts, with attributes from their whole range."""

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import numpy_type
from tests.support.attribute_recipes import PADDING, REDUCTIONS, Pool
from tests.support.layer_specs import NONE, VECTOR, Kinds, Recipe
from tests.support.tensor_drawing import NUMBERS, Op

WEIGHED: list[Recipe] = []
"""The recipes of this module."""


def draws(recipe: Recipe) -> Recipe:
    WEIGHED.append(recipe)
    return recipe


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
    image = image if is_real or grow.next_of(0, 1) else grow.cast(image, grow.choose(trt.int32, trt.int64))
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
    kind = grow.next_of(*trt.PoolingType)
    image = channels(grow, tensor)
    is_exact = kind is trt.PoolingType.MAX
    layer = grow.network.add_pooling_nd(image if is_exact else grow.soft(image), kind, (1, 2))
    window(grow, layer)
    layer.pre_padding, layer.post_padding = (0, layer.pre_padding[1]), (0, layer.post_padding[1])
    layer.dilation_nd = (1, grow.between(1, 2)) if is_exact else (1, 1)
    layer.average_count_excludes_padding = grow.next_of(True, False)
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
    kind = grow.next_of(*trt.InterpolationMode)
    is_exact = kind is trt.InterpolationMode.NEAREST
    image = image if is_exact else grow.soft(image)
    layer = grow.network.add_resize(image)
    layer.resize_mode = kind
    layer.coordinate_transformation = grow.next_of(*trt.ResizeCoordinateTransformation)
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
    kind = grow.next_of(*trt.InterpolationMode)
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
    return grow.tame(grow.network.add_einsum([matrix, matrix], grow.next_of(*EQUATIONS)).get_output(0))


@draws
def scale_any(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    image = channels(grow, tensor)
    mode, axis = grow.next_of(*trt.ScaleMode), grow.between(1, 3)
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
    """Numbers of several digits to each type of few bits, and from it, with scales for all, for an axis or blocks."""
    dtype, x = grow.next_of(*FEW_BITS), grow.with_axis(grow.small(tensor, grow.choose(trt.float32, trt.float16)))
    x, axis = grow.combine(x, grow.filled(x, grow.choose(1, 3, 13)), Op.PROD), grow.axis(x)
    x = grow.concatenated([x] * {1: 4, 2: 2, 3: 2}.get(x.shape[axis], 1), axis)
    blocks = tuple(grow.choose(*(number for number in (1, 2, 3, length) if length % number == 0)) for length in x.shape)
    shape = grow.next_of(
        (), (x.shape[axis],), tuple(length // block for length, block in zip(x.shape, blocks, strict=True))
    )
    scales = [
        grow.cast(grow.fixed(2.0 ** grow.array(trt.int32, shape, least, least + 1)), x.dtype) for least in (-1, 0)
    ]
    layer = grow.network.add_quantize(x, scales[0], dtype)
    back = grow.network.add_dequantize(layer.get_output(0), scales[1], x.dtype)
    layer.axis = back.axis = axis if len(shape) == 1 else -1
    return grow.tame(back.get_output(0))


@draws
def quantize_by_largest(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """With scales that follow from the largest number of each block, and back; powers of two are an output too."""
    dtype, scale = grow.next_of(*DYNAMIC)
    row = grow.reshape(grow.small(tensor), 1, grow.size(tensor))
    row = grow.concatenated([row, grow.filled(row, 4)], 1)  # the scale of zeros is not positive
    rows = grow.concatenated([row, grow.combine(row, grow.filled(row, 7), Op.PROD)], 0)
    block = 1, grow.size(row)
    layer = grow.network.add_dynamic_quantize_v2(rows, block, dtype, scale)
    made = grow.network.add_dequantize(*layer.outputs, trt.float32)
    made.block_shape = block
    small = grow.combine(made.get_output(0), grow.filled(rows, 1 / 32), Op.PROD)
    if scale is trt.e8m0:
        small = grow.concatenated([small, grow.cast(layer.get_output(1), trt.float32)], 1)
    return grow.roughen(small)


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
def of_weights_alone(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """A layer of which no call changes the result, more than what is known while building."""
    table = grow.constant(trt.int32, (16, 17))
    other = grow.constant(trt.int32, (1, 17))
    moved = grow.network.add_shuffle(table)
    moved.first_transpose = 1, 0
    return grow.choose(grow.combine(table, other, grow.choose(Op.SUM, Op.MAX)), moved.get_output(0))


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
    dtype, op = grow.choose(trt.float32, trt.float64), grow.next_of(*list(trt.FillOperation)[1:])
    fill = grow.network.add_fill((), op, dtype)
    fill.alpha, fill.beta = grow.choose(0.25, 0.5), grow.choose(0.75, 1)
    fill.set_input(0, grow.network.add_shape(tensor).get_output(0))
    return grow.roughen(grow.combine(fill.get_output(0), grow.small(grow.soft(tensor), dtype), Op.SUM))


@draws
def draw_whole(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Random whole numbers, of a shape that is known, drawn anew for each call of a network that has them."""
    fill = grow.network.add_fill(grow.choose((3,), (2, 2)), trt.FillOperation.RANDOM_UNIFORM)
    fill.alpha, fill.beta = 0, 9
    drawn = grow.cast(fill.get_output(0), grow.choose(trt.int32, trt.int64))
    return grow.stir(drawn, tensor)


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
    tensors = [
        grow.reshape(tensor, -1, tensor.shape[1], width) if is_packed else tensor for tensor in (query, image, image)
    ]
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
    weights = (grow.fixed(grow.array(trt.float32, side) / 4) for side in sides)
    layer.set_gated_weights(*weights, grow.next_of(*trt.MoEActType))
    return grow.roughen(layer.get_output(0))


@draws
def update_cache_anywhere(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Of one sequence or two, also before the beginning and past the end."""
    image, sequences = grow.image(tensor), grow.next_of(1, 2)
    update = grow.concatenated([image, grow.combine(image, grow.filled(image, 1), Op.SUM)], 2 if sequences == 1 else 0)
    _, _, rows, width = update.shape
    cache = grow.constant(image.dtype, (sequences, 1, rows + 2, width))
    places = grow.fixed(np.int32([grow.choose(-1, 1 - rows, 1, 3, rows + 1) for _ in range(sequences)]))
    return grow.network.add_kv_cache_update(cache, update, places, trt.KVCacheMode.LINEAR).get_output(0)
