import jax
import jax.numpy as jnp
import numpy as np
import pytest

from netloop.model.layers.normalization import INormalizationLayer, IRaggedSoftMaxLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError
from netloop.values.enums import DataType
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.laws import Case, check_laws, refuses


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def i32(*shape):
    return TensorType(np.dtype(np.int32), shape)


def slope(function, x):
    return jax.jit(jax.grad(function))(x)


# ---------------------------------------------------------------------------- normalization

X = np.float32([[[1, 4], [2, 0], [-1, 3], [5, 2]], [[0, 1], [1, 2], [3, -2], [4, 4]]])
CHANNEL_SCALE = np.float32([1, 2, -1, 0.5]).reshape(1, 4, 1)
CHANNEL_BIAS = np.float32([0, 1, 2, 3]).reshape(1, 4, 1)
ONE, ZERO = np.ones((1, 1, 1), np.float32), np.zeros((1, 1, 1), np.float32)

# PyTorch's group_norm with two groups
BY_GROUP = np.float32(
    [
        [-0.5070914, 1.521274, 1.338061, -1.366426, 3.501109, 1.65359, 3.635085, 2.942265],
        [-1.414199, 0, 1, 3.828399, 1.698489, 3.708563, 3.351763, 3.351763],
    ]
).reshape(2, 4, 2)


def over(axes, **named):
    return INormalizationLayer(axes=axes, **named)


def parts(dtype):
    return X.astype(dtype), CHANNEL_SCALE.astype(dtype), CHANNEL_BIAS.astype(dtype)


NORMALIZATIONS = [
    # PyTorch's layer_norm
    Case(
        "layer",
        over(0b100),
        (X, np.float32([[[1, 2]]]), np.float32([[[0.5, -1]]])),
        np.float32(
            [
                [-0.4999978, 0.9999956, 1.499995, -2.99999, -0.4999988, 0.9999976, 1.499998, -2.999996],
                [-0.49998, 0.9999599, -0.49998, 0.9999599, 1.499999, -2.999999, 0.5, -1],
            ]
        ).reshape(2, 4, 2),
        3e-6,
    ),
    Case(
        "layer over two axes, with a large epsilon",
        over(0b110, epsilon=0.1),
        (X, ONE, ZERO),
        np.float32(
            [
                [-0.5270463, 1.054093, 0, -1.054093, -1.581139, 0.5270463, 1.581139, 0],
                [-0.8298624, -0.3191778, -0.3191778, 0.1915067, 0.7021912, -1.851231, 1.212876, 1.212876],
            ]
        ).reshape(2, 4, 2),
        3e-6,
    ),
    # PyTorch's instance_norm
    Case(
        "instance",
        over(0b100),
        (X, CHANNEL_SCALE, CHANNEL_BIAS),
        np.float32(
            [
                [-0.9999977, 0.9999979, 2.99999, -0.99999, 2.999999, 1.000001, 3.499999, 2.500001],
                [-0.99998, 0.99998, -0.9999599, 2.99996, 1.000001, 2.999999, 3, 3],
            ]
        ).reshape(2, 4, 2),
        3e-6,
    ),
    Case("group", over(0b100, num_groups=2, is_v2=True), (X, CHANNEL_SCALE, CHANNEL_BIAS), BY_GROUP, 3e-6),
    # PyTorch's group_norm with the factors of each group repeated
    Case(
        "group, with factors for each group",
        over(0b100, num_groups=2),
        (X, np.float32([[[2], [-1]]]), np.float32([[[1], [0]]])),
        np.float32(
            [
                [-0.01418281, 4.042548, 1.338061, -1.366426, 1.501109, -0.3464098, -1.270169, 0.1154699],
                [-1.828399, 1, 1, 3.828399, -0.3015111, 1.708563, -0.7035259, -0.7035259],
            ]
        ).reshape(2, 4, 2),
        3e-6,
    ),
    # by hand
    Case("one group is none", over(0b110, num_groups=1), (X, CHANNEL_SCALE, CHANNEL_BIAS)),
    Case("one factor for all groups", over(0b100, num_groups=2), (X, ONE, ZERO)),
    Case("as many groups as channels", over(0b100, num_groups=4), (X, CHANNEL_SCALE, CHANNEL_BIAS)),
    Case("the batch", over(0b001), (X, ONE, ZERO)),
    Case("equal elements", over(1), (np.float32([7, 7]), np.float32([3]), np.float32([5])), np.float32([5, 5])),
    Case("population variance", over(1, epsilon=0), (np.float32([1, 3]), np.float32([1]), np.float32([0])), [-1.0, 1]),
    Case("an empty batch", over(0b100), (X[:0], CHANNEL_SCALE, CHANNEL_BIAS), X[:0]),
    Case("groups of an empty batch", over(0b100, num_groups=2), (X[:0], ONE, ZERO), X[:0]),
    Case("over an empty axis", over(0b100), (X[..., :0], ONE, ZERO), X[..., :0]),
    *(
        Case(f"{np.dtype(dtype)}", over(0b100, num_groups=2, is_v2=True), parts(dtype), BY_GROUP)
        for dtype in (np.float16, jnp.bfloat16, np.float64)
    ),
    Case(
        "squares beyond float16",
        over(1),
        (np.float16([-1000, 1000]), np.float16([1]), np.float16([0])),
        np.float16([-1, 1]),
    ),
]


