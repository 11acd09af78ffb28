"""A layer of every kind, from any tensor: what random networks are grown of.

Most arithmetic is exact: floats are whole numbers of at most 64, and integers wrap alike everywhere. So an engine and
the reference agree to the last bit, whatever a tensor goes on to decide.
Where a layer rounds, its result is *rough*: at most 1, known to within ``TOLERANCE``, and mixed only in ways that keep
errors from growing. Nothing is decided by a rough tensor.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import jax.numpy as jnp
import numpy as np

import netloop as trt
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.types import NUMPY_TYPES, numpy_type
from tests.support.plugin_examples import backwards

Op, Unary, Act = trt.ElementWiseOperation, trt.UnaryOperation, trt.ActivationType
NONE, VECTOR = trt.MatrixOperation.NONE, trt.MatrixOperation.VECTOR
DTYPES = list(NUMPY_TYPES)
FLOATS = [trt.float32, trt.float16, trt.bfloat16, trt.float64]
NUMBERS = [*FLOATS, trt.int32, trt.int64]
"""The types of most arithmetic."""
REDUCIBLE = [*NUMBERS, trt.int8, trt.uint8]
LISTED = [trt.bool, trt.float32, trt.float16, trt.float64, trt.int32, trt.int64, trt.int8, trt.uint8]
"""Types of which ONNX has sequences."""

UNSIGNED = (trt.uint2, trt.uint4, trt.uint8, trt.uint16, trt.uint32, trt.uint64)
LEAST = {trt.bool: 0, trt.int2: -2, trt.e8m0: 1, **dict.fromkeys(UNSIGNED, 0)}
MOST = {trt.bool: 1, trt.int2: 1, trt.uint2: 3, trt.e8m0: 2}
"""The numbers with which all types can be written exactly: from -4 to 4, but for these."""

LATEST = 3
"""How many of the latest tensors most are drawn from."""

BOUND = 64.0
"""Sums and products of a few small numbers are below it, and whole numbers up to it exact in all types of FLOATS."""
SHRINK = 1 / 8
"""What rough results are multiplied by; no layer here makes differences more than 4 times as large."""

TOLERANCE = {dtype: 2 * float(jnp.finfo(numpy_type(dtype)).eps) for dtype in FLOATS}
"""How far from the reference a rough tensor of an engine may be, absolutely, as its numbers are at most 1.

