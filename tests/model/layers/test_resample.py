import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netloop.model.layers.grid_sample import IGridSampleLayer
from netloop.model.layers.resample import ROUNDED_QUOTIENTS, ROUNDINGS, IResizeLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError
from netloop.values.enums import (
    DataType,
    InterpolationMode,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
    SampleMode,
)
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.examples import examples
from tests.support.laws import Case, check_laws, refuses

NEAREST, LINEAR, CUBIC = InterpolationMode
ALIGN, ASYM, HALF, SYMMETRIC, CROP = ResizeCoordinateTransformation
HALF_UP, HALF_DOWN, FLOOR, CEIL = ResizeRoundMode
FILL, CLAMP, REFLECT = SampleMode.FILL, SampleMode.CLAMP, SampleMode.REFLECT

ROW = np.float32([3, 1, 4, 8, 5])


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def index(*shape):
    return TensorType(np.dtype(np.int64), shape)


def i64(*numbers):
    return np.array(numbers, np.int64)


def slope(function, x):
    return jax.jit(jax.grad(function))(x)


def resized(*shape, mode=NEAREST, transformation=ASYM, **named):
    return IResizeLayer(shape=shape, resize_mode=mode, coordinate_transformation=transformation, **named)


# ---------------------------------------------------------------------------- resize

# ONNX Runtime's Resize of the row, by mode, transformation, rounding and new length
BY_ONNX_RUNTIME = [
    (NEAREST, ASYM, HALF_DOWN, 3, [3, 4, 8]),
    (NEAREST, ASYM, HALF_DOWN, 8, [3, 1, 1, 4, 4, 8, 5, 5]),
    (NEAREST, ASYM, HALF_UP, 3, [3, 4, 8]),
    (NEAREST, ASYM, HALF_UP, 8, [3, 1, 1, 4, 8, 8, 5, 5]),
    (NEAREST, ASYM, FLOOR, 3, [3, 1, 8]),
    (NEAREST, ASYM, FLOOR, 8, [3, 3, 1, 1, 4, 8, 8, 5]),
    (NEAREST, ASYM, CEIL, 3, [3, 4, 5]),
    (NEAREST, ASYM, CEIL, 8, [3, 1, 4, 4, 8, 5, 5, 5]),
    (LINEAR, ASYM, FLOOR, 3, [3, 3, 7]),
    (LINEAR, ASYM, FLOOR, 8, [3, 1.75, 1.75, 3.625, 6, 7.625, 5.75, 5]),
    (CUBIC, ASYM, FLOOR, 3, [3, 2.5, 7.5]),
    (CUBIC, ASYM, FLOOR, 8, [3, 1.391113, 1.328125, 3.378906, 6.5625, 7.973633, 5.820312, 4.67041]),
    (NEAREST, HALF, HALF_DOWN, 3, [3, 4, 5]),
    (NEAREST, HALF, HALF_DOWN, 8, [3, 3, 1, 4, 4, 8, 5, 5]),
    (NEAREST, HALF, HALF_UP, 3, [3, 4, 5]),
    (NEAREST, HALF, HALF_UP, 8, [3, 3, 1, 4, 4, 8, 5, 5]),
    (NEAREST, HALF, FLOOR, 3, [3, 4, 8]),
    (NEAREST, HALF, FLOOR, 8, [3, 3, 1, 1, 4, 4, 8, 5]),
    (NEAREST, HALF, CEIL, 3, [1, 4, 5]),
    (NEAREST, HALF, CEIL, 8, [3, 1, 4, 4, 8, 8, 5, 5]),
    (LINEAR, HALF, FLOOR, 3, [2.333333, 4, 6]),
    (LINEAR, HALF, FLOOR, 8, [3, 2.125, 1.1875, 3.0625, 5.25, 7.75, 6.3125, 5]),
    (CUBIC, HALF, FLOOR, 3, [2.203705, 4, 6.166664]),
    (CUBIC, HALF, FLOOR, 8, [3.185669, 1.898132, 1.055664, 2.579102, 5.652832, 7.933105, 6.612427, 4.721497]),
    (NEAREST, ALIGN, HALF_DOWN, 3, [3, 4, 5]),
    (NEAREST, ALIGN, HALF_DOWN, 8, [3, 1, 1, 4, 4, 8, 8, 5]),
    (NEAREST, ALIGN, HALF_UP, 3, [3, 4, 5]),
    (NEAREST, ALIGN, HALF_UP, 8, [3, 1, 1, 4, 4, 8, 8, 5]),
    (NEAREST, ALIGN, FLOOR, 3, [3, 4, 5]),
    (NEAREST, ALIGN, FLOOR, 8, [3, 3, 1, 1, 4, 4, 8, 5]),
    (NEAREST, ALIGN, CEIL, 3, [3, 4, 5]),
    (NEAREST, ALIGN, CEIL, 8, [3, 1, 4, 4, 8, 8, 5, 5]),
    (LINEAR, ALIGN, FLOOR, 3, [3, 4, 5]),
    (LINEAR, ALIGN, FLOOR, 8, [3, 1.857143, 1.428572, 3.142857, 5.142858, 7.428572, 6.714286, 5]),
    (CUBIC, ALIGN, FLOOR, 3, [3, 4, 5]),
    (CUBIC, ALIGN, FLOOR, 8, [3, 1.524781, 1.153062, 2.683673, 5.514579, 7.791544, 7.16035, 5]),
]