@pytest.mark.parametrize("case", NORMALIZATIONS, ids=str)
def test_laws_of_normalization(case):
    check_laws(case)


def test_unknown_lengths_stay_unknown():
    assert over(0b110).infer(f32(-1, 3, -1), f32(1, 3, -1), f32(1, -1, 1)).shape == (-1, 3, -1)


def test_unknown_channels_may_have_groups():
    assert over(0b100, num_groups=2).infer(f32(2, -1, 3), f32(1, 2, 1), f32(1, 2, 1)).shape == (2, -1, 3)


def test_integers_are_not_normalised():
    refuses(over(1), i32(2), i32(2), i32(2), match="the input is int32[2], but must be floating-point")


@pytest.mark.parametrize("epsilon", [-1e-5, np.nan, np.inf])
def test_epsilon_without_meaning_is_refused(epsilon):
    refuses(over(0b100, epsilon=epsilon), X, ONE, ZERO, match="must be finite and not negative")


def test_no_axes_are_refused():
    refuses(over(0), X, ONE, ZERO, match="so there is no axis to normalize")


def test_axes_past_the_last_are_refused():
    refuses(over(0b1000), X, ONE, ZERO, match="has bits past the 3 axes of the input")


def test_no_groups_are_refused():
    refuses(over(0b100, num_groups=0), X, ONE, ZERO, match="num_groups is 0, but must be at least 1")


def test_groups_over_other_axes_are_refused_with_the_axes_that_would_do():
    with pytest.raises(LayerError, match="num_groups is 2, and the axes are") as caught:
        over(0b110, num_groups=2).infer(f32(2, 4, 2), f32(1, 4, 1), f32(1, 4, 1))

    assert caught.value.fix == "set axes to 0b100"


def test_groups_of_two_axes_are_refused():
    refuses(over(0b10, num_groups=2), f32(2, 4), f32(1, 4), f32(1, 4), match="num_groups is 2, and the axes are (1,)")


def test_groups_of_unequal_size_are_refused():
    refuses(over(0b100, num_groups=3), X, ONE, ZERO, match="4 channels cannot be split into 3 groups")


@pytest.mark.parametrize(("position", "name"), [(1, "scale"), (2, "bias")])
def test_factor_of_another_type_is_refused(position, name):
    inputs = [X, ONE, ZERO]
    inputs[position] = inputs[position].astype(np.float16)
    refuses(over(0b100), *inputs, match=f"the {name} is float16, and the input float32")


@pytest.mark.parametrize("factor", [f32(4), f32(1, 3, 1), f32(1, 1, 4)])
def test_factor_of_another_shape_is_refused(factor):
    refuses(
        over(0b100), X, factor, ZERO, match=f"the scale is {factor}, and each of its dims must be that of float32[2,4"
    )


def test_factor_of_each_group_is_refused_in_the_second_version():
    refuses(
        over(0b100, num_groups=2, is_v2=True),
        X,
        f32(1, 2, 1),
        ZERO,
        match="each of its dims must be that of float32[2,4,2]",
    )


def test_factor_of_each_channel_is_refused_in_the_first_version():
    refuses(over(0b100, num_groups=2), X, CHANNEL_SCALE, ZERO, match="each of its dims must be that of float32[2,2,2]")


def test_gradient_of_a_normalised_sum_is_zero():
    found = slope(lambda x: over(0b100).lower(x, ONE, ZERO).sum(), jnp.asarray(X))

    assert_allclose(found, np.zeros_like(X), atol=1e-6)


def test_gradient_of_the_bias_counts_its_elements():
    layer = over(0b100, num_groups=2)
    found = slope(lambda bias: layer.lower(X, ONE, bias).sum(), jnp.zeros((1, 2, 1)))

    np.testing.assert_array_equal(found.ravel(), [8, 8])


@pytest.mark.parametrize(("method", "is_v2"), [("add_normalization", False), ("add_normalization_v2", True)])
def test_network_normalises(method, is_v2):
    network = INetworkDefinition()
    x, scale, bias = (network.add_input(name, DataType.FLOAT, (2, 3)) for name in "xsb")
    layer = getattr(network, method)(x, scale, bias, axesMask=2)

    assert (layer.axes, layer.epsilon, layer.num_groups, layer.is_v2) == (2, 1e-5, 1, is_v2)
    assert layer.get_output(0).shape == (2, 3)
    assert layer.name == "(Unnamed Layer* 0) [Normalization" + "V2" * is_v2 + "]"
    with pytest.raises(AttributeError, match="fixed when the layer is added"):
        layer.is_v2 = True


# ---------------------------------------------------------------------------- ragged softmax


