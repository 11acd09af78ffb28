"""Scale and the parametric rectifier. The expected numbers are computed by hand, or by numpy's broadcasting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from netloop.model.layers.affine import IParametricReLULayer, IScaleLayer
from netloop.model.network import INetworkDefinition
from netloop.model.weights import Weights
from netloop.values.enums import DataType, ScaleMode
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.laws import Case, check_laws, refuses

UNIFORM, CHANNEL, ELEMENTWISE = ScaleMode
FLOATS = [np.float16, jnp.bfloat16, np.float64]


def f32(*numbers):
    return np.array(numbers, np.float32)


def scale(mode, **named):
    return IScaleLayer(mode=mode, **named)


X = np.arange(8, dtype=np.float32).reshape(2, 2, 1, 2)
LONG = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 2, 2)
ROW = f32(-2, -1, 0, 3).reshape(2, 2)

CASES = [
    Case("nothing given", scale(UNIFORM), (X,), X),
    Case("uniform", scale(UNIFORM, scale=f32(2), shift=f32(1)), (X,), f32(1, 3, 5, 7, 9, 11, 13, 15).reshape(X.shape)),
    Case("the power comes last", scale(UNIFORM, scale=f32(2), shift=f32(-3), power=f32(2)), (X,), (2 * X - 3) ** 2),
    Case("power alone", scale(UNIFORM, power=f32(0.5)), (X,), np.sqrt(X)),
    Case("empty weights", scale(UNIFORM, scale=f32(), shift=f32(1), power=f32()), (X,), X + 1),
    Case(
        "a number for each channel",
        scale(CHANNEL, scale=f32(1, 10), shift=f32(0, 5)),
        (X,),
        f32(0, 1, 25, 35, 4, 5, 65, 75).reshape(X.shape),
    ),
    Case(
        "powers for each channel", scale(CHANNEL, power=f32(1, 2)), (X,), f32(0, 1, 4, 9, 4, 5, 36, 49).reshape(X.shape)
    ),
    Case(
        "a number for each element",
        scale(ELEMENTWISE, scale=f32(1, 2, 3, 4)),
        (X,),
        f32(0, 2, 6, 12, 4, 10, 18, 28).reshape(X.shape),
    ),
    Case("weights in a shape of their own", scale(CHANNEL, shift=f32(0, 9).reshape(1, 2, 1)), (X,), X + X // 2 % 2 * 9),
    Case("channels of another axis", scale(CHANNEL, shift=f32(0, 9), channel_axis=3), (X,), X + X % 2 * 9),
    Case("channels of the last axis", scale(CHANNEL, shift=f32(0, 9), channel_axis=-1), (X,), X + X % 2 * 9),
    Case("elements from the axis on", scale(ELEMENTWISE, shift=f32(0, 9), channel_axis=2), (X,), X + X % 2 * 9),
    Case("elements from the first axis on", scale(ELEMENTWISE, shift=-X.reshape(-1), channel_axis=0), (X,), 0 * X),
    Case("five axes", scale(CHANNEL, scale=f32(1, 2, 3), channel_axis=2), (LONG,), LONG * (LONG // 4 % 3 + 1)),
    Case("empty batch", scale(CHANNEL, scale=f32(1, 2)), (X[:0],), X[:0]),
    *(
        Case(
            f"{np.dtype(dtype)}",
            scale(CHANNEL, scale=f32(1, 2).astype(dtype), shift=f32(1, 0).astype(dtype), power=f32(2, 1).astype(dtype)),
            (X.astype(dtype),),
            f32(1, 4, 4, 6, 25, 36, 12, 14).reshape(X.shape).astype(dtype),
        )
        for dtype in FLOATS
    ),
    Case("a slope for each column", IParametricReLULayer(), (ROW, f32([2, 3])), f32([-4, -3], [0, 3])),
    Case("one slope", IParametricReLULayer(), (ROW, f32([0.5])), f32([-1, -0.5], [0, 3])),
    Case("slopes of the same shape", IParametricReLULayer(), (ROW, f32([1, -1], [5, 5])), f32([-2, 1], [0, 3])),
    Case("slope of no axes", IParametricReLULayer(), (f32(-2)[0], f32(3)[0]), f32(-6)[0]),
    Case("no elements", IParametricReLULayer(), (ROW[:0], f32([2, 3])), ROW[:0]),
    *(
        Case(f"{np.dtype(dtype)}", IParametricReLULayer(), (ROW.astype(dtype), f32([2, 3]).astype(dtype)))
        for dtype in FLOATS
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_laws(case):
    check_laws(case)


def test_scale_of_half_types_is_rounded_once():
    x = np.full((1, 1, 1, 1), 2047, np.float16)
    layer = scale(UNIFORM, scale=np.float16([1.5]), shift=np.float16([-3070]))

    assert layer.lower(x).item() == layer.evaluate(x).item() == 0.5


def test_gradient_of_scale_is_the_factor():
    layer = scale(CHANNEL, scale=f32(2, 5), shift=f32(1, 1))
    found = jax.grad(lambda x: layer.lower(x).sum())(jnp.asarray(X))

    np.testing.assert_array_equal(found[0, :, 0, 0], [2, 5])


def test_gradient_of_the_power_is_one_power_less():
    layer = scale(UNIFORM, power=f32(3))
    found = jax.grad(lambda x: layer.lower(x).sum())(jnp.asarray(X))

    assert_allclose(found, 3 * X**2, rtol=1e-6)


def test_gradients_of_the_parametric_rectifier_are_slope_and_negative_input():
    layer = IParametricReLULayer()
    by_x, by_slopes = jax.grad(lambda x, slopes: layer.lower(x, slopes).sum(), (0, 1))(
        jnp.asarray(ROW), jnp.asarray([[2.0, 3.0]])
    )

    np.testing.assert_array_equal(by_x, [[2, 3], [1, 1]])
    np.testing.assert_array_equal(by_slopes, [[-2, -1]])


def typed(*shape, dtype=np.float32):
    return TensorType(np.dtype(dtype), shape)


@pytest.mark.parametrize("mode", list(ScaleMode))
def test_scale_keeps_unknown_lengths(mode):
    assert scale(mode, channel_axis=2, shift=f32(1)).infer(typed(-1, -1, 1, -1)).shape == (-1, -1, 1, -1)


def test_channels_of_unknown_number_are_no_error():
    assert scale(CHANNEL, shift=f32(1, 2)).infer(typed(2, -1, 3, 3)).shape == (2, -1, 3, 3)


def test_slopes_tell_an_unknown_length():
    assert IParametricReLULayer().infer(typed(-1, -1), typed(1, 5)).shape == (-1, 5)


def test_slopes_of_unknown_length_are_no_error():
    assert IParametricReLULayer().infer(typed(2, -1), typed(-1, -1)).shape == (2, -1)


@pytest.mark.parametrize(("mode", "wanted"), [(UNIFORM, 1), (CHANNEL, 2), (ELEMENTWISE, 4)])
@pytest.mark.parametrize("name", ["shift", "scale", "power"])
def test_weights_of_another_size_are_refused(mode, wanted, name):
    layer = scale(mode, **{name: f32(1, 2, 3)})

    refuses(layer, X, match=f"{name} has 3 elements, but {mode.name} takes {wanted}")


def test_weights_of_another_type_are_refused():
    refuses(scale(UNIFORM, shift=np.float16([1])), X, match="shift is float16, but the input float32")


def test_scale_of_three_axes_is_refused():
    refuses(scale(UNIFORM), X[0], match="the input float32[2,1,2] has 3 axes, but must have at least 4")


def test_scale_of_integers_is_refused():
    refuses(scale(UNIFORM), X.astype(np.int32), match="the input is int32[2,2,1,2], but must be floating-point")


def test_channel_axis_that_is_not_there_is_refused():
    refuses(scale(CHANNEL, channel_axis=4), X, match="channel_axis 4 is not one of the 4 axes")


@pytest.mark.parametrize("dtype", [np.int32, np.bool_])
def test_parametric_rectifier_of_no_numbers_with_a_point_is_refused(dtype):
    refuses(IParametricReLULayer(), ROW.astype(dtype), ROW.astype(dtype), match="but must be floating-point")


def test_slopes_of_another_type_are_refused():
    refuses(IParametricReLULayer(), ROW, ROW.astype(np.float16), match="the slopes are float16[2,2], but the input is")


def test_slopes_of_another_rank_are_refused():
    refuses(IParametricReLULayer(), ROW, f32(1, 2), match="the slopes float32[2] have 1 axes")


def test_slopes_longer_than_the_input_are_refused():
    refuses(IParametricReLULayer(), f32([1, 2]), ROW, match="along axis 0 the slopes float32[2,2] have 2 elements")


def test_network_scales_channels_of_axis_1():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (2, 2, 1, 2))
    made = network.add_scale(x, CHANNEL, shift=f32(1, 2), power=Weights())

    assert made.get_output(0).shape == (2, 2, 1, 2)
    assert (made.mode, made.channel_axis, made.scale) == (CHANNEL, 1, None)
    assert made.power is not None
    assert made.power.size == 0


@pytest.mark.parametrize("shape", [(5, 2, 3, 4), (6, 5, 2, 3, 4)])
def test_network_scales_the_elements_of_the_last_three_axes(shape):
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, shape)
    made = network.add_scale(x, ELEMENTWISE, np.ones(24, np.float32))

    assert made.get_output(0).shape == shape


def test_network_scales_along_an_axis_of_choice():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (2, 2, 1, 3))
    made = network.add_scale_nd(x, CHANNEL, None, f32(1, 2, 3), None, 3)

    assert made.get_output(0).shape == (2, 2, 1, 3)
    assert made.channel_axis == 3


def test_network_adds_a_parametric_rectifier():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    made = network.add_parametric_relu(x, network.add_constant((1, 3), f32(1, 2, 3)).get_output(0))

    assert made.get_output(0).shape == (2, 3)