A layer that rounds is off by at most 8 steps of 1: its sums are short and in another order, its exp and tanh are other
polynomials, and halves are rounded once or after each step. SHRINK leaves 1 step of them, and half of what was off
before. All other tensors are equal to the last bit.
"""

Recipe = Callable[[Any, ITensor, list[ITensor]], ITensor]
RECIPES: dict[Recipe, tuple[type[ILayer], ...]] = {}
"""The methods that add a layer to a tensor, and the kinds of layers that each of them is there for."""


def adds(*kinds: type[ILayer]) -> Callable[[Recipe], Recipe]:
    def register(recipe: Recipe) -> Recipe:
        RECIPES[recipe] = kinds
        return recipe

    return register


def is_empty(tensor: ITensor) -> bool:
    return 0 in tuple(tensor.shape)


class Kinds:
    """Adds layers to a network, by chance.

    Attributes:
        dtypes: the element types that are drawn from.
        divided: those of them whose tensors are split into sequences.
        recipes: the recipes that are drawn from.
        chance: what decides.
        network: the network.
        rough: the tensors that are known up to a tolerance.
    """

    dtypes = DTYPES
    divided = LISTED
    recipes = RECIPES

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.network = trt.INetworkDefinition()
        self.rough: set[ITensor] = set()

    # ------------------------------------------------------------------ words

    def choose(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def coin(self) -> bool:
        return self.chance.random() < 0.5

    def between(self, least: int, most: int) -> int:
        return self.chance.randint(least, most)

    def pick(self, pool: list[ITensor], wanted: Callable[[ITensor], bool] | None = None) -> ITensor | None:
        """One of the tensors, mostly one of the latest that nobody reads yet, so that the network hangs together."""
        fitting = [each for each in pool if wanted is None or wanted(each)]
        if self.between(0, 3):
            fitting = [each for each in fitting if not each.uses][-LATEST:] or fitting[-LATEST:]
        return self.choose(*fitting) if fitting else None

    def pick_exact(self, pool: list[ITensor], wanted: Callable[[ITensor], bool]) -> ITensor | None:
        return self.pick(pool, lambda each: each not in self.rough and wanted(each))

    def like(self, pool: list[ITensor], tensor: ITensor) -> ITensor:
        """A tensor of the same type, and as rough, perhaps itself."""
        same = self.pick(pool, lambda each: self.are_alike(each, tensor))
        return tensor if same is None else same

    def are_alike(self, a: ITensor, b: ITensor) -> bool:
        return a.dtype is b.dtype and a.shape == b.shape and (a in self.rough) == (b in self.rough)

    def array(self, dtype: trt.DataType, shape: tuple[int, ...], least: int = -3, most: int = 4) -> np.ndarray:
        least, most = LEAST.get(dtype, least), MOST.get(dtype, most)
        drawn = [self.between(least, most) for _ in range(int(np.prod(shape)))]
        return np.array(drawn, np.float64).reshape(shape).astype(numpy_type(dtype))

    def constant(self, dtype: trt.DataType, shape: tuple[int, ...], least: int = -3, most: int = 4) -> ITensor:
        return self.fixed(self.array(dtype, shape, least, most))

    def fixed(self, array: Any) -> ITensor:
        array = np.asarray(array)
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

    def tame(self, tensor: ITensor) -> ITensor:
        """Keep floats small and whole, so that all arithmetic on them is exact."""
        return self.clip(tensor, -BOUND, BOUND) if tensor.dtype in FLOATS else tensor

    def small(self, tensor: ITensor, dtype: trt.DataType = trt.float32) -> ITensor:
        """The tensor with numbers from -4 to 4, or what of that the type holds, in a type."""
        real = tensor if tensor.dtype in FLOATS else self.cast(tensor, trt.float32)
        return self.cast(self.clip(real, LEAST.get(dtype, -4), MOST.get(dtype, 4)), dtype)

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
        rows = self.choose(*(each for each in (1, 2, 3) if self.size(tensor) % each == 0))
        return self.reshape(self.real(tensor), 1, 1, rows, self.size(tensor) // rows)

    def matrix(self, tensor: ITensor) -> ITensor:
        image = self.image(tensor)
        return self.reshape(image, *image.shape[2:])

    def size(self, tensor: ITensor) -> int:
        return int(np.prod(tuple(tensor.shape)))

    def axis(self, tensor: ITensor) -> int:
        return self.between(0, len(tensor.shape) - 1)

    def with_axis(self, tensor: ITensor) -> ITensor:
        return tensor if len(tensor.shape) else self.reshape(tensor, 1)

    def combine(self, a: ITensor, b: ITensor, op: trt.ElementWiseOperation) -> ITensor:
        return self.network.add_elementwise(a, b, op).get_output(0)

    def one(self, tensor: ITensor, like: ITensor) -> ITensor:
        """The largest number of a tensor, in the type and rank of another one."""
        flat = self.reshape(self.among(tensor, NUMBERS), self.size(tensor))
        most = self.network.add_reduce(flat, trt.ReduceOperation.MAX, 1, True).get_output(0)
        return self.reshape(self.small(most, like.dtype), *(1,) * len(like.shape))

    def stir(self, tensor: ITensor, other: ITensor) -> ITensor:
        """A tensor of the type of the first that depends on both."""
        number = self.one(other, tensor)
        if tensor.dtype in (*NUMBERS, trt.int8):
            return self.tame(self.combine(tensor, number, self.choose(Op.SUM, Op.SUB, Op.MAX)))
        if tensor.dtype is trt.bool:
            return self.combine(tensor, number, Op.XOR)
        flag = self.combine(tensor, number, Op.EQUAL)
        return self.network.add_select(flag, self.constant(tensor.dtype, (1,) * len(tensor.shape)), number).get_output(
            0
        )

    # ------------------------------------------------------------------ rough tensors

    def soft(self, tensor: ITensor) -> ITensor:
        """The tensor with numbers from -1 to 1."""
        return tensor if tensor in self.rough else self.clip(self.real(tensor), -1, 1)

    def roughen(self, tensor: ITensor) -> ITensor:
        """A result that is rounded, small enough for what is made of it."""
        inside = self.clip(tensor, -1, 1)
        made = self.combine(inside, self.filled(inside, SHRINK), Op.PROD)
        self.rough.add(made)
        return made

    def blend(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Mix a rough tensor with another one."""
        other = self.soft(self.pick(pool, lambda each: each.dtype is tensor.dtype and each.shape == tensor.shape))
        return self.roughen(self.combine(tensor, other, self.choose(Op.SUM, Op.SUB, Op.PROD, Op.MAX, Op.MIN)))

    @adds(trt.IActivationLayer)
    def bend(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        kind = self.choose(Act.TANH, Act.SIGMOID, Act.ELU, Act.SOFTSIGN, Act.GELU_TANH)
        return self.roughen(self.network.add_activation(self.soft(tensor), kind).get_output(0))

    @adds(trt.ISoftMaxLayer)
    def softmax(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.soft(tensor))
        layer = self.network.add_softmax(tensor)
        layer.axes = 1 << self.axis(tensor)
        return self.roughen(layer.get_output(0))

    @adds(trt.IRaggedSoftMaxLayer)
    def ragged_softmax(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        rows = self.reshape(self.small(self.soft(tensor)), 1, 1, self.size(tensor))
        bounds = self.constant(trt.int32, (1, 1, 1), 0, self.size(tensor))
        return self.roughen(self.network.add_ragged_softmax(rows, bounds).get_output(0))

    @adds(trt.INormalizationLayer)
    def normalize(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        x = self.reshape(self.soft(tensor), 1, 1, self.size(tensor))
        scale, bias = self.filled(x, 1), self.filled(x, 0)
        layer = self.network.add_normalization_v2(x, scale, bias, 0b100)
        layer.epsilon = 1
        return self.roughen(layer.get_output(0))

    @adds(trt.ILRNLayer)
    def lrn(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(self.soft(tensor))
        return self.roughen(self.network.add_lrn(image, 3, 0.5, 0.75, 1.0).get_output(0))

    @adds(trt.IAttentionInputLayer, trt.IAttentionOutputLayer)
    def attend(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        query = self.small(self.image(self.soft(tensor)))
        softmax, causal = trt.AttentionNormalizationOp.SOFTMAX, self.choose(*trt.CausalMaskKind)
        return self.roughen(self.network.add_attention_v2(query, query, query, softmax, causal).get_output(0))

    @adds(trt.IFillLayer)
    def random(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """As rough as its draw, plus a number of this trip, so that it is drawn in each."""
        fill = self.network.add_fill((), trt.FillOperation.RANDOM_UNIFORM)
        fill.set_input(0, self.network.add_shape(tensor).get_output(0))
        return self.roughen(self.combine(fill.get_output(0), self.small(self.soft(tensor)), Op.SUM))

    # ------------------------------------------------------------------ numbers

    @adds(trt.IElementWiseLayer)
    def mix(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        other = self.like(pool, tensor)
        if tensor.dtype is trt.bool:
            return self.combine(tensor, other, self.choose(Op.AND, Op.OR, Op.XOR, Op.EQUAL))
        if tensor.dtype not in (*NUMBERS, trt.int8):
            return self.combine(tensor, other, Op.EQUAL)
        ops = (Op.SUM, Op.SUB, Op.PROD, Op.MAX, Op.MIN, Op.LESS, Op.GREATER, Op.EQUAL)
        return self.tame(self.combine(tensor, other, self.choose(*ops)))

    @adds(trt.ICastLayer)
    def convert(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        dtype = self.choose(*self.dtypes)
        if tensor.dtype in NUMBERS and dtype in NUMBERS:
            return self.tame(self.cast(tensor, dtype))
        return self.small(tensor, dtype) if dtype is not trt.bool else self.cast(tensor, dtype)

    @adds(trt.ISelectLayer)
    def select(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        flag = self.pick(pool, lambda each: each.dtype is trt.bool and each.shape == tensor.shape)
        other = self.like(pool, tensor)
        if flag is None:
            flag = self.combine(tensor, other, Op.EQUAL)
        return self.network.add_select(flag, other, tensor).get_output(0)

    @adds(trt.IIdentityLayer)
    def identity(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.network.add_identity(tensor).get_output(0)

    @adds(trt.IUnaryLayer)
    def unary(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        if tensor.dtype is trt.bool:
            return self.network.add_unary(tensor, Unary.NOT).get_output(0)
        tensor = self.among(tensor, NUMBERS)
        ops = (Unary.NEG, Unary.ABS, Unary.SIGN)
        return self.network.add_unary(tensor, self.choose(*ops)).get_output(0)

    @adds(trt.IActivationLayer)
    def rectify(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        layer = self.network.add_activation(self.real(tensor), self.choose(Act.RELU, Act.LEAKY_RELU))
        layer.alpha = 2
        return layer.get_output(0)

    @adds(trt.IParametricReLULayer)
    def parametric_relu(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.real(tensor)
        slopes = self.constant(tensor.dtype, (1,) * len(tensor.shape))
        return self.network.add_parametric_relu(tensor, slopes).get_output(0)

    @adds(trt.IScaleLayer)
    def scale(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(tensor)
        shift, scale = (self.array(image.dtype, (1,)) for _ in range(2))
        return self.network.add_scale(image, trt.ScaleMode.UNIFORM, shift, scale).get_output(0)

    @adds(trt.IBitCastLayer)
    def read_bits(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Of whole numbers, or the same without a sign."""
        whole = self.among(tensor, [trt.int32, trt.uint32])
        return self.network.add_bit_cast(whole, self.choose(trt.int32, trt.uint32)).get_output(0)

    # ------------------------------------------------------------------ sums and products

    @adds(trt.IReduceLayer)
    def reduce(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.among(tensor, REDUCIBLE))
        op = self.choose(trt.ReduceOperation.SUM, trt.ReduceOperation.MAX, trt.ReduceOperation.MIN)
        layer = self.network.add_reduce(tensor, op, 1 << self.axis(tensor), self.coin())
        return self.tame(layer.get_output(0))

    @adds(trt.ICumulativeLayer)
    def cumulate(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.among(tensor, NUMBERS))
        axis, flags = self.fixed(np.int32(self.axis(tensor))), [self.coin() for _ in range(2)]
        return self.tame(self.network.add_cumulative(tensor, axis, trt.CumulativeOperation.SUM, *flags).get_output(0))

    @adds(trt.IMatrixMultiplyLayer)
    def multiply(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        matrix = self.matrix(tensor)
        if self.coin():
            vector = self.constant(matrix.dtype, (matrix.shape[1],))
            made = self.network.add_matrix_multiply(matrix, NONE, vector, VECTOR)
        else:
            made = self.network.add_matrix_multiply(matrix, trt.MatrixOperation.TRANSPOSE, matrix, NONE)
        return self.tame(made.get_output(0))

    @adds(trt.IEinsumLayer)
    def einsum(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        matrix = self.matrix(tensor)
        return self.tame(self.network.add_einsum([matrix, matrix], self.choose("ij,ij->j", "ij,kj->ik")).get_output(0))

    @adds(trt.IDeterminantLayer)
    def determine(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        ones = self.reshape(self.soft(tensor), self.size(tensor), 1, 1)
        return self.roughen(self.network.add_determinant(ones).get_output(0))

    @adds(trt.IDFTLayer)
    def transform(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        layer = self.network.add_dft(self.reshape(self.soft(tensor), self.size(tensor), 1, 1), onesided=self.coin())
        layer.set_input(1, self.constant(trt.int32, (), 3, 3))
        return self.roughen(layer.get_output(0))

    @adds(trt.IConvolutionLayer)
    def convolve(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(tensor)
        layer = self.network.add_convolution_nd(image, 2, (1, 2), self.array(image.dtype, (2, 1, 1, 2)))
        layer.pre_padding = (0, 1)
        return layer.get_output(0)

    @adds(trt.IDeconvolutionLayer)
    def deconvolve(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(tensor)
        layer = self.network.add_deconvolution_nd(image, 1, (1, 2), self.array(image.dtype, (1, 1, 1, 2)))
        layer.stride_nd = (1, self.between(1, 2))
        return layer.get_output(0)

    @adds(trt.IPoolingLayer)
    def shrink(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        layer = self.network.add_pooling_nd(self.image(tensor), trt.PoolingType.MAX, (1, 2))
        layer.pre_padding = (0, 1)
        return layer.get_output(0)

    @adds(trt.IPoolingIndicesLayer)
    def point(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.network.add_pooling_indices(self.image(tensor), (1, 1)).get_output(0)

    @adds(trt.IMoELayer)
    def experts(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Each token goes through one of two experts, without an activation."""
        matrix = self.small(self.matrix(tensor))
        tokens, width = matrix.shape
        choice = self.constant(trt.int32, (1, tokens, 1), 0, 1)
        layer = self.network.add_moe(
            self.reshape(matrix, 1, tokens, width), choice, self.fixed(np.ones((1, tokens, 1), np.float32))
        )
        sides = [(2, width, 2), (2, width, 2), (2, 2, width)]
        layer.set_gated_weights(*(self.constant(trt.float32, each, -1, 1) for each in sides), trt.MoEActType.NONE)
        return self.tame(layer.get_output(0))

    # ------------------------------------------------------------------ few bits

    @adds(trt.IQuantizeLayer)
    def quantize(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        dtype = self.choose(trt.int8, trt.fp8)
        return self.network.add_quantize(
            self.with_axis(self.small(tensor)), self.fixed(np.float32(0.5)), dtype
        ).get_output(0)

    @adds(trt.IDequantizeLayer)
    def dequantize(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        few = self.small(self.with_axis(tensor), self.choose(trt.int8, trt.fp8))
        return self.network.add_dequantize(few, self.fixed(np.float32(2)), trt.float32).get_output(0)

    @adds(trt.IDynamicQuantizeLayer)
    def quantize_dynamically(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """There and back: scales that are powers of two change no whole number that is small."""
        rows = self.reshape(self.small(tensor), 1, self.size(tensor))
        layer = self.network.add_dynamic_quantize_v2(rows, (1, self.size(tensor)), trt.fp8, trt.e8m0)
        return self.network.add_dequantize(*layer.outputs, trt.float32).get_output(0)

    # ------------------------------------------------------------------ choosing and moving

    @adds(trt.IGatherLayer)
    def gather(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(tensor)
        axis, shape = self.axis(tensor), self.choose((), (1,), (2,))
        indices = self.constant(self.choose(trt.int32, trt.int64), shape, 0, tensor.shape[axis] - 1)
        return self.network.add_gather(tensor, indices, axis).get_output(0)

    @adds(trt.IScatterLayer)
    def scatter(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(tensor)
        length, others = tensor.shape[0], (1,) * (len(tensor.shape) - 1)
        indices = self.constant(trt.int32, (1, *others), 0, length - 1)
        updates = self.constant(tensor.dtype, (1, *others))
        return self.network.add_scatter(tensor, indices, updates, trt.ScatterMode.ELEMENT).get_output(0)

    @adds(trt.IOneHotLayer)
    def one_hot(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        indices = self.clip(self.small(tensor), 0, 2)
        values = self.constant(self.choose(*self.dtypes), (2,))
        depth = self.fixed(np.int32(3))
        return self.network.add_one_hot(self.cast(indices, trt.int32), values, depth, -1).get_output(0)

    @adds(trt.ITopKLayer)
    def top(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.among(tensor, REDUCIBLE))
        axis = self.axis(tensor)
        number = self.between(1, tensor.shape[axis])
        layer = self.network.add_topk(tensor, self.choose(*trt.TopKOperation), number, 1 << axis)
        return layer.get_output(self.between(0, 1))

    @adds(trt.INonZeroLayer)
    def non_zero(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """The sums of the places: what is found has a length that only the run tells."""
        places = self.network.add_non_zero(self.with_axis(self.among(tensor, [trt.bool, *NUMBERS]))).get_output(0)
        return self.network.add_reduce(places, trt.ReduceOperation.SUM, 2, False).get_output(0)

    @adds(trt.IUniqueLayer)
    def find_unique(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """For each element which of the unique ones it is: their number is one that only the run tells."""
        return self.network.add_unique(self.among(tensor, [trt.bool, *NUMBERS]), None, self.coin()).get_output(2)

    @adds(
        trt.ISequenceLayer,
        trt.ISequenceInsertLayer,
        trt.ISequenceEraseLayer,
        trt.ISequenceLengthLayer,
        trt.ISequenceAtLayer,
    )
    def list_tensors(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """The last tensor of a sequence of two, after one was put in and one taken out."""
        tensor = self.among(tensor, LISTED)
        other = self.like(pool, tensor)
        made = self.network.add_sequence([tensor, other]).get_output(0)
        place = self.fixed(np.int64(self.between(-2, 2))) if self.coin() else None
        made = self.network.add_sequence_insert(made, other, place).get_output(0)
        made = self.network.add_sequence_erase(made, self.fixed(np.int32(self.between(-3, 2)))).get_output(0)
        length = self.network.add_sequence_length(made).get_output(0)
        return self.network.add_sequence_at(made, self.combine(length, self.fixed(np.int64(-1)), Op.SUM)).get_output(0)

    @adds(trt.ISequenceSplitLayer, trt.ISequenceConcatenationLayer)
    def split_tensor(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Two parts joined again."""
        tensor = self.with_axis(self.among(tensor, self.divided))
        axis = self.axis(tensor)
        length = tensor.shape[axis]
        first = self.between(0, length)
        parts = self.network.add_sequence_split(tensor, self.fixed([first, length - first]), axis).get_output(0)
        shuffle = self.network.add_shuffle(self.network.add_sequence_concatenation(parts, axis).get_output(0))
        shuffle.zero_is_placeholder = False
        shuffle.reshape_dims = tensor.shape
        return shuffle.get_output(0)

    @adds(trt.IOptionalLayer, trt.IOptionalHasLayer, trt.IOptionalGetLayer)
    def wrap_tensor(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """The tensor, as it is there."""
        tensor = self.among(tensor, LISTED)
        held = self.network.add_optional(tensor).get_output(0)
        there = self.reshape(self.network.add_optional_has(held).get_output(0), *(1,) * len(tensor.shape))
        got = self.network.add_optional_get(held).get_output(0)
        return self.network.add_select(there, got, self.like(pool, tensor)).get_output(0)

    @adds(trt.INMSLayer)
    def suppress(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """How many of some boxes far from each other have scores above 0."""
        number = self.size(tensor)
        corners = 10 * np.arange(number, dtype=np.float32)[:, None] + np.float32([0, 0, 4, 4])
        scores = self.reshape(self.small(tensor), 1, number, 1)
        layer = self.network.add_nms(self.fixed(corners[None]), scores, self.fixed(np.int32(2)))
        return layer.get_output(1)

    @adds(trt.IReverseSequenceLayer)
    def reverse_sequence(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        rows = self.reshape(tensor, self.size(tensor), 1)
        lengths = self.constant(trt.int32, (1,), 0, self.size(tensor))
        return self.network.add_reverse_sequence(rows, lengths).get_output(0)

    @adds(trt.IKVCacheUpdateLayer)
    def update_cache(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        update = self.image(tensor)
        rows, width = update.shape[2:]
        cache, place = self.constant(update.dtype, (1, 1, 4, width)), self.constant(trt.int32, (1,), 0, 4 - rows)
        return self.network.add_kv_cache_update(cache, update, place, trt.KVCacheMode.LINEAR).get_output(0)

    @adds(trt.IRotaryEmbeddingLayer)
    def rotate(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Turns by whole numbers of right angles."""
        flat = self.reshape(self.real(tensor), 1, 1, 1, self.size(tensor))
        both = self.network.add_concatenation([flat, flat])
        both.axis = 3
        turns = self.array(trt.int32, (self.size(tensor),), 0, 3)
        cos, sin = (
            self.fixed(np.array(table)[turns].reshape(1, 1, -1).astype(numpy_type(flat.dtype)))
            for table in ([1, 0, -1, 0], [0, 1, 0, -1])
        )
        is_interleaved = self.coin()
        return self.network.add_rotary_embedding(both.get_output(0), cos, sin, is_interleaved, 0).get_output(0)

    @adds(trt.IDistCollectiveLayer)
    def reduce_ranks(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.among(tensor, NUMBERS))
        sum = trt.ReduceOperation.SUM
        return self.network.add_dist_collective(tensor, trt.CollectiveOperation.ALL_REDUCE, sum, -1, []).get_output(0)

    # ------------------------------------------------------------------ shapes

    @adds(trt.ISliceLayer)
    def flip(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(tensor)
        starts = [length - 1 for length in tensor.shape]
        return self.network.add_slice(tensor, starts, tuple(tensor.shape), (-1,) * len(starts)).get_output(0)

    @adds(trt.IPluginV3Layer)
    def turn(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.network.add_plugin_v3([tensor], [], backwards()).get_output(0)

    @adds(trt.IPaddingLayer)
    def pad(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.network.add_padding_nd(self.image(tensor), (0, 1), (0, -1)).get_output(0)

    @adds(trt.IConcatenationLayer)
    def concatenate(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(tensor)
        layer = self.network.add_concatenation([tensor, self.like(pool, tensor)])
        layer.axis = self.axis(tensor)
        return layer.get_output(0)

    @adds(trt.IShuffleLayer)
    def shuffle(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        layer = self.network.add_shuffle(tensor)
        layer.first_transpose = self.chance.sample(range(len(tensor.shape)), len(tensor.shape))
        layer.reshape_dims = self.choose((-1,), (1, -1), (-1, 1))
        return layer.get_output(0)

    @adds(trt.ISqueezeLayer, trt.IUnsqueezeLayer)
    def unsqueeze(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Two axes more, and one of them away."""
        axes, one = self.fixed(np.int32([0, 1])), self.fixed(np.int32([self.between(0, 1)]))
        return self.network.add_squeeze(self.network.add_unsqueeze(tensor, axes).get_output(0), one).get_output(0)

    @adds(trt.IResizeLayer)
    def resize(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        matrix = self.matrix(tensor)
        layer = self.network.add_resize(matrix)
        layer.shape = (matrix.shape[0], 3)
        return layer.get_output(0)

    @adds(trt.IGridSampleLayer)
    def sample(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(tensor)
        layer = self.network.add_grid_sample(image, self.constant(image.dtype, (1, 1, 2, 2), -1, 1))
        layer.interpolation_mode, layer.align_corners = trt.InterpolationMode.NEAREST, True
        return layer.get_output(0)

    @adds(trt.IConstantLayer, trt.IShapeLayer)
    def measure(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        shape = self.network.add_shape(tensor).get_output(0)
        return self.combine(shape, self.constant(trt.int64, (1,)), Op.SUM)

    @adds(trt.IAssertionLayer)
    def assure(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """An assertion that holds."""
        alike = self.combine(tensor, tensor, Op.EQUAL)
        flags = self.reshape(alike, self.size(tensor))
        self.network.add_assertion(flags, "what is equal to itself")
        return alike