def bounds(*numbers, dtype=np.int32):
    return np.array(numbers, dtype).reshape(1, -1, 1)


def rows(*numbers, dtype=np.float32):
    return np.array([numbers], dtype)


LOG2, LOG3 = np.log(2), np.log(3)

RAGGED = [
    Case(
        "the first, none and all",
        IRaggedSoftMaxLayer(),
        (rows([0, LOG3, 9], [1, 2, 3], [0, LOG2, LOG3]), bounds(2, 0, 3)),
        np.float32([[[0.25, 0.75, 0], [0, 0, 0], [1 / 6, 2 / 6, 3 / 6]]]),
    ),
    Case("one", IRaggedSoftMaxLayer(), (rows([7, np.nan]), bounds(1)), np.float32([[[1, 0]]])),
    Case("no overflow", IRaggedSoftMaxLayer(), (rows([1000, 1000]), bounds(2)), np.float32([[[0.5, 0.5]]])),
    Case(
        "minus infinity", IRaggedSoftMaxLayer(), (rows([-np.inf, 3]), bounds(2, dtype=np.int64)), np.float32([[[0, 1]]])
    ),
    Case("NaN stays in the bound", IRaggedSoftMaxLayer(), (rows([np.nan, 1, 2]), bounds(2)), [[[np.nan, np.nan, 0]]]),
    Case("nothing but minus infinity is nothing", IRaggedSoftMaxLayer(), (rows([-np.inf] * 2), bounds(2))),
    Case("an empty batch", IRaggedSoftMaxLayer(), (np.zeros((0, 2, 3), np.float32), np.zeros((0, 2, 1), np.int32))),
    Case("empty rows", IRaggedSoftMaxLayer(), (np.zeros((1, 2, 0), np.float32), bounds(0, 0))),
    *(
        Case(
            f"{np.dtype(dtype)}",
            IRaggedSoftMaxLayer(),
            (rows([0, LOG3, 9], dtype=dtype), bounds(2)),
            np.array([[[0.25, 0.75, 0]]]),
            2e-2 if np.dtype(dtype).itemsize == 2 else 1e-6,
        )
        for dtype in (np.float16, jnp.bfloat16, np.float64)
    ),
]


@pytest.mark.parametrize("case", RAGGED, ids=str)
def test_laws_of_ragged_softmax(case):
    check_laws(case)


def test_ragged_softmax_of_unknown_lengths():
    assert IRaggedSoftMaxLayer().infer(f32(-1, 3, -1), i32(2, -1, 1)).shape == (-1, 3, -1)


def test_ragged_softmax_of_two_axes_is_refused():
    refuses(IRaggedSoftMaxLayer(), f32(2, 3), i32(2, 1), match="the input is float32[2,3], but must have 3 axes")


def test_ragged_softmax_of_integers_is_refused():
    refuses(IRaggedSoftMaxLayer(), i32(1, 2, 3), i32(1, 2, 1), match="must be floating-point")


def test_bounds_of_floats_are_refused():
    refuses(
        IRaggedSoftMaxLayer(), f32(1, 2, 3), f32(1, 2, 1), match="the bounds are int32 or int64, not float32[1,2,1]"
    )


@pytest.mark.parametrize("shape", [(1, 2), (1, 2, 3), (1, 3, 1)])
def test_bounds_of_another_shape_are_refused(shape):
    refuses(IRaggedSoftMaxLayer(), f32(1, 2, 3), i32(*shape), match="but must be int32[1,2,1]")


@pytest.mark.parametrize("bound", [-1, 4])
def test_bound_beyond_the_row_is_an_error(bound):
    with pytest.raises(LayerError, match=rf"row \[0, 0\] has the bound {bound}, and 3 elements"):
        IRaggedSoftMaxLayer().evaluate(rows([1, 2, 3]), bounds(bound))


@pytest.mark.parametrize(("bound", "wanted"), [(-1, [0, 0]), (4, [0.25, 0.75])])
def test_compiled_bound_beyond_the_row_is_the_nearest(bound, wanted):
    assert_allclose(IRaggedSoftMaxLayer().lower(rows([0, LOG3]), bounds(bound))[0, 0], wanted, rtol=1e-6)


def test_gradient_of_a_ragged_softmax_stays_within_the_bound():
    x = rows([0, 0, 5], [1, 2, 3])
    found = slope(lambda x: IRaggedSoftMaxLayer().lower(x, bounds(2, 0))[..., 0].sum(), jnp.asarray(x))

    assert_allclose(found, [[[0.25, -0.25, 0], [0, 0, 0]]], atol=1e-7)


def test_network_has_ragged_softmax():
    network = INetworkDefinition()
    x, limits = network.add_input("x", DataType.HALF, (2, 3, 4)), network.add_input("n", DataType.INT32, (2, 3, 1))
    output = network.add_ragged_softmax(x, limits).get_output(0)

    assert (output.shape, output.dtype) == ((2, 3, 4), DataType.HALF)
    assert output.name == "(Unnamed Layer* 0) [Ragged SoftMax]_output"