@pytest.mark.parametrize(("mode", "transformation", "rounding", "length", "wanted"), BY_ONNX_RUNTIME)
def test_resize_reads_where_onnx_runtime_reads(mode, transformation, rounding, length, wanted):
    layer = resized(1, length, mode=mode, transformation=transformation, nearest_rounding=rounding)

    assert_allclose(layer.evaluate(ROW[None])[0], wanted, rtol=3e-6)
    assert_allclose(layer.lower(ROW[None])[0], wanted, rtol=3e-6)


SQUARES = (np.arange(6, dtype=np.float32) ** 2).reshape(1, 1, 2, 3)
CUBE = (np.arange(8, dtype=np.float32) ** 2).reshape(1, 1, 2, 2, 2)
EXCLUDING = {"mode": CUBIC, "transformation": HALF, "cubic_coeff": -0.5, "exclude_outside": True}


def scaled(*scales, **named):
    return IResizeLayer(scales=scales, **named)


RESIZES = [
    # PyTorch's interpolate
    Case(
        "two axes, cubic",
        resized(1, 1, 3, 4, mode=CUBIC, transformation=HALF),
        (SQUARES,),
        np.float32(
            [
                [-0.8156435, -0.7471215, 0.643931, 2.355032],
                [4.212891, 6.399414, 11.10156, 14.93066],
                [9.241423, 13.54595, 21.55919, 27.5063],
            ]
        )[None, None],
        3e-6,
    ),
    Case(
        "three axes, linear",
        resized(1, 1, 3, 1, 3, mode=LINEAR, transformation=HALF),
        (CUBE,),
        np.float32([2, 3.5, 5, 14, 17.5, 21, 26, 31.5, 37]).reshape(1, 1, 3, 1, 3),
    ),
    Case(
        "three axes, corners aligned",
        resized(1, 1, 3, 2, 3, mode=LINEAR, transformation=ALIGN),
        (CUBE,),
        np.float32([0, 0.5, 1, 4, 6.5, 9, 8, 10.5, 13, 20, 24.5, 29, 16, 20.5, 25, 36, 42.5, 49]).reshape(
            1, 1, 3, 2, 3
        ),
    ),
    # ONNX Runtime's Resize
    Case(
        "outside left out, shrunk",
        resized(1, 3, **EXCLUDING),
        (ROW[None],),
        np.float32([[2.344828, 4, 5.965518]]),
    ),
    Case(
        "outside left out, stretched",
        resized(1, 8, **EXCLUDING),
        (ROW[None],),
        np.float32([[3.143911, 2.059367, 1.04834, 2.820801, 5.411133, 7.94043, 6.385775, 4.784132]]),
    ),
    Case(
        "by a scale",
        scaled(1, 1.5, resize_mode=LINEAR),
        (ROW[None],),
        np.float32([[3, 1.666667, 2, 4, 6.666667, 7, 5]]),
    ),
    Case(
        "by a scale from the middle of each element",
        scaled(1, 0.7, resize_mode=LINEAR, coordinate_transformation=HALF),
        (ROW[None],),
        np.float32([[2.571429, 2.928571, 7.785714]]),
    ),
    Case(
        "by a scale with corners aligned",
        scaled(1, 0.7, resize_mode=LINEAR, coordinate_transformation=ALIGN),
        (ROW[None],),
        np.float32([[3, 4, 5]]),
    ),
    Case("a scale of 0.6 is three fifths", scaled(0.6), (ROW,), np.float32([3, 1, 8])),
    Case("the formula for one element", resized(1, mode=LINEAR, transformation=HALF), (ROW,), np.float32([4])),
    Case("the formula for one aligned element", resized(1, mode=LINEAR, transformation=ALIGN), (ROW,), ROW[:1]),
    Case(
        "the first for one element",
        resized(1, mode=LINEAR, transformation=HALF, selector_for_single_pixel=ResizeSelector.UPPER),
        (ROW,),
        ROW[:1],
    ),
    # by hand
    Case("nearest keeps integers", resized(1, 4), (np.int64([[2**62, -5]]),), np.int64([[2**62, 2**62, -5, -5]])),
    Case("nearest keeps bools", resized(4), (np.array([True, False]),), np.array([True, True, False, False])),
    Case("nearest keeps bytes", resized(3), (np.uint8([255]),), np.uint8([255] * 3)),
    Case("size as input", IResizeLayer(), (ROW, i64(10)), ROW.repeat(2)),
    Case("size as input, and not the scales", scaled(9, resize_mode=LINEAR), (ROW[:2], i64(4)), [3, 2, 1, 1]),
    Case("int32 size", resized(9), (ROW, np.int32([5])), ROW),
    Case("nothing to do", resized(2, 3, mode=CUBIC), (np.float32([[np.inf, 1, 2], [3, 4, 5]]),)),
    Case("a scale that keeps the length moves places", scaled(1.2), (ROW[:3],), np.float32([3, 3, 1])),
    Case("an empty batch", resized(0, 4, mode=LINEAR), (np.zeros((0, 2), np.float32),), np.zeros((0, 4), np.float32)),
    Case("an empty output", resized(2, 0, mode=CUBIC), (np.zeros((2, 3), np.float32),), np.zeros((2, 0), np.float32)),
    *(
        Case(f"linear of {np.dtype(dtype)}", resized(4, mode=LINEAR), (np.array([1, 2], dtype),), [1, 1.5, 2, 2])
        for dtype in (np.float16, jnp.bfloat16, np.float64)
    ),
    Case("half types are summed in float32", resized(1, mode=LINEAR, transformation=HALF), (np.float16([60000] * 2),)),
]


