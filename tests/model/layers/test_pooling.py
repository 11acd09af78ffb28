"""Pooling and LRN. The expected numbers are those of PyTorch, and of ONNX Runtime for SAME padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop
from netloop.model.layers.pooling import LRN_LIMITS, POOLINGS, ILRNLayer, IPoolingIndicesLayer, IPoolingLayer
from netloop.model.network import INetworkDefinition
from netloop.values.enums import DataType, PaddingMode, PoolingType
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.laws import Case, check_laws, refuses

DOWN, UP, UPPER, LOWER = PaddingMode
MAX, AVERAGE, BLEND = PoolingType
FLOATS = [np.float16, jnp.bfloat16, np.float64]
INF = np.inf


def numbers(*shape, step=7):
    """Small integers in no particular order."""
    return (np.arange(np.prod(shape)) * step % 11 - 5).reshape(shape).astype(np.float32)


def floats(shape, *given):
    return np.array(given, np.float32).reshape(shape)


def pool(kind, window, **named):
    return IPoolingLayer(type=kind, window_size_nd=window, **named)


def padded(kind, window, pre, post, **named):
    return pool(kind, window, pre_padding=pre, post_padding=post, **named)


def counting(layer):
    """Change a layer to include padding in averages, and return it."""
    layer.average_count_excludes_padding = False
    return layer


def lrn(window, alpha=0.5, beta=0.75, k=2.0):
    return ILRNLayer(window_size=window, alpha=alpha, beta=beta, k=k)


ROW, GRID, BOX = numbers(1, 1, 5), numbers(1, 2, 3, 4), numbers(1, 1, 2, 3, 3)
CHANNELS = numbers(1, 5, 1)

# fmt: off
POOLED = [
    Case("maximum", pool(MAX, (2, 2)), (GRID,), floats((1, 2, 2, 3), 2, 4, 5, 3, 4, 4, 4, 5, 5, 4, 4, 2)),
    Case("maximum by two", pool(MAX, (2, 2), stride_nd=(2, 2)), (GRID,), floats((1, 2, 1, 2), 2, 5, 4, 5)),
    Case("average", pool(AVERAGE, (2, 2)), (GRID,), floats((1, 2, 2, 3), -1.25, 0.25, 1.75, -0.75, 0.75, -0.5, 0.25,
         1.75, 0.5, 0.75, -0.5, -1.75)),
    Case("average by two", pool(AVERAGE, (1, 3), stride_nd=(2, 1)), (GRID,),
         floats((1, 2, 2, 2), -1.666667, 1.666667, -0.6666667, -1.0, 1.666667, 1.333333, -1.0, -1.333333)),
    Case("blend", pool(BLEND, (2, 2), blend_factor=0.25), (GRID,),
         floats((1, 2, 2, 3), 1.1875, 3.0625, 4.1875, 2.0625, 3.1875, 2.875, 3.0625, 4.1875, 3.875, 3.1875, 2.875,
         1.0625)),
    Case("blend of nothing but the maximum", pool(BLEND, (2, 2)), (GRID,), floats((1, 2, 2, 3), 2, 4, 5, 3, 4, 4, 4,
         5, 5, 4, 4, 2)),
    Case("maximum of three axes", pool(MAX, (2, 2, 2)), (BOX,), floats((1, 1, 1, 2, 2), 5, 5, 5, 5)),
    Case("average of three axes", pool(AVERAGE, (1, 2, 3)), (BOX,), floats((1, 1, 2, 2, 1), -0.3333333, 0.5,
         0.3333333, 1.166667)),
    Case("maximum, dilated", pool(MAX, (2, 2), dilation_nd=(1, 2)), (GRID,),
         floats((1, 2, 2, 2), 4, 5, 4, 3, 5, 4, 3, 4)),
    Case("maximum, dilated and padded", padded(MAX, (2,), (1,), (1,), dilation_nd=(2,)), (ROW,),
         floats((1, 1, 5), 2, -2, 5, 1, 5)),
    Case("average, dilated", padded(AVERAGE, (2, 2), (0, 1), (0, 1), stride_nd=(2, 1), dilation_nd=(1, 2)), (GRID,),
         floats((1, 2, 1, 4), -0.5, -0.5, 1, 1, 1, 1, -0.25, 2.5)),
    Case("average, dilated, padding counted", counting(padded(AVERAGE, (2, 2), (0, 1), (0, 1), stride_nd=(2, 1),
         dilation_nd=(1, 2))), (GRID,), floats((1, 2, 1, 4), -0.25, -0.5, 1, 0.5, 0.5, 1, -0.25, 1.25)),
    Case("average of one axis", pool(AVERAGE, (3,)), (ROW,), floats((1, 1, 3), -1.666667, 1.666667, 1.333333)),
    Case("maximum, padding below all", padded(MAX, (3,), (1,), (1,)), (-abs(ROW),),
         floats((1, 1, 5), -2, -2, -2, -1, -1)),
    Case("average, padding not counted", padded(AVERAGE, (3,), (1,), (1,)), (ROW,),
         floats((1, 1, 5), -1.5, -1.666667, 1.666667, 1.333333, 3.0)),
    Case("average, padding counted", counting(padded(AVERAGE, (3,), (1,), (1,))), (ROW,),
         floats((1, 1, 5), -1.0, -1.666667, 1.666667, 1.333333, 2.0)),
    Case("average over a corner of padding", padded(AVERAGE, (2, 2), (1, 1), (0, 0)), (GRID[:, :1],),
         floats((1, 1, 3, 4), -5.0, -1.5, 0.0, 1.5, -2.0, -1.25, 0.25, 1.75, -1.5, -0.75, 0.75, -0.5)),
    Case("average on one side, padding counted", counting(padded(AVERAGE, (2,), (0,), (1,))), (ROW,),
         floats((1, 1, 5), -1.5, 0.0, 1.5, 3.0, 0.5)),
    Case("rounded down", pool(MAX, (2,), stride_nd=(2,)), (ROW,), floats((1, 1, 2), 2, 5)),
    Case("rounded up", pool(MAX, (2,), stride_nd=(2,), padding_mode=UP), (ROW,),
         floats((1, 1, 3), 2, 5, 1)),
    Case("average, rounded up", pool(AVERAGE, (2,), stride_nd=(2,), padding_mode=UP), (ROW,),
         floats((1, 1, 3), -1.5, 1.5, 1.0)),
    Case("average, rounded up, over the end of what counts",
         counting(padded(AVERAGE, (3,), (1,), (1,), stride_nd=(3,), padding_mode=UP)), (ROW[..., :4].copy(),),
         floats((1, 1, 2), -1, 1)),
    Case("same, the odd place after", pool(MAX, (2,), padding_mode=UPPER), (ROW,),
         floats((1, 1, 5), 2, 2, 5, 5, 1)),
    Case("same, the odd place before", pool(MAX, (2,), padding_mode=LOWER), (ROW,),
         floats((1, 1, 5), -5, 2, 2, 5, 5)),
    Case("same, by two", pool(AVERAGE, (2, 2), padding_mode=UPPER, stride_nd=(2, 2)), (GRID,),
         floats((1, 2, 2, 2), -1.25, 1.75, -0.5, -3.0, 0.25, 0.5, 1.0, -1.5)),
    Case("same, padding counted", counting(pool(AVERAGE, (2,), padding_mode=LOWER)), (ROW,),
         floats((1, 1, 5), -2.5, -1.5, 0.0, 1.5, 3.0)),
    Case("same, padding of no account", padded(MAX, (2,), (3,), (3,), padding_mode=UPPER), (ROW,),
         floats((1, 1, 5), 2, 2, 5, 5, 1)),
    Case("maximum of nothing but padding", padded(MAX, (1,), (1,), (1,)), (ROW,),
         floats((1, 1, 7), -INF, *ROW[0, 0], -INF)),
    Case("average of nothing but padding", padded(AVERAGE, (1,), (1,), (1,)), (ROW,),
         floats((1, 1, 7), 0, *ROW[0, 0], 0)),
    Case("empty batch", pool(AVERAGE, (2, 2)), (GRID[:0],), np.zeros((0, 2, 2, 3), np.float32)),
    Case("no channels", pool(MAX, (2, 2)), (GRID[:, :0].copy(),), np.zeros((1, 0, 2, 3), np.float32)),
    *(
        Case(f"{kind.name} of {np.dtype(dtype)}", pool(kind, (2, 2), blend_factor=0.5), (GRID.astype(dtype),))
        for kind in PoolingType
        for dtype in FLOATS
    ),
    Case("maximum of float16", pool(MAX, (5,)), (ROW.astype(np.float16),), np.float16([[[5]]])),
    Case("average of bfloat16", pool(AVERAGE, (2,)), (ROW.astype(jnp.bfloat16),),
         floats((1, 1, 4), -1.5, 0.0, 1.5, 3.0).astype(jnp.bfloat16)),
]

NORMALIZED = [
    Case("three channels", lrn(3), (CHANNELS,), floats((1, 5, 1), -1.183029, 0.4413001, -0.4413001, 1.16184,
         0.2504815)),
    Case("five channels", lrn(5, 2, 0.5, 1), (CHANNELS,), floats((1, 5, 1), -1.326862, 0.4065578, -0.4032389, 1.30856,
         0.2773501)),
    Case("one channel", lrn(1), (CHANNELS,), floats((1, 5, 1), -0.6728899, 0.7071068, -0.7071068, 0.6728899,
         0.5029734)),
    Case("more channels than there are", lrn(15), (CHANNELS,), floats((1, 5, 1), -1.778897, 0.7115587, -0.7115587,
         1.778897, 0.3557793)),
    Case("four axes", lrn(3), (numbers(1, 2, 2, 2),), floats((1, 2, 2, 2), -1.252408, 0.6857857, -0.5698768, 1.27771,
         0.2504815, -1.028679, 1.139754, 0.0)),
    Case("five axes", lrn(3), (CHANNELS.reshape(1, 5, 1, 1, 1),),
         floats((1, 5, 1, 1, 1), -1.183029, 0.4413001, -0.4413001, 1.16184, 0.2504815)),
    Case("empty batch", lrn(3), (CHANNELS[:0],), CHANNELS[:0]),
    *(Case(f"{np.dtype(dtype)}", lrn(3), (CHANNELS.astype(dtype),)) for dtype in FLOATS),
]
# fmt: on


@pytest.mark.parametrize("case", POOLED + NORMALIZED, ids=str)
def test_laws(case):
    check_laws(case)


def test_every_type_has_a_row():
    assert set(POOLINGS) == set(PoolingType)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_average_of_half_types_is_summed_in_float32(dtype):
    much = 2048 if dtype == np.float16 else 256
    x = np.array([[[much, 1, 1, much - 2]]], dtype)
    layer = pool(AVERAGE, (4,))

    assert layer.evaluate(x).item() == much / 2
    assert layer.lower(x).item() == much / 2


def test_squares_of_half_types_do_not_overflow():
    x = np.full((1, 1, 1), 1000, np.float16)

    assert_allclose(np.float32(lrn(1, 1, 0.5, 1).lower(x)), 1, rtol=1e-3)


def test_nan_is_the_maximum():
    x = np.float32([[[1, np.nan, 3, 2]]])

    np.testing.assert_array_equal(pool(MAX, (2,)).lower(x), pool(MAX, (2,)).evaluate(x))


def test_gradient_of_the_maximum_goes_to_the_greatest():
    found = jax.grad(lambda x: pool(MAX, (2,)).lower(x).sum())(jnp.asarray([[[1.0, 3.0, 2.0]]]))

    np.testing.assert_array_equal(found, [[[0, 2, 0]]])


def test_gradient_of_the_average_is_shared_out():
    layer = padded(AVERAGE, (2,), (1,), (0,))
    found = jax.grad(lambda x: layer.lower(x).sum())(jnp.ones((1, 1, 3)))

    assert_allclose(found, [[[1.5, 1, 0.5]]])


def test_gradient_of_the_blend_is_a_blend():
    layer = pool(BLEND, (2,), blend_factor=0.5)
    found = jax.grad(lambda x: layer.lower(x).sum())(jnp.asarray([[[1.0, 3.0]]]))

    assert_allclose(found, [[[0.25, 0.75]]])


def test_gradient_of_lrn_follows_small_steps():
    layer, x, step = lrn(3), jnp.asarray([[[2.0], [1.0], [-1.0]]]), np.float32([[[0], [1e-2], [0]]])
    found = jax.grad(lambda x: layer.lower(x).sum())(x)
    wanted = (layer.lower(x + step).sum() - layer.lower(x - step).sum()) / 2e-2

    assert_allclose(found[0, 1, 0], wanted, rtol=1e-3)


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


@pytest.mark.parametrize("mode", list(PaddingMode))
def test_unknown_lengths_stay_unknown(mode):
    made = pool(MAX, (2, 2), padding_mode=mode, stride_nd=(2, 2)).infer(f32(-1, -1, -1, 4))

    assert made.shape == (-1, -1, -1, 2)


def test_lrn_keeps_unknown_lengths():
    assert lrn(3).infer(f32(-1, -1, 3)).shape == (-1, -1, 3)


@pytest.mark.parametrize("kind", [AVERAGE, BLEND])
def test_average_of_integers_is_refused(kind):
    wanted = f"the input is int32[1,1,5], but must be floating-point for {kind.name}"

    refuses(pool(kind, (2,)), ROW.astype(np.int32), match=wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_maximum_of_integers(dtype):
    x = np.array([[[7, 3, 100, 0, 1]]], dtype)

    check_laws(Case("integers", padded(MAX, (2,), (1,), (1,)), (x,), np.array([[[7, 7, 100, 100, 1, 1]]], dtype)))


def test_maximum_of_padding_alone_is_the_least_integer():
    layer = padded(MAX, (1,), (1,), (0,))

    check_laws(Case("padding", layer, (np.array([[[5]]], np.int8),), np.array([[[-128, 5]]], np.int8)))


def test_rank_that_does_not_fit_the_window_is_refused():
    refuses(pool(MAX, (2, 2)), ROW, match="the input float32[1,1,5] has 3 axes, but must have 4")


def test_window_of_four_axes_is_refused():
    refuses(pool(MAX, (1, 1, 1, 1)), BOX, match="window_size_nd is (1, 1, 1, 1), but must have 1 to 3 numbers")


def test_window_that_does_not_fit_is_refused():
    refuses(pool(MAX, (4, 1)), GRID, match="along axis 2 of the input float32[1,2,3,4], 3 elements give an output of 0")


def test_axis_without_elements_is_refused():
    refuses(
        pool(MAX, (1,), padding_mode=UPPER), ROW[..., :0], match="axis 2 of the input float32[1,1,0] has no elements"
    )


def test_stride_of_0_is_refused():
    refuses(pool(MAX, (1, 1), stride_nd=(0, 1)), GRID, match="stride_nd is (0, 1), but its numbers must be at least 1")


def test_negative_padding_is_refused():
    refuses(pool(MAX, (1,), pre_padding=(-1,)), ROW, match="pre_padding is (-1,), but its numbers must be at least 0")


def test_stride_for_another_number_of_axes_is_refused():
    refuses(pool(MAX, (1,), stride_nd=(1, 1)), ROW, match="stride_nd is (1, 1), but must have 1 numbers")


@pytest.mark.parametrize("factor", [-0.5, 1.5, np.nan])
def test_blend_factor_that_is_no_part_is_refused(factor):
    refuses(pool(BLEND, (1,), blend_factor=factor), ROW, match=f"blend_factor is {factor}, but must be from 0 to 1")


def test_blend_factor_is_of_no_account_without_blend():
    assert pool(MAX, (1,), blend_factor=7).infer(f32(1, 1, 5)).shape == (1, 1, 5)


@pytest.mark.parametrize("window", [-1, 0, 2, 17])
def test_lrn_window_without_a_middle_is_refused(window):
    refuses(lrn(window), CHANNELS, match=f"window_size is {window}, but must be odd, from 1 to 15")


@pytest.mark.parametrize("name", LRN_LIMITS)
def test_lrn_numbers_beyond_their_limits_are_refused(name):
    for limit in LRN_LIMITS[name]:
        value = limit * 2 if abs(limit) > 1 else limit / 2
        refuses(lrn(3, **{name: value}), CHANNELS, match=f"{name} is {value}, but must be from")


def test_lrn_of_two_axes_is_refused():
    refuses(lrn(3), numbers(2, 3), match="the input float32[2,3] has 2 axes, but must have at least 3")


def test_lrn_of_integers_is_refused():
    refuses(lrn(3), CHANNELS.astype(np.int32), match="the input is int32[1,5,1], but must be floating-point")


def test_network_pools_by_one_and_counts_no_padding():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 1, 6, 9))
    made = network.add_pooling_nd(x, MAX, (2, 2))

    assert made.get_output(0).shape == (1, 1, 5, 8)
    assert (made.type, made.stride_nd, made.padding_nd, made.padding_mode) == (MAX, (1, 1), (0, 0), DOWN)
    assert (made.blend_factor, made.average_count_excludes_padding) == (0.0, True)


def test_padding_nd_sets_the_padding_on_both_sides():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 1, 3, 3))
    made = network.add_pooling_nd(x, AVERAGE, [3, 3])
    made.padding_nd = (1, 0)

    assert (made.padding_nd, made.post_padding) == ((1, 0), (1, 0))
    assert made.get_output(0).shape == (1, 1, 3, 1)


def test_network_normalizes_channels():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 4, 3, 3))
    made = network.add_lrn(x, 5, 1e-4, 0.75, 1)

    assert made.get_output(0).shape == (1, 4, 3, 3)
    assert (made.window_size, made.alpha, made.beta, made.k) == (5, 1e-4, 0.75, 1.0)


# ---------------------------------------------------------------------------- indices


def places(window, **named):
    return IPoolingIndicesLayer(window_size_nd=window, **named)


INDICES_BY_PYTORCH = [
    (places((2, 2)), GRID, [1, 6, 3, 9, 6, 6, 5, 2, 2, 5, 5, 11]),
    (
        places((2, 2), stride_nd=(1, 1), pre_padding=(1, 1), post_padding=(1, 1)),
        GRID,
        [
            0,
            1,
            1,
            3,
            3,
            4,
            1,
            6,
            3,
            3,
            4,
            9,
            6,
            6,
            7,
            8,
            9,
            9,
            10,
            11,
            0,
            0,
            2,
            2,
            3,
            0,
            5,
            2,
            2,
            3,
            8,
            5,
            5,
            11,
            11,
            8,
            8,
            9,
            11,
            11,
        ],
    ),
    (places((2, 2), dilation_nd=(1, 2)), GRID, [6, 3, 6, 9, 2, 5, 8, 5]),
    (places((1, 2, 2), stride_nd=(1, 1, 2)), BOX, [3, 3, 9, 12]),
]


@pytest.mark.parametrize(("layer", "x", "wanted"), INDICES_BY_PYTORCH)
def test_indices_are_those_of_pytorch(layer, x, wanted):
    shape = layer.infer(TensorType.of(x)).shape

    check_laws(Case("indices", layer, (x,), np.reshape(wanted, shape).astype(np.int32)))


def test_first_of_equal_maxima_is_told():
    check_laws(Case("equal", places((3,)), (np.ones((1, 1, 4), np.int8),), np.int32([[[0, 1]]])))


def test_place_of_a_number_that_is_none_is_told():
    x = np.float32([[[1, np.nan, 5, np.nan]]])

    check_laws(Case("NaN", places((2,)), (x,), np.int32([[[1, 1, 3]]])))


def test_padding_alone_has_no_place():
    layer = places((1,), pre_padding=(1,), post_padding=(0,), indices_type=DataType.INT64)

    check_laws(Case("padding", layer, (np.float32([[[-INF]]]),), np.array([[[-1, 0]]])))


def test_indices_of_bool_are_refused():
    refuses(places((1,)), ROW > 0, match="the input is bool[1,1,5], but must be numeric")


def test_indices_are_whole_numbers():
    refuses(places((1,), indices_type=DataType.INT8), ROW, match="indices_type is INT8, but must be INT32 or INT64")


def test_elements_at_the_indices_are_the_maxima():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 2, 3, 4))
    found = network.add_pooling_indices(x, (2, 2)).get_output(0)
    found.name = "y"
    network.mark_output(found)
    indices = np.asarray(netloop.compile(network)({"x": GRID})["y"]).reshape(1, 2, -1)

    maxima = pool(MAX, (2, 2)).evaluate(GRID).reshape(1, 2, -1)
    assert np.take_along_axis(GRID.reshape(1, 2, -1), indices, 2).tolist() == maxima.tolist()


MOST = 2**63 - 1


UNCOUNTABLE = [
    ({"dilation_nd": (MOST,)}, "dilation_nd is (9223372036854775807,), but must be at most 2147483647"),
    ({"dilation_nd": (2**30,), "window_size_nd": (4,)}, "the window extends over [3221225473] elements"),
    ({"stride_nd": (MOST,)}, "stride_nd is (9223372036854775807,), but must be at most"),
    ({"window_size_nd": (MOST,)}, "window_size_nd is (9223372036854775807,), but must be at most"),
    ({"pre_padding": (MOST,)}, "pre_padding is (9223372036854775807,), but must be at most"),
]
PADDED = {"pre_padding": (2**30,), "post_padding": (2**30,)}, "axis 2 of float32[1,1,4] has 2147483652 elements with"


@pytest.mark.parametrize(
    ("mode", "numbers", "match"),
    # a SAME mode has padding of its own
    [(mode, *number) for mode, numbers in ((DOWN, [*UNCOUNTABLE, PADDED]), (UPPER, UNCOUNTABLE)) for number in numbers],
)
def test_window_that_devices_cannot_count_is_refused(mode, numbers, match):
    given = {"window_size_nd": (2,), "padding_mode": mode, **numbers}
    x = floats((1, 1, 4), 1, 2, 3, 4)

    refuses(IPoolingLayer(type=MAX, **given), x, match=match)
    refuses(IPoolingIndicesLayer(**given), x, match=match)


@pytest.mark.parametrize("excludes", [True, False])
@pytest.mark.parametrize("mode", [UPPER, LOWER])
def test_window_far_longer_than_the_input_sees_all_of_it(mode, excludes):
    """Element by element, the window would take minutes."""
    given = {"window_size_nd": (2**31 - 8,), "padding_mode": mode}
    x = floats((1, 1, 4), 1, 5, 2, 4)
    mean = 3 if excludes else 12 / (2**31 - 8)
    average = IPoolingLayer(type=AVERAGE, average_count_excludes_padding=excludes, **given)

    check_laws(Case("maximum", IPoolingLayer(type=MAX, **given), (x,), np.full_like(x, 5)))
    check_laws(Case("average", average, (x,), np.full_like(x, mean)))
    check_laws(Case("index", IPoolingIndicesLayer(**given), (x,), np.full(x.shape, 1, np.int32)))


@pytest.mark.parametrize(
    "layer", [IPoolingLayer(type=AVERAGE, window_size_nd=(3,)), IPoolingIndicesLayer(window_size_nd=(3,))]
)
def test_positions_in_a_long_axis_are_no_constant_of_the_program(layer):
    x = jax.ShapeDtypeStruct((1, 1, 2**21), np.float32)

    with jax.enable_x64(True):
        assert len(jax.jit(layer.lower).lower(x).as_text()) < 2**16


@pytest.mark.parametrize("stride", [(2**31 - 1, 2**31 - 1), (2**30, 2**30), (5, 9), (6, 2**31 - 1)])
@pytest.mark.parametrize("kind", [*PoolingType, "convolution", "channels last"])
def test_windows_after_the_first_may_be_far_past_the_input(network, kind, stride):
    x = network.add_input("x", DataType.FLOAT, (1, 2, 4, 5))
    if isinstance(kind, PoolingType):
        layer = network.add_pooling_nd(x, kind, (3, 2))
        layer.blend_factor = 0.25 * (kind is PoolingType.MAX_AVERAGE_BLEND)
    else:
        layer = network.add_convolution_nd(x, 3, (3, 2), np.arange(36, dtype=np.float32), np.ones(3, np.float32))
    layer.stride_nd, layer.pre_padding = stride, (1, 0)
    layer.padding_mode = PaddingMode.EXPLICIT_ROUND_UP
    network.mark_output(layer.get_output(0))
    inputs = {"x": 1 + np.arange(40, dtype=np.float32).reshape(x.shape)}

    outputs = netloop.compile(network, passes=["channels_last"] if kind == "channels last" else None)(inputs)

    for name, meant in netloop.evaluate(network, inputs).items():
        assert meant.shape[2:] == (2, 2)
        assert_allclose(outputs[name], meant)
