import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


IMAGE, KERNEL = normal(2, 3, 7, 8), normal(4, 3, 3, 2)


@pytest.mark.parametrize(
    "given",
    [
        {"padding": "SAME"},
        {"window_strides": (2, 1), "padding": ((1, 2), (0, 1))},
        {"rhs_dilation": (2, 2), "padding": "VALID"},
        {"lhs_dilation": (2, 3), "padding": ((2, 2), (1, 1))},
        {"padding": ((-1, 2), (1, -1))},
        {"padding": "SAME", "batch_group_count": 2},
    ],
)
def test_convolution(given):
    check_same(lambda a, b: lax.conv_general_dilated(a, b, **{"window_strides": (1, 1)} | given), IMAGE, KERNEL)


def test_convolution_of_groups():
    def convolved(a, b):
        return lax.conv_general_dilated(a, b, (1, 1), "SAME", feature_group_count=3)

    check_same(convolved, IMAGE, normal(6, 1, 3, 2))


def test_channels_last():
    numbers = ("NHWC", "HWIO", "NHWC")

    check_same(
        lambda a, b: lax.conv_general_dilated(a, b, (1, 1), "SAME", dimension_numbers=numbers),
        normal(2, 5, 6, 3),
        normal(3, 3, 3, 4),
    )


@pytest.mark.parametrize("shapes", [((2, 3, 9), (4, 3, 3)), ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2))])
def test_one_and_three_axes(shapes):
    strides = (1,) * (len(shapes[0]) - 2)

    check_same(lambda a, b: lax.conv_general_dilated(a, b, strides, "SAME"), *(normal(*shape) for shape in shapes))


def test_transposed_convolution():
    numbers = ("NCHW", "OIHW", "NCHW")

    check_same(
        lambda a, b: lax.conv_transpose(a, b, (2, 2), "SAME", dimension_numbers=numbers), IMAGE, normal(4, 3, 3, 3)
    )


def test_gradient():
    def loss(a, b):
        return jnp.tanh(lax.conv_general_dilated(a, b, (2, 2), "SAME")).sum()

    check_same(jax.grad(loss, (0, 1)), IMAGE, KERNEL, rtol=1e-4, atol=1e-5)


def test_constant_kernel_is_a_weight_of_the_layer():
    network = check_same(lambda a: lax.conv_general_dilated(a, jnp.asarray(KERNEL), (1, 1), "SAME"), IMAGE)

    assert [type(layer).__name__ for layer in network.layers] == ["IConvolutionLayer"]


@pytest.mark.parametrize(("shape", "kernel"), [((2, 0, 4, 4), (5, 0, 1, 1)), ((2, 3, 0, 4), (5, 3, 1, 1))])
def test_convolution_of_nothing_is_zero(shape, kernel):
    def function(x):
        return lax.conv(x, jnp.ones(kernel, np.float32), (1, 1), [(1, 1), (0, 0)])

    check_same(function, np.zeros(shape, np.float32))