@pytest.mark.parametrize("case", RESIZES, ids=str)
def test_laws_of_resize(case):
    check_laws(case)


@pytest.mark.parametrize("table", [ROUNDINGS, ROUNDED_QUOTIENTS])
def test_every_rounding_has_a_row(table):
    assert set(table) == set(ResizeRoundMode)


@examples(8, nightly=150)
@given(
    st.sampled_from(list(InterpolationMode)),
    st.sampled_from(list(ResizeCoordinateTransformation)),
    st.sampled_from(list(ResizeRoundMode)),
    st.integers(1, 9),
    st.integers(0, 9),
    st.booleans(),
    st.booleans(),
)
def test_lowering_of_a_resize_agrees_with_its_reference(
    mode, transformation, rounding, length, size, by_scale, antialias
):
    x = (np.arange(2.0 * length) ** 2).reshape(2, length)
    given_as = {"scales": (1, max(size, 1) / length)} if by_scale else {"shape": (2, size)}
    layer = IResizeLayer(
        **given_as, resize_mode=mode, coordinate_transformation=transformation, nearest_rounding=rounding
    )
    layer.antialias, layer.roi = antialias, (0, 0.3, 1, 1.1) if transformation is CROP else ()

    check_laws(Case("drawn", layer, (x,)))


def test_unknown_size_is_of_a_known_rank():
    assert resized(mode=CUBIC).infer(f32(2, 3, 4, 5), index(4)).shape == (-1, -1, -1, -1)


def test_unknown_size_of_unknown_rank_is_no_error():
    assert IResizeLayer().infer(f32(2, 3), index(-1)).shape == (-1, -1)


def test_scale_of_an_unknown_length_is_unknown():
    assert scaled(1, 2).infer(f32(-1, 3)).shape == (-1, 6)


def test_shape_of_an_unknown_length_is_known():
    assert resized(7, 6, mode=CUBIC).infer(f32(-1, -1)).shape == (7, 6)


@pytest.mark.parametrize("mode", InterpolationMode)
def test_without_shape_and_scales_the_shape_stays(mode):
    """As in the log of a run on a GPU of an example of NVIDIA's: cubic, coefficient 0.5, on (1, 3, 4, 5)."""
    x = np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5)
    layer = IResizeLayer(resize_mode=mode, cubic_coeff=0.5)

    assert layer.infer(f32(-1, 3)).shape == (-1, 3)
    assert np.array_equal(layer.evaluate(x), x)
    assert np.array_equal(layer.lower(x), x)
    assert layer.evaluate(x[:0]).shape == layer.lower(x[:0]).shape == (0, 3, 4, 5)


def test_shape_beside_scales_is_refused():
    refuses(IResizeLayer(shape=(5,), scales=[1]), ROW, match="shape and scales are both set")


def test_shape_of_another_rank_is_refused():
    refuses(resized(5, 5), ROW, match="shape has 2 numbers, and the input 1 axes")


def test_scales_of_another_rank_is_refused():
    refuses(scaled(1, 1), ROW, match="scales has 2 numbers, and the input 1 axes")


@pytest.mark.parametrize("scale", [0, -1, np.inf, np.nan])
def test_scale_that_is_not_positive_is_refused(scale):
    refuses(scaled(scale), ROW, match="must be positive and finite")


def test_negative_length_is_refused():
    refuses(resized(-1), ROW, match="shape (-1,) has a negative dim")


def test_negative_length_of_the_size_input_is_refused():
    refuses(IResizeLayer(), ROW, i64(-1), match="the size [-1] has a negative dim")


def test_size_input_of_bools_is_refused():
    wanted = "the size is 1-D, int32, int64 or floating-point, not bool[1]"

    refuses(IResizeLayer(), ROW, TensorType(np.dtype(bool), (1,)), match=wanted)


# The row resized by ONNX Runtime 1.31, with which the reference of ONNX 1.23 agrees, by scale, roi, new length
SYMMETRIC_BY_ONNX_RUNTIME = [
    (NEAREST, 1.5, [3, 1, 1, 4, 8, 8, 5]),
    (NEAREST, 0.5, [1, 8]),
    (LINEAR, 1.5, [3, 1.666667, 2, 4, 6.666667, 7, 5]),
    (LINEAR, 0.5, [1, 8]),
    (CUBIC, 1.5, [3, 1.296296, 1.5, 4, 7.240741, 7.5, 5]),
]


