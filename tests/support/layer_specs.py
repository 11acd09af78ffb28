"""Every layer kind in one entry: example calls of the methods that add it, and a recipe that adds it by chance.

A new kind costs one method of ``Kinds`` here, marked with ``adds``. It is then poisoned in one place at a time
(``tests/model/layers/test_bad_input.py``), held to the laws (``tests/model/layers/test_example_calls.py``), and part
of the random networks (``tests/support/strategies.py``).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import numpy_type
from tests.support.plugin_examples import backwards
from tests.support.tensor_drawing import LISTED, NUMBERS, REDUCIBLE, Act, Drawing, Op

Unary = trt.UnaryOperation
NONE, VECTOR = trt.MatrixOperation.NONE, trt.MatrixOperation.VECTOR
F, I, L, B, S = trt.float32, trt.int32, trt.int64, trt.bool, trt.DataType.STRING  # noqa: E741
WEIGHTS = np.ones(9, np.float32)


class Tensors:
    """The tensors of an example call: inputs and constants of a network."""

    def __init__(self, network: trt.INetworkDefinition) -> None:
        self._network = network

    def __call__(self, dtype: trt.DataType, *shape: int) -> ITensor:
        return self._network.add_input(f"input {self._network.num_inputs}", dtype, shape)

    def sequence(self) -> ITensor:
        return self._network.add_sequence_input(f"input {self._network.num_inputs}", F, (2,))

    def map(self) -> ITensor:
        return self._network.add_map_input(f"input {self._network.num_inputs}", L, F)

    def optional(self) -> ITensor:
        return self._network.add_optional_input(f"input {self._network.num_inputs}", F, (2,))

    def constant(self, value: Any, dtype: Any = np.int32) -> ITensor:
        return self._network.add_constant(np.shape(value), np.ascontiguousarray(value, dtype)).get_output(0)


Arguments = Callable[[Tensors], dict[str, Any]]
Recipe = Callable[[Any, ITensor, list[ITensor]], ITensor]

CALLS: dict[str, Arguments] = {}
"""Valid arguments of each method of a network that adds a layer."""

RECIPES: dict[Recipe, tuple[str, ...]] = {}
"""The recipes that add a layer to a tensor, and the methods whose kinds of layers each of them is there for."""


def adds(**calls: Arguments) -> Callable[[Recipe], Recipe]:
    """Register a recipe, and valid arguments of each method whose kind of layer it adds."""

    def register(recipe: Recipe) -> Recipe:
        CALLS.update(calls)
        RECIPES[recipe] = tuple(calls)
        return recipe

    return register


class Kinds(Drawing):
    """Adds layers of every kind to a network by chance.

    Attributes:
        recipes: the recipes to draw from.
    """

    recipes = RECIPES

    @adds()
    def bend(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        kind = self.choose(Act.TANH, Act.SIGMOID, Act.ELU, Act.SOFTSIGN, Act.GELU_TANH)
        return self.roughen(self.network.add_activation(self.soft(tensor), kind).get_output(0))

    @adds(add_softmax=lambda t: {"input": t(F, 2, 3)})
    def softmax(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.soft(tensor))
        layer = self.network.add_softmax(tensor)
        layer.axes = 1 << self.axis(tensor)
        return self.roughen(layer.get_output(0))

    @adds(add_ragged_softmax=lambda t: {"input": t(F, 1, 2, 3), "bounds": t(I, 1, 2, 1)})
    def ragged_softmax(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        rows = self.reshape(self.small(self.soft(tensor)), 1, 1, self.size(tensor))
        bounds = self.constant(trt.int32, (1, 1, 1), 0, self.size(tensor))
        return self.roughen(self.network.add_ragged_softmax(rows, bounds).get_output(0))

    @adds(
        add_normalization=lambda t: {
            "input": t(F, 1, 2, 3),
            "scale": t(F, 1, 2, 1),
            "bias": t(F, 1, 2, 1),
            "axesMask": 4,
        },
        add_normalization_v2=lambda t: {
            "input": t(F, 1, 2, 3),
            "scale": t(F, 1, 2, 1),
            "bias": t(F, 1, 2, 1),
            "axesMask": 4,
        },
    )
    def normalize(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        x = self.reshape(self.soft(tensor), 1, 1, self.size(tensor))
        scale, bias = self.filled(x, 1), self.filled(x, 0)
        layer = self.network.add_normalization_v2(x, scale, bias, 0b100)
        layer.epsilon = 1
        return self.roughen(layer.get_output(0))

    @adds(add_lrn=lambda t: {"input": t(F, 1, 3, 2), "window": 3, "alpha": 1.0, "beta": 0.75, "k": 1.0})
    def lrn(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(self.soft(tensor))
        return self.roughen(self.network.add_lrn(image, 3, 0.5, 0.75, 1.0).get_output(0))

    @adds(
        add_attention=lambda t: {
            **{name: t(F, 1, 2, 3, 4) for name in ("query", "key", "value")},
            "norm_op": trt.AttentionNormalizationOp.SOFTMAX,
            "causal": False,
        },
        add_attention_v2=lambda t: {
            **{name: t(F, 1, 2, 3, 4) for name in ("query", "key", "value")},
            "norm_op": trt.AttentionNormalizationOp.SOFTMAX,
            "causal_kind": trt.CausalMaskKind.NONE,
        },
    )
    def attend(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        query = self.small(self.image(self.soft(tensor)))
        softmax, causal = trt.AttentionNormalizationOp.SOFTMAX, self.choose(*trt.CausalMaskKind)
        return self.roughen(self.network.add_attention_v2(query, query, query, softmax, causal).get_output(0))

    @adds(add_fill=lambda t: {"shape": (3,), "op": trt.FillOperation.LINSPACE, "output_type": F})
    def random(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """As rough as its draw, plus a number of this trip, so that it is drawn in each."""
        fill = self.network.add_fill((), trt.FillOperation.RANDOM_UNIFORM)
        fill.set_input(0, self.network.add_shape(tensor).get_output(0))
        return self.roughen(self.combine(fill.get_output(0), self.small(self.soft(tensor)), Op.SUM))

    # ------------------------------------------------------------------ numbers

    @adds(add_elementwise=lambda t: {"input1": t(F, 2, 3), "input2": t(F, 2, 3), "op": trt.ElementWiseOperation.SUM})
    def mix(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        other = self.other(pool, tensor)
        if tensor.dtype is trt.bool:
            return self.combine(tensor, other, self.choose(Op.AND, Op.OR, Op.XOR, Op.XOR, Op.EQUAL))
        if tensor.dtype not in self.arithmetic:
            return self.stir(tensor, other) if self.coin() else self.combine(tensor, other, Op.EQUAL)
        ops = (Op.SUM, Op.SUB, Op.SUM, Op.SUB, Op.PROD, Op.MAX, Op.MIN, Op.LESS, Op.GREATER, Op.EQUAL)
        return self.tame(self.combine(tensor, other, self.choose(*ops)))

    @adds(add_cast=lambda t: {"input": t(F, 2), "to_type": I})
    def convert(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        dtype = self.choose(*self.dtypes)
        if tensor.dtype in NUMBERS and dtype in NUMBERS:
            return self.tame(self.cast(tensor, dtype))
        return self.small(tensor, dtype) if dtype is not trt.bool else self.cast(tensor, dtype)

    @adds(add_select=lambda t: {"condition": t(B, 2, 3), "then_input": t(F, 2, 3), "else_input": t(F, 2, 3)})
    def select(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        flag = self.pick(pool, lambda other: other.dtype is trt.bool and other.shape == tensor.shape)
        other = self.other(pool, tensor)
        if flag is None:
            flag = self.combine(tensor, self.other(pool, tensor), Op.EQUAL)
        return self.network.add_select(flag, other, tensor).get_output(0)

    @adds(add_identity=lambda t: {"input": t(F, 2)})
    def identity(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.network.add_identity(tensor).get_output(0)

    @adds(add_unary=lambda t: {"input": t(F, 2, 3), "op": trt.UnaryOperation.NEG})
    def unary(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        if tensor.dtype is trt.bool:
            return self.network.add_unary(tensor, Unary.NOT).get_output(0)
        tensor = self.among(tensor, NUMBERS)
        ops = (Unary.NEG, Unary.ABS, Unary.SIGN)
        return self.network.add_unary(tensor, self.choose(*ops)).get_output(0)

    @adds(add_activation=lambda t: {"input": t(F, 2, 3), "type": trt.ActivationType.RELU})
    def rectify(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        layer = self.network.add_activation(self.real(tensor), self.choose(Act.RELU, Act.LEAKY_RELU))
        layer.alpha = 2
        return layer.get_output(0)

    @adds(add_parametric_relu=lambda t: {"input": t(F, 2, 3), "slopes": t(F, 1, 3)})
    def parametric_relu(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.real(tensor)
        slopes = self.constant(tensor.dtype, (1,) * len(tensor.shape))
        return self.network.add_parametric_relu(tensor, slopes).get_output(0)

    @adds(
        add_scale=lambda t: {
            "input": t(F, 1, 1, 2, 2),
            "mode": trt.ScaleMode.UNIFORM,
            **dict.fromkeys(("shift", "scale", "power"), WEIGHTS[:1]),
        },
        add_scale_nd=lambda t: {
            "input": t(F, 1, 1, 2, 2),
            "mode": trt.ScaleMode.UNIFORM,
            **dict.fromkeys(("shift", "scale", "power"), WEIGHTS[:1]),
            "channel_axis": 1,
        },
    )
    def scale(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(tensor)
        shift, scale = (self.array(image.dtype, (1,)) for _ in range(2))
        return self.network.add_scale(image, trt.ScaleMode.UNIFORM, shift, scale).get_output(0)

    @adds(add_bit_cast=lambda t: {"input": t(F, 2, 3), "to_type": I})
    def read_bits(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Of whole numbers, or the same without a sign."""
        whole = self.among(tensor, [trt.int32, trt.uint32])
        return self.network.add_bit_cast(whole, self.choose(trt.int32, trt.uint32)).get_output(0)

    # ------------------------------------------------------------------ sums and products

    @adds(add_reduce=lambda t: {"input": t(F, 2, 3), "op": trt.ReduceOperation.SUM, "axes": 2, "keep_dims": False})
    def reduce(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.among(tensor, REDUCIBLE))
        op = self.choose(trt.ReduceOperation.SUM, trt.ReduceOperation.MAX, trt.ReduceOperation.MIN)
        layer = self.network.add_reduce(tensor, op, 1 << self.axis(tensor), self.coin())
        return self.tame(layer.get_output(0))

    @adds(
        add_cumulative=lambda t: {
            "input": t(F, 2, 3),
            "axis": t.constant(1),
            "op": trt.CumulativeOperation.SUM,
            "exclusive": False,
            "reverse": False,
        }
    )
    def cumulate(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.among(tensor, NUMBERS))
        axis, flags = self.fixed(np.int32(self.axis(tensor))), [self.coin() for _ in range(2)]
        return self.tame(self.network.add_cumulative(tensor, axis, trt.CumulativeOperation.SUM, *flags).get_output(0))

    @adds(add_matrix_multiply=lambda t: {"input0": t(F, 2, 3), "op0": NONE, "input1": t(F, 3, 4), "op1": NONE})
    def multiply(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        matrix = self.matrix(tensor)
        if self.coin():
            vector = self.constant(matrix.dtype, (matrix.shape[1],))
            made = self.network.add_matrix_multiply(matrix, NONE, vector, VECTOR)
        else:
            made = self.network.add_matrix_multiply(matrix, trt.MatrixOperation.TRANSPOSE, matrix, NONE)
        return self.tame(made.get_output(0))

    @adds(add_einsum=lambda t: {"inputs": [t(F, 2, 3), t(F, 3, 4)], "equation": "ij,jk->ik"})
    def einsum(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        matrix = self.matrix(tensor)
        return self.tame(self.network.add_einsum([matrix, matrix], self.choose("ij,ij->j", "ij,kj->ik")).get_output(0))

    @adds(add_determinant=lambda t: {"input": t(F, 2, 3, 3)})
    def determine(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        ones = self.reshape(self.soft(tensor), self.size(tensor), 1, 1)
        return self.roughen(self.network.add_determinant(ones).get_output(0))

    @adds(add_dft=lambda t: {"input": t(F, 3, 2), "axis": -2, "inverse": False, "onesided": False})
    def transform(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        layer = self.network.add_dft(self.reshape(self.soft(tensor), self.size(tensor), 1, 1), onesided=self.coin())
        layer.set_input(1, self.constant(trt.int32, (), 3, 3))
        return self.roughen(layer.get_output(0))

    @adds(
        add_convolution_nd=lambda t: {
            "input": t(F, 1, 1, 5, 5),
            "num_output_maps": 1,
            "kernel_shape": (3, 3),
            "kernel": WEIGHTS,
            "bias": WEIGHTS[:1],
        }
    )
    def convolve(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(tensor)
        layer = self.network.add_convolution_nd(image, 2, (1, 2), self.array(image.dtype, (2, 1, 1, 2)))
        layer.pre_padding = (0, 1)
        return layer.get_output(0)

    @adds(
        add_deconvolution_nd=lambda t: {
            "input": t(F, 1, 1, 5, 5),
            "num_output_maps": 1,
            "kernel_shape": (3, 3),
            "kernel": WEIGHTS,
            "bias": WEIGHTS[:1],
        }
    )
    def deconvolve(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(tensor)
        layer = self.network.add_deconvolution_nd(image, 1, (1, 2), self.array(image.dtype, (1, 1, 1, 2)))
        layer.stride_nd = (1, self.between(1, 2))
        return layer.get_output(0)

    @adds(add_pooling_nd=lambda t: {"input": t(F, 1, 1, 4, 4), "type": trt.PoolingType.MAX, "window_size": (2, 2)})
    def shrink(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        layer = self.network.add_pooling_nd(self.image(tensor), trt.PoolingType.MAX, (1, 2))
        layer.pre_padding = (0, 1)
        return layer.get_output(0)

    @adds(add_pooling_indices=lambda t: {"input": t(F, 1, 1, 4, 4), "window_size": (2, 2), "indices_type": I})
    def point(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.network.add_pooling_indices(self.image(tensor), (1, 1)).get_output(0)

    @adds(
        add_moe=lambda t: {
            "hidden_states": t(F, 1, 2, 3),
            "selected_experts_for_tokens": t(I, 1, 2, 1),
            "scores_for_selected_experts": t(F, 1, 2, 1),
        }
    )
    def experts(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Each token goes through one of two experts, without an activation."""
        matrix = self.small(self.matrix(tensor))
        tokens, width = matrix.shape
        choice = self.constant(trt.int32, (1, tokens, 1), 0, 1)
        layer = self.network.add_moe(
            self.reshape(matrix, 1, tokens, width), choice, self.fixed(np.ones((1, tokens, 1), np.float32))
        )
        sides = [(2, width, 2), (2, width, 2), (2, 2, width)]
        layer.set_gated_weights(*(self.constant(trt.float32, side, -1, 1) for side in sides), trt.MoEActType.NONE)
        return self.tame(layer.get_output(0))

    # ------------------------------------------------------------------ few bits

    @adds(add_quantize=lambda t: {"input": t(F, 2, 3), "scale": t(F), "output_type": trt.int8})
    def quantize(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        dtype = self.choose(trt.int8, trt.fp8)
        return self.network.add_quantize(
            self.with_axis(self.small(tensor)), self.fixed(np.float32(0.5)), dtype
        ).get_output(0)

    @adds(add_dequantize=lambda t: {"input": t(trt.int8, 2, 3), "scale": t(F), "output_type": F})
    def dequantize(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        few = self.small(self.with_axis(tensor), self.choose(trt.int8, trt.fp8))
        return self.network.add_dequantize(few, self.fixed(np.float32(2)), trt.float32).get_output(0)

    @adds(
        add_dynamic_quantize=lambda t: {
            "input": t(F, 2, 32),
            "axis": 1,
            "block_size": 16,
            "output_type": trt.fp8,
            "scale_type": F,
        },
        add_dynamic_quantize_v2=lambda t: {
            "input": t(F, 2, 32),
            "block_shape": (1, 16),
            "output_type": trt.fp8,
            "scale_type": F,
        },
    )
    def quantize_dynamically(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """There and back: scales that are powers of two change no whole number that is small."""
        rows = self.reshape(self.small(tensor), 1, self.size(tensor))
        layer = self.network.add_dynamic_quantize_v2(rows, (1, self.size(tensor)), trt.fp8, trt.e8m0)
        return self.network.add_dequantize(*layer.outputs, trt.float32).get_output(0)

    # ------------------------------------------------------------------ choosing and moving

    @adds(
        add_gather=lambda t: {"input": t(F, 2, 3), "indices": t(I, 4), "axis": 0},
        add_gather_v2=lambda t: {"input": t(F, 2, 3), "indices": t(I, 2, 3), "mode": trt.GatherMode.ELEMENT},
    )
    def gather(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(tensor)
        axis, shape = self.axis(tensor), self.choose((), (1,), (2,))
        indices = self.constant(self.choose(trt.int32, trt.int64), shape, 0, tensor.shape[axis] - 1)
        return self.network.add_gather(tensor, indices, axis).get_output(0)

    @adds(
        add_scatter=lambda t: {
            "data": t(F, 2, 3),
            "indices": t(I, 2, 3),
            "updates": t(F, 2, 3),
            "mode": trt.ScatterMode.ELEMENT,
        }
    )
    def scatter(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(tensor)
        length, others = tensor.shape[0], (1,) * (len(tensor.shape) - 1)
        indices = self.constant(trt.int32, (1, *others), 0, length - 1)
        updates = self.constant(tensor.dtype, (1, *others))
        return self.network.add_scatter(tensor, indices, updates, trt.ScatterMode.ELEMENT).get_output(0)

    @adds(add_one_hot=lambda t: {"indices": t(I, 3), "values": t(F, 2), "depth": t.constant(4), "axis": -1})
    def one_hot(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        indices = self.fold(self.small(tensor), 0, 2)
        values = self.constant(self.choose(*self.dtypes), (2,))
        depth = self.fixed(np.int32(3))
        return self.network.add_one_hot(self.cast(indices, trt.int32), values, depth, -1).get_output(0)

    @adds(add_topk=lambda t: {"input": t(F, 2, 3), "op": trt.TopKOperation.MAX, "k": 2, "axes": 2, "indices_type": I})
    def top(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.among(tensor, REDUCIBLE))
        axis = self.axis(tensor)
        number = self.between(1, tensor.shape[axis])
        layer = self.network.add_topk(tensor, self.choose(*trt.TopKOperation), number, 1 << axis)
        return layer.get_output(self.between(0, 1))

    @adds(add_non_zero=lambda t: {"input": t(F, 2, 3), "indices_type": I})
    def non_zero(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """The sums of the indices: the number of those found is data-dependent."""
        places = self.network.add_non_zero(self.with_axis(self.among(tensor, [trt.bool, *NUMBERS]))).get_output(0)
        return self.network.add_reduce(places, trt.ReduceOperation.SUM, 2, False).get_output(0)

    @adds(add_unique=lambda t: {"input": t(F, 2, 3), "axis": 1, "sorted": True, "indices_type": I})
    def find_unique(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """The index of each element among the unique ones, whose number is data-dependent."""
        return self.network.add_unique(self.among(tensor, [trt.bool, *NUMBERS]), None, self.coin()).get_output(2)

    @adds(add_image_decoder=lambda t: {"input": t(trt.uint8, 8), "pixel_format": trt.PixelFormat.BGR})
    def decode(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """The size of an image that is none: bytes by chance are no file."""
        whole = self.fold(self.among(tensor, [trt.int32, trt.int64]), 0, 99)
        data = self.network.add_cast(self.reshape(whole, self.size(whole)), trt.uint8).get_output(0)
        image = self.network.add_image_decoder(data, self.next_of(*trt.PixelFormat)).get_output(0)
        return self.network.add_shape(image).get_output(0)

    @adds(
        add_sequence=lambda t: {"inputs": [t(F, 2), t(F, 3)], "dtype": F},
        add_sequence_insert=lambda t: {"input": t.sequence(), "tensor": t(F, 2), "position": t(L)},
        add_sequence_erase=lambda t: {"input": t.sequence(), "position": t(L)},
        add_sequence_length=lambda t: {"input": t.sequence()},
        add_sequence_at=lambda t: {"input": t.sequence(), "position": t(L)},
    )
    def list_tensors(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """The last tensor of a sequence of two, after one was put in and one taken out."""
        tensor = self.among(tensor, LISTED)
        other = self.other(pool, tensor)
        made = self.network.add_sequence([tensor, other]).get_output(0)
        place = self.fixed(np.int64(self.between(-2, 2))) if self.coin() else None
        made = self.network.add_sequence_insert(made, other, place).get_output(0)
        made = self.network.add_sequence_erase(made, self.fixed(np.int32(self.between(-3, 2)))).get_output(0)
        length = self.network.add_sequence_length(made).get_output(0)
        return self.network.add_sequence_at(made, self.combine(length, self.fixed(np.int64(-1)), Op.SUM)).get_output(0)

    @adds(
        add_sequence_split=lambda t: {"input": t(F, 4), "split": t.constant([1, 3]), "axis": 0, "keep_axis": True},
        add_sequence_concatenation=lambda t: {"input": t.sequence(), "axis": 0, "new_axis": False},
    )
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

    @adds(
        add_optional=lambda t: {"input": t(F, 2)},
        add_optional_has=lambda t: {"input": t.optional()},
        add_optional_get=lambda t: {"input": t.optional()},
    )
    def wrap_tensor(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """The tensor itself, read from an optional value that is present."""
        tensor = self.among(tensor, LISTED)
        held = self.network.add_optional(tensor).get_output(0)
        there = self.reshape(self.network.add_optional_has(held).get_output(0), *(1,) * len(tensor.shape))
        got = self.network.add_optional_get(held).get_output(0)
        return self.network.add_select(there, got, self.other(pool, tensor)).get_output(0)

    @adds(
        add_map=lambda t: {"keys": t(L, 2), "values": t(F, 2)},
        add_map_lookup=lambda t: {"input": t.map(), "keys": t(L, 3), "default": t(F)},
    )
    def look_up(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """The values of a map, or those at some keys, of which it does not have all."""
        values = self.cast(self.among(tensor, LISTED), self.choose(F, L, S))
        values = self.reshape(values, self.size(values))
        keys = self.fixed(np.arange(values.shape[0]))
        made = self.network.add_map(keys, values).get_output(0)
        zero = self.cast(self.fixed(np.int64(0)), values.dtype)
        places = self.fixed(np.arange(-1, 2))
        given = self.choose((), (places, zero))
        found = self.network.add_map_lookup(made, *given).get_output(0)
        return self.reshape(self.cast(found, F), 3 if given else values.shape[0])

    @adds(
        add_string_concatenation=lambda t: {"input1": t(S, 2), "input2": t(S, 1)},
        add_string_lookup=lambda t: {"input": t(S, 2), "vocabulary": ["1", "2"]},
        add_string_match=lambda t: {"input": t(S, 2), "pattern": r"-?\d*"},
        add_string_normalization=lambda t: {
            "input": t(S, 2),
            "case": trt.StringCase.UPPER,
            "stopwords": ["b"],
            "is_case_sensitive": False,
        },
        add_string_split=lambda t: {"input": t(S, 2), "delimiter": ".", "max_splits": 1},
        add_string_ngrams=lambda t: {"input": t(S, 3), "pool": ["1", "1", "2"], "starts": [0, 1]},
    )
    def spell(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """A number for each of some texts, or for some of them together."""
        text = self.cast(self.with_axis(self.among(tensor, LISTED)), trt.DataType.STRING)
        minus = self.fixed(np.full((1,) * len(text.shape), self.choose("", "-1", "1-")))
        text = self.network.add_string_concatenation(text, minus).get_output(0)
        found = self.network.add_string_lookup(text, ["1", "-1", "0", "11-"]).get_output(0)
        is_match = self.network.add_string_match(text, r"[^-]\d*(-|1)?").get_output(0)
        parts = self.network.add_string_split(text, "-").get_output(1)
        row = self.network.add_string_normalization(self.reshape(text, self.size(text))).get_output(0)
        grams = self.network.add_string_ngrams(row, ["0", "1", "-1", "0", "1"], [0, 3]).get_output(0)
        return self.choose(self.combine(found, self.cast(is_match, trt.int64), Op.SUM), parts, grams)

    @adds(
        add_string_tokenization=lambda t: {"input": t(S, 2), "separators": ["x|,"], "token": None},
    )
    def tokenize(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """How many tokens some texts have."""
        text = self.cast(self.among(tensor, LISTED), trt.DataType.STRING)
        row = self.reshape(text, self.size(text))
        layer = self.network.add_string_tokenization(row, token="[1-9]")
        layer.marks = self.next_of(False, True)
        tokens = layer.get_output(0)
        blank = self.fixed(np.array([[""]]))
        padding = self.cast(self.combine(tokens, blank, Op.EQUAL), trt.int32)
        return self.network.add_reduce(padding, trt.ReduceOperation.SUM, 2, False).get_output(0)

    @adds(
        add_nms=lambda t: {
            "boxes": t(F, 1, 3, 4),
            "scores": t(F, 1, 3, 2),
            "max_output_boxes_per_class": t(I),
            "indices_type": I,
        }
    )
    def suppress(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """How many of some boxes far from each other have scores above 0."""
        number = self.size(tensor)
        corners = 10 * np.arange(number, dtype=np.float32)[:, None] + np.float32([0, 0, 4, 4])
        scores = self.reshape(self.small(tensor), 1, number, 1)
        layer = self.network.add_nms(self.fixed(corners[None]), scores, self.fixed(np.int32(2)))
        layer.set_input(3, self.fixed(np.float32(0.5)))  # OpenVINO suppresses boxes that overlap as much as is allowed
        return layer.get_output(1)

    @adds(add_reverse_sequence=lambda t: {"input": t(F, 3, 2), "sequence_lens": t(I, 2)})
    def reverse_sequence(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        rows = self.reshape(tensor, self.size(tensor), 1)
        lengths = self.constant(trt.int32, (1,), 0, self.size(tensor))
        return self.network.add_reverse_sequence(rows, lengths).get_output(0)

    @adds(
        add_kv_cache_update=lambda t: {
            "cache": t(F, 2, 1, 5, 3),
            "update": t(F, 2, 1, 2, 3),
            "write_indices": t(I, 2),
            "cache_mode": trt.KVCacheMode.LINEAR,
        }
    )
    def update_cache(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        update = self.image(tensor)
        rows, width = update.shape[2:]
        cache, place = self.constant(update.dtype, (1, 1, 4, width)), self.constant(trt.int32, (1,), 0, 4 - rows)
        return self.network.add_kv_cache_update(cache, update, place, trt.KVCacheMode.LINEAR).get_output(0)

    @adds(
        add_rotary_embedding=lambda t: {
            "input": t(F, 1, 2, 3, 4),
            "cos_cache": t(F, 1, 3, 2),
            "sin_cache": t(F, 1, 3, 2),
            "interleaved": False,
            "rotary_embedding_dim": 0,
        }
    )
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

    @adds(
        add_dist_collective=lambda t: {
            "input": t(F, 2),
            "dist_collective_op": trt.CollectiveOperation.ALL_REDUCE,
            "reduce_op": trt.ReduceOperation.SUM,
            "root": -1,
            "groups": [],
        }
    )
    def reduce_ranks(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(self.among(tensor, NUMBERS))
        sum = trt.ReduceOperation.SUM
        return self.network.add_dist_collective(tensor, trt.CollectiveOperation.ALL_REDUCE, sum, -1, []).get_output(0)

    # ------------------------------------------------------------------ shapes

    @adds(add_slice=lambda t: {"input": t(F, 4, 4), "start": (0, 0), "shape": (2, 2), "stride": (1, 1)})
    def flip(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(tensor)
        starts = [length - 1 for length in tensor.shape]
        return self.network.add_slice(tensor, starts, tuple(tensor.shape), (-1,) * len(starts)).get_output(0)

    @adds(
        add_plugin_v3=lambda t: {
            "inputs": [t(F, 2, 3)],
            "shape_inputs": [t(I)],
            "plugin": trt.JaxPlugin(lambda x, n: x * 2),
        }
    )
    def turn(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.network.add_plugin_v3([tensor], [], backwards()).get_output(0)

    @adds(add_padding_nd=lambda t: {"input": t(F, 1, 1, 2, 2), "pre_padding": (1, 1), "post_padding": (0, 0)})
    def pad(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        return self.network.add_padding_nd(self.image(tensor), (0, 1), (0, -1)).get_output(0)

    @adds(add_concatenation=lambda t: {"inputs": [t(F, 2, 3), t(F, 2, 3)]})
    def concatenate(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        tensor = self.with_axis(tensor)
        layer = self.network.add_concatenation([tensor, self.other(pool, tensor)])
        layer.axis = self.axis(tensor)
        return layer.get_output(0)

    @adds(add_shuffle=lambda t: {"input": t(F, 2, 3)})
    def shuffle(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        layer = self.network.add_shuffle(tensor)
        layer.first_transpose = self.chance.sample(range(len(tensor.shape)), len(tensor.shape))
        layer.reshape_dims = self.choose((-1,), (1, -1), (-1, 1))
        return layer.get_output(0)

    @adds(
        add_squeeze=lambda t: {"input": t(F, 2, 1), "axes": t.constant([1])},
        add_unsqueeze=lambda t: {"input": t(F, 2, 3), "axes": t.constant([0])},
    )
    def unsqueeze(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Two axes more, and one of them away."""
        axes, one = self.fixed(np.int32([0, 1])), self.fixed(np.int32([self.between(0, 1)]))
        return self.network.add_squeeze(self.network.add_unsqueeze(tensor, axes).get_output(0), one).get_output(0)

    @adds(add_resize=lambda t: {"input": t(F, 2, 3)})
    def resize(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        matrix = self.matrix(tensor)
        layer = self.network.add_resize(matrix)
        layer.shape = (matrix.shape[0], 3)
        return layer.get_output(0)

    @adds(add_grid_sample=lambda t: {"input": t(F, 1, 1, 4, 4), "grid": t(F, 1, 3, 3, 2)})
    def sample(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        image = self.image(tensor)
        layer = self.network.add_grid_sample(image, self.constant(image.dtype, (1, 1, 2, 2), -1, 1))
        layer.interpolation_mode, layer.align_corners = trt.InterpolationMode.NEAREST, True
        return layer.get_output(0)

    @adds(add_constant=lambda t: {"shape": (3, 3), "weights": WEIGHTS}, add_shape=lambda t: {"input": t(F, 2, 3)})
    def measure(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        shape = self.network.add_shape(tensor).get_output(0)
        return self.combine(shape, self.constant(trt.int64, (1,)), Op.SUM)

    @adds(add_assertion=lambda t: {"condition": t(B, 2), "message": "no"})
    def assure(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """An assertion that holds."""
        alike = self.combine(tensor, tensor, Op.EQUAL)
        flags = self.reshape(alike, self.size(tensor))
        self.network.add_assertion(flags, "what is equal to itself")
        return alike
