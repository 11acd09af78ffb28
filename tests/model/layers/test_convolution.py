"""Convolution and deconvolution. The expected numbers are those of PyTorch, and of ONNX Runtime for SAME padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netloop.model.layers.convolution import IConvolutionLayer, IDeconvolutionLayer
from netloop.model.layers.windows import Window, places_read, places_written
from netloop.model.network import INetworkDefinition
from netloop.model.weights import Weights
from netloop.values.diagnostics import LayerError, NetworkError
from netloop.values.enums import DataType, PaddingMode
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.examples import examples
from tests.support.laws import Case, check_laws, refuses

DOWN, UP, UPPER, LOWER = PaddingMode
FLOATS = [np.float16, jnp.bfloat16, np.float64]


def numbers(*shape, step=7):
    """Small integers in no particular order."""
    return (np.arange(np.prod(shape)) * step % 11 - 5).reshape(shape).astype(np.float32)


def floats(shape, *given):
    return np.array(given, np.float32).reshape(shape)


def convolve(kernel, maps=None, **named):
    """A convolution with a kernel in its own shape."""
    maps = kernel.shape[0] if maps is None else maps
    return IConvolutionLayer(num_output_maps=maps, kernel_size_nd=kernel.shape[2:], kernel=kernel, **named)


def deconvolve(kernel, **named):
    """A deconvolution with a kernel in its own shape."""
    maps = kernel.shape[1] * named.get("num_groups", 1)
    return IDeconvolutionLayer(num_output_maps=maps, kernel_size_nd=kernel.shape[2:], kernel=kernel, **named)


def tensors(kind, maps, window, **named):
    """A layer whose kernel is a tensor."""
    return kind(num_output_maps=maps, kernel_size_nd=window, **named)


X, W, BIAS = numbers(1, 1, 3, 3), numbers(1, 1, 2, 2, step=3), np.float32([10, -10])
X2, W2 = numbers(1, 2, 3, 3), numbers(2, 2, 2, 2, step=3)
X4, W4 = numbers(1, 4, 2, 3), numbers(4, 2, 2, 2, step=3)
ROW, ROW2, ROW3 = numbers(1, 1, 5), numbers(1, 1, 2, step=3), numbers(1, 1, 3, step=3)
GRID = numbers(1, 1, 4, 4)
BOX = numbers(1, 1, 3, 3, 3)
CUBE = numbers(1, 1, 2, 2, 2, step=3)

# fmt: off
X_BY_W = floats((1, 1, 2, 2), 30, -17, -23, -15)
X2_BY_W2 = floats((1, 2, 2, 2), 23, 23, -32, 12, 24, -29, -3, -12)  # and the bias
X4_BY_W4 = floats((1, 4, 1, 2), 15, -40, 33, 24, 11, 15, -24, 48)  # in two groups
X_THROUGH_W = floats((1, 1, 4, 4), 25, 0, 6, 4, -30, -33, 19, -2, -15, 13, 21, -4, 4, 16, -4, -16)

CONVOLUTIONS = [
    Case("one channel, nothing flipped", convolve(W), (X,), X_BY_W),
    Case("channels, maps, bias", convolve(W2, bias=BIAS), (X2,), X2_BY_W2),
    Case("stride and padding", convolve(W, stride_nd=(2, 1), pre_padding=(1, 0), post_padding=(1, 0)), (X,),
         floats((1, 1, 2, 2), 3, -6, -23, -15)),
    Case("dilation", convolve(W, dilation_nd=(1, 2)), (GRID,), floats((1, 1, 3, 2), 46, -23, -21, -2, 44, -3)),
    Case("two groups", convolve(W4, num_groups=2), (X4,), X4_BY_W4),
    Case("a group for each channel", convolve(W4[:, :1].copy(), num_groups=4), (X4,),
         floats((1, 4, 1, 2), 30, -17, 2, 22, 8, -15, -7, 26)),
    Case("one axis", convolve(numbers(2, 2, 3, step=3)), (numbers(2, 2, 4),),
         floats((2, 2, 2), 31, -29, -23, -9, 24, -47, -21, 26)),
    Case("three axes", convolve(CUBE), (BOX,), floats((1, 1, 2, 2, 2), 13, 13, -42, 2, -42, 46, 13, 46)),
    Case("three axes, all at once",
         convolve(CUBE, stride_nd=(2, 1, 1), dilation_nd=(1, 1, 2), pre_padding=(1, 0, 0), post_padding=(0, 0, 1)),
         (BOX,), floats((1, 1, 2, 2, 2), 17, -6, -29, -4, 22, 9, 0, 37)),
    Case("padding on one side", convolve(W, pre_padding=(1, 0), post_padding=(0, 2)), (X,),
         floats((1, 1, 3, 4), 3, -6, -2, 0, 30, -17, 7, 0, -23, -15, 11, 0)),
    Case("window longer than the input", convolve(ROW3, pre_padding=(1,), post_padding=(1,)), (ROW[..., :1],),
         floats((1, 1, 1), 10)),
    Case("rounded down", convolve(ROW2, stride_nd=(2,)), (ROW,), floats((1, 1, 2), 21, 0)),
    Case("rounded up", convolve(ROW2, stride_nd=(2,), padding_mode=UP), (ROW,),
         floats((1, 1, 3), 21, 0, -5)),
    Case("rounded up, after padding", convolve(ROW3, stride_nd=(3,), padding_mode=UP, post_padding=(2,)), (ROW,),
         floats((1, 1, 3), 19, -27, 0)),
    Case("rounded up, no need to", convolve(ROW3, stride_nd=(2,), padding_mode=UP), (ROW,),
         floats((1, 1, 2), 19, 1)),
    Case("same, the odd zero after", convolve(ROW2, padding_mode=UPPER), (ROW,),
         floats((1, 1, 5), 21, -6, 0, -27, -5)),
    Case("same, the odd zero before", convolve(ROW2, padding_mode=LOWER), (ROW,),
         floats((1, 1, 5), 10, 21, -6, 0, -27)),
    Case("same, by two", convolve(W, padding_mode=UPPER, stride_nd=(2, 2)), (X,),
         floats((1, 1, 2, 2), 30, 7, -20, 20)),
    Case("same, dilated", convolve(ROW3, padding_mode=LOWER, stride_nd=(2,), dilation_nd=(2,)),
         (GRID.reshape(1, 1, 16),), floats((1, 1, 8), 8, 30, 12, -17, -13, 24, 6, -20)),
    Case("same, stride longer than the window", convolve(ROW2, padding_mode=LOWER, stride_nd=(4,)), (ROW,),
         floats((1, 1, 2), 10, -27)),
    Case("same, padding of no account", convolve(ROW2, padding_mode=UPPER, pre_padding=(7,)), (ROW,),
         floats((1, 1, 5), 21, -6, 0, -27, -5)),
    Case("kernel as input", tensors(IConvolutionLayer, 2, (2, 2), bias=BIAS), (X2, W2), X2_BY_W2),
    Case("bias as input", convolve(W2), (X2, None, BIAS), X2_BY_W2),
    Case("kernel as input, with groups", tensors(IConvolutionLayer, 4, (2, 2), num_groups=2), (X4, W4),
         X4_BY_W4),
    Case("empty bias", convolve(W, bias=np.zeros(0, np.float32)), (X,), X_BY_W),
    Case("empty batch", convolve(W2), (X2[:0],), np.zeros((0, 2, 2, 2), np.float32)),
    Case("two batch axes", convolve(W2, bias=BIAS), (X2.reshape(1, *X2.shape),), X2_BY_W2.reshape(1, *X2_BY_W2.shape)),
    Case("three batch axes, one empty", convolve(W2), (np.zeros((2, 0, 1, *X2.shape[1:]), np.float32),),
         np.zeros((2, 0, 1, 2, 2, 2), np.float32)),
    *(
        Case(f"{np.dtype(dtype)}", convolve(W2.astype(dtype), bias=BIAS.astype(dtype)), (X2.astype(dtype),),
             X2_BY_W2.astype(dtype))
        for dtype in FLOATS
    ),
]

DECONVOLUTIONS = [
    Case("one channel", deconvolve(W), (X,), X_THROUGH_W),
    Case("channels, maps, bias", deconvolve(W2, bias=BIAS), (X2[..., :2, :1].copy(),),
         floats((1, 2, 3, 2), 26, 20, -17, -35, 21, 20, 4, -2, -32, -50, 8, 7)),
    Case("stride and padding", deconvolve(W, stride_nd=(1, 2), pre_padding=(1, 0), post_padding=(1, 0)), (X,),
         floats((1, 1, 2, 6), -30, -30, -3, 6, 13, -2, -15, 12, 1, 4, 17, -4)),
    Case("stride longer than the window", deconvolve(ROW2, stride_nd=(3,)), (ROW[..., :3].copy(),),
         floats((1, 1, 8), 25, 10, 0, -10, -4, 0, 10, 4)),
    Case("dilation", deconvolve(ROW3, dilation_nd=(2,)), (ROW,), floats((1, 1, 9), 25, -10, 20, -29, -6, -8, -4, 5, 1)),
    Case("two groups", deconvolve(W4[:, :, :1].copy(), num_groups=2), (X4[..., :1, :2].copy(),),
         floats((1, 4, 1, 3), 13, 0, -4, 12, 1, -2, -2, 2, -20, 0, -2, -26)),
    Case("a group for each channel", deconvolve(W4[:, :1, :1].copy(), num_groups=4), (X4[..., :1, :2].copy(),),
         floats((1, 4, 1, 3), 25, 0, -4, -12, 0, 0, -2, 6, -4, 0, -4, -16)),
    Case("one axis", deconvolve(numbers(2, 1, 3, step=3), stride_nd=(2,)), (numbers(2, 2, 2),),
         floats((2, 1, 5), 17, 18, 7, -24, -3, 11, -18, 12, 6, -3)),
    Case("three axes", deconvolve(CUBE, pre_padding=(1, 0, 1), post_padding=(1, 0, 1)), (BOX[:, :, :, :2].copy(),),
         floats((1, 1, 2, 3, 2), -4, 33, -13, -13, 33, -4, 21, 14, 42, -46, -3, -18)),
    Case("trimmed on one side", deconvolve(ROW2, pre_padding=(1,), post_padding=(0,)), (ROW,),
         floats((1, 1, 5), 0, 6, -21, -15, -2)),
    Case("trimmed beyond the window", deconvolve(ROW2, pre_padding=(2,), post_padding=(3,)), (ROW,),
         floats((1, 1, 1), 6)),
    Case("rounding up changes nothing", deconvolve(ROW2, stride_nd=(2,), padding_mode=UP), (ROW,),
         floats((1, 1, 10), 25, 10, -10, -4, 10, 4, -25, -10, -5, -2)),
    Case("same, the odd one after", deconvolve(ROW2, padding_mode=UPPER), (ROW,),
         floats((1, 1, 5), 25, 0, 6, -21, -15)),
    Case("same, the odd one before", deconvolve(ROW2, padding_mode=LOWER), (ROW,),
         floats((1, 1, 5), 0, 6, -21, -15, -2)),
    Case("same, by two", deconvolve(ROW3, padding_mode=UPPER, stride_nd=(2,)), (ROW,),
         floats((1, 1, 10), 25, 10, -15, -4, 12, 4, -27, -10, 0, -2)),
    Case("same, stride longer than the window", deconvolve(ROW2, padding_mode=UPPER, stride_nd=(3,)),
         (ROW[..., :2].copy(),), floats((1, 1, 5), 25, 10, 0, -10, -4)),
    Case("kernel as input", tensors(IDeconvolutionLayer, 1, (2, 2)), (X, W), X_THROUGH_W),
    Case("kernel and bias as inputs", tensors(IDeconvolutionLayer, 1, (2,)), (ROW, ROW2, BIAS[:1].copy()),
         floats((1, 1, 6), 35, 10, 16, -11, -5, 8)),
    Case("empty batch", deconvolve(W2), (X2[:0],), np.zeros((0, 2, 4, 4), np.float32)),
    Case("two batch axes", deconvolve(W), (np.concatenate([X, X]).reshape(2, 1, *X.shape[1:]),),
         np.concatenate([X_THROUGH_W, X_THROUGH_W]).reshape(2, 1, *X_THROUGH_W.shape[1:])),
    *(
        Case(f"{np.dtype(dtype)}", deconvolve(ROW2.astype(dtype), bias=BIAS[:1].astype(dtype)), (ROW.astype(dtype),),
             floats((1, 1, 6), 35, 10, 16, -11, -5, 8).astype(dtype))
        for dtype in FLOATS
    ),
]
# fmt: on


@pytest.mark.parametrize("case", CONVOLUTIONS + DECONVOLUTIONS, ids=str)
def test_laws(case):
    check_laws(case)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
@pytest.mark.parametrize("kind", [convolve, deconvolve])
def test_half_types_are_summed_in_float32(kind, dtype):
    much = 2048 if dtype == np.float16 else 256
    x, kernel = np.array([[[much], [1], [1]]], dtype), np.ones((1, 3, 1), dtype)
    layer = kind(kernel if kind is convolve else kernel.reshape(3, 1, 1))

    assert layer.evaluate(x).item() == much + 2
    assert layer.lower(x).item() == much + 2


@examples(60)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4), st.integers(0, 3), st.integers(0, 3))
def test_windows_are_as_many_as_fit(length, span, stride, before, after):
    window, end = Window(span, stride, before, after), before + length + after
    starts = range(0, end, stride)
    fitting = sum(start + span <= end for start in starts)

    if span <= end:
        assert places_read(length, window, DOWN).length == fitting
        assert places_read(length, window, UP).length == fitting + ((end - span) % stride > 0)


@examples(60)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4))
def test_same_padding_is_shared_out_evenly(length, span, stride):
    upper, lower = (places_read(length, Window(span, stride, 9, 9), mode) for mode in (UPPER, LOWER))

    assert upper.length == lower.length == len(range(0, length, stride))
    assert (upper.before, upper.after) == (lower.after, lower.before)
    assert upper.after - upper.before in (0, 1)
    assert upper.before + upper.after == max(0, (upper.length - 1) * stride + span - length)


@examples(60)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4))
def test_same_deconvolution_makes_stride_times_the_length_at_most(length, span, stride):
    made = places_written(length, Window(span, stride, 9, 9), UPPER)

    assert made.length == min(length * stride, (length - 1) * stride + span)


@pytest.mark.parametrize("mode", list(PaddingMode))
def test_deconvolution_is_the_derivative_of_convolution(mode):
    named = {"stride_nd": (2, 1), "dilation_nd": (1, 2), "pre_padding": (1, 2), "post_padding": (0, 1), "num_groups": 2}
    kernel, x = numbers(4, 2, 2, 2, step=3), jnp.asarray(numbers(1, 4, 4, 3))
    forward = convolve(kernel, padding_mode=mode, **named)
    made, derivative = jax.vjp(forward.lower, x)
    before, after = zip(*((place.before, place.after) for place in forward.places(x.shape[2:])), strict=True)
    seed = numbers(*made.shape, step=5)
    back = deconvolve(kernel, **named | {"pre_padding": before, "post_padding": after})
    (found,) = derivative(jnp.asarray(seed))
    wanted = back.evaluate(seed)
    both = tuple(slice(min(lengths)) for lengths in zip(found.shape, wanted.shape, strict=True))

    np.testing.assert_array_equal(found[both], wanted[both])


@pytest.mark.parametrize("kind", [IConvolutionLayer, IDeconvolutionLayer])
def test_gradients_by_kernel_and_bias_follow_small_steps(kind):
    layer = tensors(kind, 2, (2,), stride_nd=(2,), pre_padding=(1,))
    x, kernel, bias = numbers(1, 2, 4), numbers(2, 2, 2, step=3), BIAS

    def total(kernel, bias):
        return (layer.lower(x, kernel, bias) ** 2).sum()

    found = jax.grad(total, (0, 1))(jnp.asarray(kernel), jnp.asarray(bias))
    step = np.zeros_like(kernel)
    step[1, 0, 1] = 1
    for by_kernel, by_bias, wanted in (
        (step, 0 * bias, found[0][1, 0, 1]),
        (0 * step, np.float32([1, 0]), found[1][0]),
    ):
        above, below = total(kernel + by_kernel, bias + by_bias), total(kernel - by_kernel, bias - by_bias)
        assert_allclose((above - below) / 2, wanted, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
@pytest.mark.parametrize("kind", [convolve, deconvolve])
def test_half_types_have_gradients_of_their_own_type(kind, dtype):
    layer = kind(np.ones((1, 1, 2), dtype), bias=np.ones(1, dtype))
    found = jax.grad(lambda x: layer.lower(x).sum())(jnp.ones((1, 1, 3), dtype))

    assert found.dtype == dtype


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


@pytest.mark.parametrize(("kind", "known"), [(convolve, 2), (deconvolve, 4)])
def test_unknown_lengths_stay_unknown(kind, known):
    assert kind(W2).infer(f32(-1, 2, -1, 3)).shape == (-1, 2, -1, known)


@pytest.mark.parametrize("mode", list(PaddingMode))
@pytest.mark.parametrize("kind", [convolve, deconvolve])
def test_unknown_lengths_are_no_error_in_any_mode(kind, mode):
    assert kind(W2, padding_mode=mode).infer(f32(1, 2, -1, -1)).shape == (1, 2, -1, -1)


@pytest.mark.parametrize("kind", [convolve, deconvolve])
def test_unknown_channels_are_no_error(kind):
    assert kind(W2).infer(f32(1, -1, 3, 3)).shape[:2] == (1, 2)


def test_unknown_kernel_lengths_are_no_error():
    assert tensors(IConvolutionLayer, 2, (2, 2)).infer(f32(1, 2, 3, 3), f32(-1, 2, 2, -1)).shape == (1, 2, 2, 2)


def test_kernel_of_another_size_is_refused():
    refuses(convolve(W, maps=3), X, match="the kernel has 4 elements, but must have those of float32[3,1,2,2]")


def test_kernel_of_no_multiple_of_the_unknown_channels_is_refused():
    refuses(
        convolve(W, maps=3), f32(1, -1, 3, 3), match="the kernel has 4 elements, but must have those of float32[3,-1"
    )


def test_kernel_of_a_deconvolution_has_the_channels_first():
    refuses(deconvolve(W), X2, match="the kernel has 4 elements, but must have those of float32[2,1,2,2]")


def test_kernel_of_another_type_is_refused():
    refuses(convolve(W.astype(np.float16)), X, match="the kernel is float16, but must be float32 like the input")


def test_kernel_tensor_of_another_shape_is_refused():
    refuses(
        tensors(IConvolutionLayer, 2, (2, 2)),
        X2,
        W,
        match="the kernel is float32[1,1,2,2], but must be float32[2,2,2,2]",
    )


def test_kernel_tensor_of_another_type_is_refused():
    refuses(tensors(IConvolutionLayer, 1, (2, 2)), X, W.astype(np.float16), match="the kernel is float16[1,1,2,2]")


def test_kernel_given_twice_is_refused():
    refuses(convolve(W), X, W, match="the kernel is set both as weights and as a tensor")


@pytest.mark.parametrize("kernel", [None, np.zeros(0, np.float32)])
def test_missing_kernel_is_refused_with_both_ways_out(kernel):
    with pytest.raises(LayerError, match="the kernel is missing") as caught:
        tensors(IConvolutionLayer, 1, (2, 2), kernel=kernel).infer(f32(1, 1, 3, 3))

    assert "set_input(1, tensor)" in caught.value.fix


def test_bias_of_another_size_is_refused():
    refuses(convolve(W, bias=BIAS), X, match="the bias has 2 elements, but must have those of float32[1]")


def test_bias_tensor_of_another_shape_is_refused():
    refuses(convolve(W), X, None, BIAS, match="the bias is float32[2], but must be float32[1]")


def test_bias_given_twice_is_refused():
    refuses(convolve(W, bias=BIAS[:1].copy()), X, None, BIAS, match="the bias is set both as weights and as a tensor")


def test_bool_is_refused():
    refuses(convolve(W), X > 0, match="the input is bool[1,1,3,3], but must be numeric")


BYTES = np.random.default_rng(0).integers(-128, 128, (1, 4, 5)), np.random.default_rng(1).integers(-128, 128, (6, 2, 3))
OF_BYTES = [[10530, 5999, -14981], [9174, 2298, -6732], [-5052, -1038, -953], [-10122, -5531, 10886],
            [-1070, 8731, -9061], [-11663, -10698, 10057]]  # fmt: skip
"""The convolution of these in two groups, computed by PyTorch in int64."""


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_convolution_of_integers_is_exact_and_wraps(dtype):
    x, kernel = (byte.astype(dtype) for byte in BYTES)
    layer = IConvolutionLayer(num_output_maps=6, kernel_size_nd=(3,), kernel=kernel, num_groups=2)

    check_laws(Case("integers", layer, (x,), np.array([OF_BYTES]).astype(dtype)))


def test_convolution_of_integers_has_zeros_before_and_after():
    kernel = np.array([[[1, 10]]], np.int32)
    layer = convolve(kernel, pre_padding=(2,), post_padding=(1,))

    check_laws(Case("padded", layer, (np.array([[[3, 4]]], np.int32),), np.array([[[0, 30, 43, 4]]], np.int32)))


def test_deconvolution_of_integers_is_the_transpose_of_the_convolution():
    y, kernel = np.arange(6).reshape(1, 2, 3), np.arange(8).reshape(2, 2, 2) - 3
    expected = np.zeros((1, 2, 4), int)
    for c, k, i, f in np.ndindex(2, 2, 3, 2):
        expected[0, k, i + f] += y[0, c, i] * kernel[c, k, f]
    layer = IDeconvolutionLayer(num_output_maps=2, kernel_size_nd=(2,), kernel=kernel.astype(np.int32))

    check_laws(Case("integers", layer, (y.astype(np.int32),), expected.astype(np.int32)))


def test_rank_that_does_not_fit_the_window_is_refused():
    refuses(convolve(W), ROW, match="the input float32[1,1,5] has 3 axes, but must have 4")


def test_window_of_no_axes_is_refused():
    refuses(tensors(IConvolutionLayer, 1, ()), X, match="kernel_size_nd is (), but must have 1 to 3 numbers")


def test_window_that_does_not_fit_is_refused():
    refuses(
        convolve(ROW3), ROW[..., :2], match="along axis 2 of the input float32[1,1,2], 2 elements give an output of 0"
    )


def test_deconvolution_of_which_nothing_is_left_is_refused():
    refuses(deconvolve(ROW2, pre_padding=(3,), post_padding=(3,)), ROW, match="5 elements give an output of 0")


def test_axis_without_elements_is_refused():
    refuses(
        convolve(ROW2, padding_mode=UPPER), ROW[..., :0], match="axis 2 of the input float32[1,1,0] has no elements"
    )


@pytest.mark.parametrize("name", ["stride_nd", "dilation_nd", "pre_padding", "post_padding"])
def test_numbers_for_another_number_of_axes_are_refused(name):
    refuses(convolve(W, **{name: (1,)}), X, match=f"{name} is (1,), but must have 2 numbers")


@pytest.mark.parametrize(
    ("name", "least"), [("stride_nd", 1), ("dilation_nd", 1), ("pre_padding", 0), ("post_padding", 0)]
)
def test_numbers_that_are_too_small_are_refused(name, least):
    refuses(convolve(W, **{name: (1, least - 1)}), X, match=f"{name} is (1, {least - 1}), but its numbers must")


def test_kernel_size_of_0_is_refused():
    refuses(tensors(IConvolutionLayer, 1, (0, 1)), X, match="kernel_size_nd is (0, 1), but its numbers must be")


def test_channels_that_groups_do_not_share_evenly_are_refused():
    refuses(convolve(W2, num_groups=2), numbers(1, 3, 3, 3), match="the input float32[1,3,3,3] has 3 channels")


def test_maps_that_groups_do_not_share_evenly_are_refused():
    refuses(convolve(W4, maps=3, num_groups=2), X4, match="num_output_maps is 3")


def test_no_groups_are_refused():
    refuses(convolve(W, num_groups=0), X, match="num_groups is 0, but must be at least 1")


def test_no_maps_are_refused():
    refuses(convolve(W, maps=0), X, match="num_output_maps is 0, but must be at least 1")


def test_no_channels_are_refused():
    refuses(convolve(W), f32(1, 0, 3, 3), match="the input float32[1,0,3,3] has no channels")


@pytest.mark.parametrize(
    ("method", "shape"), [("add_convolution_nd", (1, 2, 2, 2)), ("add_deconvolution_nd", (1, 2, 4, 4))]
)
def test_network_adds_it_with_a_flat_kernel(method, shape):
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 2, 3, 3))
    made = getattr(network, method)(x, 2, (2, 2), W2.reshape(-1), BIAS)

    assert made.get_output(0).shape == shape
    assert made.num_inputs == 1
    assert (made.stride_nd, made.dilation_nd, made.padding_nd) == ((1, 1), (1, 1), (0, 0))
    assert (made.num_groups, made.padding_mode) == (1, DOWN)


def test_padding_nd_sets_the_padding_on_both_sides():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 1, 3, 3))
    made = network.add_convolution_nd(x, 1, (2, 2), W)
    assert made.get_output(0).shape == (1, 1, 2, 2)
    made.padding_nd = (1, 2)

    assert (made.pre_padding, made.post_padding) == ((1, 2), (1, 2))
    assert made.get_output(0).shape == (1, 1, 4, 6)


def test_padding_nd_reads_the_padding_before():
    layer = convolve(W, pre_padding=(1, 2))

    assert layer.padding_nd == (1, 2)


def test_padding_nd_of_another_type_is_refused():
    layer = convolve(W)

    with pytest.raises(TypeError, match="must be a sequence of ints"):
        layer.padding_nd = 3


def test_misspelt_attribute_is_refused():
    layer = convolve(W)

    with pytest.raises(AttributeError, match="did you mean 'stride_nd'"):
        layer.stride_n = (1, 1)


def test_kernel_and_bias_come_as_tensors():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 2, 3, 3))
    made = network.add_convolution_nd(x, 2, (2, 2), Weights(), Weights())
    with pytest.raises(NetworkError, match="the kernel is missing"):
        _ = made.get_output(0).shape
    made.set_input(1, network.add_constant((2, 2, 2, 2), W2).get_output(0))
    made.set_input(2, network.add_constant((2,), BIAS).get_output(0))

    assert made.get_output(0).shape == (1, 2, 2, 2)
    assert made.num_inputs == 3


def test_kernel_emptied_after_the_tensor_is_set_keeps_the_tensor():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 1, 3, 3))
    made = network.add_convolution_nd(x, 1, (2, 2), W)
    made.set_input(1, network.add_constant((1, 1, 2, 2), W).get_output(0))
    with pytest.raises(NetworkError, match="the kernel is set both as weights and as a tensor"):
        _ = made.get_output(0).shape
    made.kernel = Weights()

    assert made.get_output(0).shape == (1, 1, 2, 2)


def test_kernel_that_is_no_array_is_refused():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 1, 3, 3))

    with pytest.raises(TypeError, match="kernel must be a numpy array or Weights"):
        network.add_convolution_nd(x, 1, (2, 2), [1, 2, 3, 4])


@pytest.mark.parametrize("layer", [IConvolutionLayer, IDeconvolutionLayer])
@pytest.mark.parametrize("name", ["stride_nd", "dilation_nd", "pre_padding", "post_padding"])
def test_window_that_devices_cannot_count_is_refused(layer, name):
    made = layer(num_output_maps=1, kernel_size_nd=(2,), kernel=np.ones(2, np.float32), **{name: (2**31,)})

    refuses(made, np.ones((1, 1, 4), np.float32), match=f"{name} is (2147483648,), but must be at most 2147483647")


def test_deconvolution_to_an_axis_that_devices_cannot_count_is_refused():
    """XLA's compiler visits each position of the window."""
    made = IDeconvolutionLayer(
        num_output_maps=1, kernel_size_nd=(2,), kernel=np.ones(2, np.float32), stride_nd=(2**31 - 1,)
    )

    refuses(made, np.ones((1, 1, 4), np.float32), match="axis 2 of float32[1,1,4] has 6442450943 elements")