SYMMETRICAL = [
    Case(
        f"symmetric {mode.name} {scale}",
        scaled(1, scale, resize_mode=mode, coordinate_transformation=SYMMETRIC, nearest_rounding=HALF_DOWN),
        (ROW[None],),
        np.float32([wanted]),
        3e-6,
    )
    for mode, scale, wanted in SYMMETRIC_BY_ONNX_RUNTIME
]


@pytest.mark.parametrize("case", SYMMETRICAL, ids=str)
def test_symmetric_resize_keeps_the_middle(case):
    check_laws(case)


CROPS_BY_ONNX_RUNTIME = [
    (NEAREST, {"shape": (1, 4)}, (0.2, 0.9), [1, 4, 8, 5]),
    (NEAREST, {"scales": (1, 1.2)}, (-0.25, 1.25), [10, 3, 1, 8, 5, 10]),
    (NEAREST, {"shape": (1, 1)}, (0.2, 0.9), [4]),
    (LINEAR, {"shape": (1, 4)}, (0.2, 0.9), [1.4, 3.2, 6.666667, 6.2]),
    (LINEAR, {"scales": (1, 1.2)}, (-0.25, 1.25), [10, 2.6, 2.2, 6.4, 5.6, 10]),
    (LINEAR, {"shape": (1, 1)}, (0.2, 0.9), [4.8]),
    (CUBIC, {"shape": (1, 4)}, (0.2, 0.9), [1.064, 2.76, 7.240742, 6.452]),
    (CUBIC, {"scales": (1, 1.2)}, (-0.25, 1.25), [10, 2.576, 1.66, 6.988, 5.624, 10]),
    (CUBIC, {"shape": (1, 1)}, (0.2, 0.9), [5.064]),
]


CROPS = [
    Case(
        f"crop {mode.name} {given}",
        IResizeLayer(
            resize_mode=mode,
            coordinate_transformation=CROP,
            roi=(0.0, start, 1.0, end),
            nearest_rounding=HALF_DOWN,
            extrapolation_value=10.0,
            **given,
        ),
        (ROW[None],),
        np.float32([wanted]),
        3e-6,
    )
    for mode, given, (start, end), wanted in CROPS_BY_ONNX_RUNTIME
]
CROPS.append(
    Case(
        "crop by tensors",
        IResizeLayer(resize_mode=LINEAR, coordinate_transformation=CROP, extrapolation_value=10.0),
        (ROW[None], np.float32([1, 1.2]), np.float32([0, -0.25, 1, 1.25])),
        np.float32([[10, 2.6, 2.2, 6.4, 5.6, 10]]),
        3e-6,
    )
)


@pytest.mark.parametrize("case", CROPS, ids=str)
def test_crop_reads_a_part_of_each_axis(case):
    check_laws(case)


def test_corner_outside_of_any_axis_is_extrapolated():
    roi = (-0.5, 0.0, 1.0, 1.5)
    layer = resized(2, 2, mode=LINEAR, transformation=CROP, roi=roi, extrapolation_value=-1.0)

    check_laws(Case("corner", layer, (np.float32([[1, 2], [3, 4]]),), np.float32([[-1, -1], [3, -1]])))


@pytest.mark.parametrize(
    ("roi", "given", "match"),
    [
        ((), None, "roi is (), but must be 2 numbers"),
        ((0.0, 1.0, 2.0), None, "roi is (0.0, 1.0, 2.0), but must be 2 numbers"),
        ((0.0, np.inf), None, "roi is (0.0, inf), but must be finite"),
        ((), np.float32([0, np.nan]), "roi is (0.0, nan), but must be finite"),
        ((), np.float32([0]), "roi is float32[1], but must be 2 numbers"),
        ((), i64(0, 1), "roi is int64[2], but must be 2 numbers"),
    ],
)
def test_part_without_a_meaning_is_refused(roi, given, match):
    refuses(resized(3, transformation=CROP, roi=roi), ROW, None, given, match=match)


def test_part_without_a_crop_is_refused():
    refuses(resized(3, roi=(0.0, 1.0)), ROW, match="roi is (0.0, 1.0), but must be no numbers")


def test_scales_of_an_input_are_positive():
    refuses(IResizeLayer(), ROW, np.float32([-1]), match="scales are (-1.0,), but must be positive and finite")


def test_scales_of_an_input_are_those_of_the_attribute():
    layer = IResizeLayer(resize_mode=CUBIC, coordinate_transformation=HALF)
    wanted = scaled(1, 1.7, resize_mode=CUBIC, coordinate_transformation=HALF).evaluate(ROW[None])

    check_laws(Case("scales", layer, (ROW[None], np.array([1, 1.7])), wanted))
    assert layer.infer(f32(1, 5), f32(2)).shape == (-1, -1)


ANTIALIASED_BY_ONNX_RUNTIME = [
    (LINEAR, False, {"scales": (1, 0.6)}, [2.25, 4.222222, 6.125]),
    (LINEAR, False, {"shape": (1, 2)}, [2.68, 5.72]),
    (LINEAR, False, {"scales": (1, 1.6)}, [3, 2.125, 1.1875, 3.0625, 5.25, 7.75, 6.3125, 5]),
    (LINEAR, True, {"scales": (1, 0.6)}, [2.142857, 4.222222, 6.285714]),
    (LINEAR, True, {"shape": (1, 2)}, [2.636364, 5.818182]),
    (CUBIC, False, {"scales": (1, 0.6)}, [1.915661, 4.27381, 6.474699]),
    (CUBIC, False, {"shape": (1, 2)}, [2.506, 5.921]),
    (CUBIC, True, {"scales": (1, 0.6)}, [1.85204, 4.266203, 6.561224]),
    (CUBIC, True, {"shape": (1, 2)}, [2.521252, 5.926855]),
    (
        CUBIC,
        True,
        {"scales": (1, 1.6)},
        [3.222011, 2.00177, 1.055664, 2.579102, 5.652832, 7.933105, 6.460768, 4.666984],
    ),
]


ANTIALIASED = [
    Case(
        f"antialias {mode.name} {inside} {given}",
        IResizeLayer(coordinate_transformation=HALF, resize_mode=mode, exclude_outside=inside, antialias=True, **given),
        (ROW[None],),
        np.float32([wanted]),
        3e-6,
    )
    for mode, inside, given, wanted in ANTIALIASED_BY_ONNX_RUNTIME
]


@pytest.mark.parametrize("case", ANTIALIASED, ids=str)
def test_antialias_weighs_all_elements(case):
    check_laws(case)


SPECKS = [
    Case(
        "past an end is nothing, not even times 0",
        resized(4, 4, mode=CUBIC, transformation=HALF, exclude_outside=True),
        (np.float32([[np.inf, 1], [1, 1]]),),
    ),
    Case(
        "nor for antialias of more elements",
        resized(1, 3, mode=LINEAR, transformation=ASYM, exclude_outside=True, antialias=True),
        (np.float32([[np.inf]]),),
        [[np.inf] * 3],
    ),
    Case(
        "what is far away does not count",
        resized(1, 4, mode=LINEAR, transformation=HALF, exclude_outside=True, antialias=True),
        (np.float32([[1, 2, 3, 4, 5, 6, np.nan, 8]]),),
        [[1.7142857, 3.5, np.nan, np.nan]],
        1e-6,
    ),
    Case(
        "so many elements that they are summed in a loop",
        resized(2, 3, mode=CUBIC, transformation=HALF, exclude_outside=True, antialias=True),
        (np.arange(400.0).reshape(2, 200),),
    ),
    Case(
        "a part with nothing in it",
        resized(2, transformation=CROP, mode=LINEAR, roi=(4, 5), exclude_outside=True, antialias=True),
        (np.float32([1, 2, 3, 4]),),
        [0, 0],
    ),
]


@pytest.mark.parametrize("case", SPECKS, ids=str)
def test_laws_of_resize_for_what_is_not_finite_or_far(case):
    check_laws(case)


def test_size_input_of_another_length_is_refused():
    refuses(IResizeLayer(), ROW, index(2), match="the size has 2 numbers, and the input 1 axes")


@pytest.mark.parametrize("mode", [LINEAR, CUBIC])
def test_integers_between_elements_are_refused(mode):
    refuses(resized(1, 2, mode=mode), np.int32([[1, 2]]), match=f"{mode.name} takes floating-point numbers")


def test_scalar_is_refused():
    refuses(IResizeLayer(), f32(), match="the input float32[] has 0 axes, and NEAREST takes 1 or more")


def test_cubic_of_one_axis_is_refused():
    refuses(resized(2, mode=CUBIC), ROW, match="has 1 axes, and CUBIC takes 2 or more")


@pytest.mark.parametrize(("mode", "rank"), [(LINEAR, 4), (CUBIC, 3)])
def test_every_axis_is_stretched(mode, rank):
    x = ROW.reshape(5, *(1,) * (rank - 1))
    wanted = resized(1, 8, mode=mode, transformation=HALF).evaluate(ROW[None])

    layer = resized(8, *(1,) * (rank - 1), mode=mode, transformation=HALF)
    check_laws(Case("far", layer, (x,), wanted.reshape(8, *(1,) * (rank - 1))))
    assert layer.beyond_tensorrt(TensorType.of(x)) == f"resizes axis 0 of {rank} by {mode.name}"


def test_stretching_nothing_is_refused():
    refuses(resized(3), f32(0), match="axis 0 has 0 elements, and cannot be resized to 3")


@pytest.mark.parametrize("value", ["12", 3, [None], ["a"]])
def test_scales_are_numbers(value):
    with pytest.raises(TypeError, match=r"IResizeLayer\.scales is a sequence of numbers"):
        IResizeLayer(scales=value)


@pytest.mark.parametrize(("mode", "wanted"), [(NEAREST, [3, 1]), (LINEAR, [2, 2]), (CUBIC, [2, 2])])
def test_gradient_counts_how_much_each_element_is_read(mode, wanted):
    layer = resized(1, 4, mode=mode, transformation=HALF)
    found = slope(lambda x: layer.lower(x).sum(), jnp.ones((1, 2)))

    assert_allclose(found[0], wanted, rtol=1e-6)


def test_network_resizes_by_shape():
    network = INetworkDefinition()
    layer = network.add_resize(network.add_input("x", DataType.FLOAT, (1, 3, 4)))
    layer.shape = (1, 6, 8)

    assert layer.get_output(0).shape == (1, 6, 8)
    assert layer.get_output(0).name == "(Unnamed Layer* 0) [Resize]_output"


def test_network_resizes_by_a_list_of_scales():
    network = INetworkDefinition()
    layer = network.add_resize(network.add_input("x", DataType.FLOAT, (1, 3, 4)))
    layer.scales = [1, 2, 0.5]

    assert layer.get_output(0).shape == (1, 6, 2)
    assert layer.scales == (1, 2, 0.5)


def test_network_without_size_keeps_the_shape_of_the_input():
    network = INetworkDefinition()
    layer = network.add_resize(network.add_input("x", DataType.FLOAT, (-1, 3, 4)))

    assert layer.get_output(0).shape == (-1, 3, 4)


@pytest.mark.parametrize(("name", "value"), [("shape", (4, 4)), ("scales", (2, 2))])
def test_size_as_an_input_wins_until_an_attribute_is_set(name, value):
    network = INetworkDefinition()
    layer = network.add_resize(network.add_input("x", DataType.FLOAT, (2, 2)))
    layer.set_input(1, network.add_constant((2,), i64(3, 5)).get_output(0))
    assert layer.get_output(0).shape == (3, 5)

    setattr(layer, name, value)
    assert layer.get_output(0).shape == (4, 4)
    assert layer.get_input(1) is None


# ---------------------------------------------------------------------------- grid sample

IMAGE = np.float32([[[[1, 2, 4, 8], [3, 5, 7, 9], [6, 0, 2, 1]]]])
GRID = np.float32([[[[0, 0], [-1, -1], [0.4, -0.3], [1.6, 0.9], [-2.3, 1.4]]]])

# PyTorch's grid_sample of the image, by interpolation, padding and align_corners
BY_PYTORCH = [
    (NEAREST, FILL, False, [7, 1, 7, 0, 0]),
    (NEAREST, FILL, True, [7, 1, 7, 0, 0]),
    (NEAREST, CLAMP, False, [7, 1, 7, 1, 6]),
    (NEAREST, CLAMP, True, [7, 1, 7, 1, 6]),
    (NEAREST, REFLECT, False, [7, 1, 7, 2, 2]),
    (NEAREST, REFLECT, True, [7, 1, 7, 2, 2]),
    (LINEAR, FILL, False, [6, 0.25, 6.52, 0, 0]),
    (LINEAR, FILL, True, [6, 1, 6.36, 0.1800003, 0]),
    (LINEAR, CLAMP, False, [6, 1, 6.52, 1, 6]),
    (LINEAR, CLAMP, True, [6, 1, 6.36, 1.8, 6]),
    (LINEAR, REFLECT, False, [6, 1, 6.52, 1.7, 2.430001]),
    (LINEAR, REFLECT, True, [6, 1, 6.36, 2.43, 3.9]),
    (CUBIC, FILL, False, [6, 0.1181641, 8.210841, 0.01040365, 0]),
    (CUBIC, FILL, True, [6, 1, 7.350239, 0.1357352, -0.007119679]),
    (CUBIC, CLAMP, False, [6, 0.7275391, 7.29063, 0.1127532, 5.999997]),
    (CUBIC, CLAMP, True, [6, 1, 7.072627, 1.65757, 6.323996]),
    (CUBIC, REFLECT, False, [6, 0.4726562, 7.29063, 0.9455634, 2.488813]),
    (CUBIC, REFLECT, True, [6, 1, 6.958764, 2.16371, 3.54109]),
]


def of_an_image(interpolation, padding, align, wanted):
    layer = IGridSampleLayer(interpolation_mode=interpolation, sample_mode=padding, align_corners=align)
    name = f"an image, {interpolation}, {padding}, {align}"
    return Case(name, layer, (IMAGE, GRID), np.float32(wanted).reshape(1, 1, 1, 5), 2e-5)


@pytest.mark.parametrize("case", [of_an_image(*row) for row in BY_PYTORCH], ids=str)
def test_grid_sample_reads_where_pytorch_reads(case):
    check_laws(case)


def places(*xy, dtype=np.float32):
    return np.array(xy, dtype).reshape(1, 1, -1, 2)


def sampled(**named):
    return IGridSampleLayer(**named)


TWO = np.float32([[[[1, 2]], [[10, 20]]], [[[3, 4]], [[30, 40]]]])

GRIDS = [
    Case(
        "each image has its own grid, its channels one",
        sampled(),
        (TWO, np.float32([[[[0, 0]]], [[[0.5, 0]]]])),
        np.float32([[[[1.5]], [[15]]], [[[4]], [[40]]]]),
    ),
    Case("one pixel, mirrored", sampled(sample_mode=REFLECT), (TWO[:1, :, :, :1], places((5, -7))), [[[[1]], [[10]]]]),
    Case(
        "one pixel, mirrored at its centre",
        sampled(sample_mode=REFLECT, align_corners=True),
        (TWO[:1, :, :, :1], places((5, -7))),
        [[[[1]], [[10]]]],
    ),
    Case("far away", sampled(), (TWO[:1], places((1e30, 0))), [[[[0]], [[0]]]]),
    Case("infinity outside of an image is not read", sampled(), (np.float32([[[[np.inf]]]]), places((4, 0)))),
    *(
        Case(
            f"infinity at an edge is mixed with nothing, {outside.name} {align}",
            sampled(sample_mode=outside, align_corners=align),
            (np.float32([[[[1, 2, np.inf]]]]), places((1, 0), (1.25, 0))),
            wanted,
        )
        for outside, align, wanted in (
            (CLAMP, False, [[[[np.inf, np.inf]]]]),
            (CLAMP, True, [[[[np.inf, np.inf]]]]),
            (REFLECT, False, [[[[np.inf, np.inf]]]]),
        )
    ),
    Case(
        "halves go to the even pixel", sampled(interpolation_mode=NEAREST), (TWO[:1], places((0, 0))), [[[[1]], [[10]]]]
    ),
    Case("an empty batch", sampled(), (TWO[:0], np.zeros((0, 3, 2, 2), np.float32)), np.zeros((0, 2, 3, 2))),
    Case("an empty grid", sampled(), (TWO, np.zeros((2, 3, 0, 2), np.float32)), np.zeros((2, 2, 3, 0))),
    Case("an empty grid of empty images", sampled(), (TWO[..., :0], np.zeros((2, 3, 0, 2), np.float32))),
    *(
        Case(
            f"{np.dtype(dtype)}",
            sampled(),
            (TWO[:1].astype(dtype), places((0.25, 0), dtype=dtype)),
            [[[[1.75]], [[17.5]]]],
        )
        for dtype in (np.float16, jnp.bfloat16, np.float64)
    ),
]


@pytest.mark.parametrize("case", GRIDS, ids=str)
def test_laws_of_grid_sample(case):
    check_laws(case)


def test_grid_sample_of_unknown_lengths_has_unknown_lengths():
    assert sampled().infer(f32(-1, 3, -1, -1), f32(2, -1, 5, -1)).shape == (2, 3, -1, 5)


@pytest.mark.parametrize("mode", [SampleMode.WRAP, SampleMode.STRICT_BOUNDS])
def test_other_sample_modes_are_refused(mode):
    refuses(sampled(sample_mode=mode), IMAGE, GRID, match=f"sample_mode is {mode.name}")


def test_image_of_four_axes_is_refused():
    wanted = "the input is float32[1,1,1,1,3,4], but must have batch, channel, and 1 to 3 axes"

    refuses(sampled(), IMAGE[None, None], GRID, match=wanted)


VOLUME = (np.arange(12, dtype=np.float32) ** 2 % 7).reshape(1, 1, 2, 2, 3)
PLACES = np.float32([[0, 0, 0], [-1, -1, -1], [0.4, -0.3, 0.7], [1.6, 0.9, -0.2], [-2.3, 1.4, 0.5]])
VOLUME_BY_PYTORCH = [
    (LINEAR, FILL, False, [1.25, 0, 0.704, 0, 0]),
    (LINEAR, FILL, True, [1.25, 0, 1.1775, 1.272, 0]),
    (LINEAR, CLAMP, False, [1.25, 0, 0.88, 3.4, 4]),
    (LINEAR, CLAMP, True, [1.25, 0, 1.1775, 3.18, 3.5]),
    (LINEAR, REFLECT, False, [1.25, 0, 0.88, 2.84, 2]),
    (LINEAR, REFLECT, True, [1.25, 0, 1.1775, 2.43, 1.86]),
    (NEAREST, FILL, False, [1, 0, 1, 0, 0]),
    (NEAREST, CLAMP, True, [1, 0, 0, 4, 4]),
    (NEAREST, REFLECT, False, [1, 0, 1, 4, 2]),
]


def of_a_volume(mode, outside, aligned, wanted):
    layer = IGridSampleLayer(interpolation_mode=mode, sample_mode=outside, align_corners=aligned)
    arrays = VOLUME, PLACES.reshape(1, 1, 1, 5, 3)
    return Case(f"a volume, {mode}, {outside}, {aligned}", layer, arrays, np.reshape(wanted, (1, 1, 1, 1, 5)), 3e-6)


@pytest.mark.parametrize("case", [of_a_volume(*row) for row in VOLUME_BY_PYTORCH], ids=str)
def test_volume_is_read_by_x_y_and_z(case):
    check_laws(case)


def test_row_is_read_as_an_image_of_one_row():
    row, places = ROW[None, None], np.float32([-0.9, 0.1, 1.2]).reshape(1, 3, 1)
    as_image = np.concatenate([places, np.zeros_like(places)], -1)[:, None]
    wanted = IGridSampleLayer().evaluate(row[:, :, None], as_image)[:, :, 0]

    check_laws(Case("row", IGridSampleLayer(), (row, places), wanted))


def test_image_of_integers_is_refused():
    refuses(sampled(), IMAGE.astype(np.int32), GRID, match="the input must be floating-point, not int32[1,1,3,4]")


def test_grid_of_three_coordinates_is_refused():
    refuses(
        sampled(), IMAGE, f32(1, 1, 1, 3), match="the grid is float32[1,1,1,3], but must have 4 axes, the last of 2"
    )


def test_grid_of_another_type_is_refused():
    refuses(sampled(), IMAGE, GRID.astype(np.float16), match="the grid is float16, but the input float32")


def test_grid_of_another_batch_is_refused():
    refuses(sampled(), IMAGE, f32(2, 1, 1, 2), match="differ in axis 0, the batch")


def test_image_without_pixels_is_refused():
    refuses(sampled(), f32(1, 1, 0, 2), GRID, match="the images of float32[1,1,0,2] have no pixels")


def test_place_that_is_no_number_is_an_error():
    with pytest.raises(LayerError, match="not finite"):
        sampled().evaluate(IMAGE, places((np.nan, 0)))


def test_gradient_of_an_image_is_the_weight_of_each_pixel():
    found = slope(lambda x: sampled().lower(x, places((0.25, 0))).sum(), jnp.ones((1, 1, 1, 2)))

    assert_allclose(found.ravel(), [0.25, 0.75])


@pytest.mark.parametrize(("mode", "padding"), [(LINEAR, FILL), (LINEAR, CLAMP), (CUBIC, REFLECT)])
def test_gradient_of_a_grid_is_the_slope_of_the_image(mode, padding):
    layer = sampled(interpolation_mode=mode, sample_mode=padding)
    image, grid = IMAGE.astype(np.float64), places((0.1, 0.3), (0.7, -0.9), dtype=np.float64)
    with jax.enable_x64(True):
        found = slope(lambda grid: layer.lower(image, grid).sum(), jnp.asarray(grid))
    step = 1e-6
    slopes = [
        (layer.evaluate(image, grid + step * one).sum() - layer.evaluate(image, grid - step * one).sum()) / (2 * step)
        for one in np.eye(4).reshape(4, 1, 1, 2, 2)
    ]

    assert_allclose(found.ravel(), slopes, rtol=1e-6)


@pytest.mark.parametrize("align", [False, True])
def test_gradient_of_a_grid_at_the_clamped_edge_is_zero(align):
    layer = sampled(sample_mode=CLAMP, align_corners=align)
    found = slope(lambda grid: layer.lower(TWO[:1, :1], grid).sum(), jnp.asarray(places((1, 0))))

    np.testing.assert_array_equal(found.ravel(), [0, 0])


def test_network_samples_a_grid():
    network = INetworkDefinition()
    x, grid = (
        network.add_input(name, DataType.HALF, shape) for name, shape in (("x", (2, 3, 4, 5)), ("g", (2, 7, 8, 2)))
    )
    layer = network.add_grid_sample(x, grid)

    assert (layer.interpolation_mode, layer.align_corners, layer.sample_mode) == (LINEAR, False, FILL)
    assert (layer.get_output(0).shape, layer.get_output(0).dtype) == ((2, 3, 7, 8), DataType.HALF)


def test_coordinates_beyond_64_bits_are_an_error():
    layer = resized(4, transformation=CROP, roi=(0.0, 1e300))

    with pytest.raises(
        LayerError, match="axis 0 is resized from 3 to 4 elements, and their coordinates are quotients of"
    ):
        layer.lower(np.ones(3, np.float32))


def test_region_of_a_mode_without_one_may_have_any_shape():
    layer, roi = resized(4), np.array(1.0, np.float32)

    assert layer.infer(f32(3), None, TensorType.of(roi)).shape == (4,)


@pytest.mark.parametrize(
    "named",
    [{"mode": NEAREST}, {"mode": LINEAR}, {"mode": CUBIC}, {"mode": CUBIC, "exclude_outside": True}],
    ids=str,
)
def test_coordinates_of_a_long_axis_are_no_constant_of_the_program(named):
    layer, x = resized(2**21, **named), np.arange(5, dtype=np.float32)

    with jax.enable_x64(True):
        lowered = jax.jit(layer.lower).lower(x)
        assert len(lowered.as_text()) < 2**16
        made = np.asarray(lowered.compile()(x))
    short = np.asarray(resized(2**20, **named).lower(x))
    assert_allclose(made[:: 2**10], short[:: 2**9], atol=1e-5)


def test_size_without_memory_fails_before_it_is_computed():
    with pytest.raises(MemoryError):
        resized(2**37).evaluate(np.ones(1, np.float32))


def test_weights_whose_sum_is_0_are_no_error():
    layer = resized(3, mode=CUBIC, transformation=HALF, cubic_coeff=1e17, exclude_outside=True)

    made = layer.evaluate(np.ones(4, np.float32))
    assert made.shape == (3,)
    assert np.isnan(made[1])
