import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netloop
from netloop.model.layers.low_bit import lower_quantized, quantized
from netloop.model.layers.quantize import (
    FORMATS,
    IDequantizeLayer,
    IDynamicQuantizeLayer,
    IQuantizeLayer,
)
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError
from netloop.values.enums import DataType
from netloop.values.types import TensorType, numpy_type
from tests.support.devices import assert_allclose
from tests.support.examples import examples
from tests.support.laws import Case, check_laws, refuses

INT8, INT4, FP8, FP4, E8M0 = DataType.INT8, DataType.INT4, DataType.FP8, DataType.FP4, DataType.E8M0
FLOAT, HALF = DataType.FLOAT, DataType.HALF
EMPTY = np.zeros((0, 4), np.float32)


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def i8(*shape):
    return TensorType(np.dtype(np.int8), shape)


def of(kind, numbers):
    return np.asarray(numbers, np.float32).astype(numpy_type(kind))


def quantize(kind=INT8, **named):
    return IQuantizeLayer(to_type=kind, **named)


def dequantize(kind=FLOAT, **named):
    return IDequantizeLayer(to_type=kind, **named)


def dynamic(kind, scale, *block, **named):
    return IDynamicQuantizeLayer(to_type=kind, scale_type=scale, block_shape=block, **named)


X = np.float32([[-2.5, -0.75, -0.25, 0.25, 0.75, 1.25], [1.75, 2.25, 40, 64, -63.9, -65]])
SIX = np.float32([0.5, 0.25, 1, 2, 0.3, 0.7])
BLOCKS = np.float32([[0.5, 0.25], [0.1, 1]])
SMALL = np.float32([0.1, 0.3, 1.0625, 1.1875, 17, 19, 500, -1000, 3e-3, 1e-3, 9.8e-4, -0.09])
TALL = np.float32([[1, 2.5], [-3.5, 20], [-9, 0.6], [0.5, 1.5]])

# What ONNX Runtime gives for the same operations.
BY_HALF = np.int8([[-5, -2, 0, 0, 2, 2], [4, 4, 80, 127, -128, -128]])
BY_SIX = np.int8([[-5, -3, 0, 0, 2, 2], [4, 9, 40, 32, -128, -93]])
BY_ROW = np.int8([[-5, -2, 0, 0, 2, 2], [6, 7, 127, 127, -128, -128]])
BY_BLOCK = np.int8([[-5, -2, 0, 1, 3, 5], [18, 22, 127, 64, -64, -65]])
SMALL_BY_1 = [0.1015625, 0.3125, 1, 1.25, 16, 20, 448, -448, 0.00390625, 0.001953125, 0.001953125, -0.09375]
SMALL_BY_3 = [0.34375, 1, 3.5, 4, 56, 64, 448, -448, 0.009765625, 0.00390625, 0.00390625, -0.3125]
TALL_BY_BLOCK = [[1, 5], [-4, 7], [-8, 3], [2, 7]]

# And what ONNX's own reference gives for a cast to FP4.
FOURS = np.float32([0, 0.24, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.1, 7, -0.3, -2.5, -100])
FOURS_ROUNDED = [0, 0, 0, 0.5, 1, 1, 2, 2, 4, 4, 6, 6, -0.5, -2, -6]

# The least scale of E8M0 is no normal number of float32; what it stands for may be.
LEAST, FEW = np.float32(2.0**-127), np.float32([0, 2, -3, 448])

QUANTIZE = [
    Case("INT8, one scale", quantize(), (X, np.float32(0.5)), BY_HALF),
    Case("INT8, zero point", quantize(), (X, np.float32(0.5), np.int8(0)), BY_HALF),
    Case("INT8, a scale a column", quantize(axis=1), (X, SIX), BY_SIX),
    Case("INT8, a scale a row", quantize(axis=0), (X, np.float32([0.5, 0.3])), BY_ROW),
    Case("INT8, one scale of an axis", quantize(), (X, np.float32([0.5])), BY_HALF),
    Case("INT8, zero point of float32", quantize(), (X, np.float32(0.5), np.float32(0)), BY_HALF),
    Case("INT8, zero points", quantize(axis=0), (X, np.float32([0.5, 0.3]), np.zeros(2, np.int8)), BY_ROW),
    Case("INT8, blocks", quantize(), (X, BLOCKS), BY_BLOCK),
    Case("INT8, blocks of a shape", quantize(block_shape=(1, 3)), (X, BLOCKS), BY_BLOCK),
    Case("INT8, whole rows", quantize(block_shape=(1, -1)), (X, np.float32([[0.5], [0.3]])), BY_ROW),
    Case("INT8, blocks of rank 1", quantize(), (X[0], BLOCKS[0]), BY_BLOCK[0]),
    Case("INT8, scale E8M0", quantize(), (X, of(E8M0, 0.5)), BY_HALF),
    Case("INT8 of half", quantize(), (X.astype(np.float16), np.float16(0.5)), BY_HALF),
    Case("INT8 of bfloat16", quantize(), (np.array([[3, -5]], jnp.bfloat16), np.array(2, jnp.bfloat16)), [[2, -2]]),
    Case("INT8 of double", quantize(), (X.astype(np.float64), np.float64(0.5)), BY_HALF),
    Case("INT8 of no numbers", quantize(), (np.float32([np.nan, np.inf, -np.inf]), np.float32(1)), [0, 127, -128]),
    Case("INT8 of nothing", quantize(), (EMPTY, np.float32(1)), EMPTY),
    Case("INT8 of nothing by columns", quantize(axis=1), (EMPTY, np.ones(4, np.float32)), EMPTY),
    Case("INT4, blocks", quantize(INT4), (TALL, np.float32([[1, 0.5], [0.25, 0.2]])), of(INT4, TALL_BY_BLOCK)),
    Case("FP8", quantize(FP8), (SMALL, np.float32(1)), of(FP8, SMALL_BY_1)),
    Case("FP8 by a scale", quantize(FP8), (SMALL, np.float32(0.3)), of(FP8, SMALL_BY_3)),
    Case("FP8 by the least E8M0", quantize(FP8), (LEAST * FEW, of(E8M0, LEAST)), of(FP8, FEW)),
    Case(
        "FP8 by the largest E8M0", quantize(FP8), (np.float32([2.0**127, -(2.0**126)]), of(E8M0, 2.0**127)), [1, -0.5]
    ),
    Case("FP8 of no numbers", quantize(FP8), (np.float32([np.nan, np.inf]), np.float32(1)), of(FP8, [np.nan, 448])),
    Case("FP4", quantize(FP4), (FOURS, np.float32(1)), of(FP4, FOURS_ROUNDED)),
    Case("FP4 of no numbers", quantize(FP4), (np.float32([np.nan, np.inf]), np.float32(1)), of(FP4, [0, 6])),
]

Q = np.int8([[-128, -3, 0], [5, 7, 127]])
Q_BY_ROW = np.float32([[-12.8, -0.3, 0], [1.5, 2.1, 38.1]])
Q_BY_COLUMN = np.float16([[-12.796875, -0.900390625, 0], [0.5, 2.099609375, 254]])

DEQUANTIZE = [
    Case("INT8", dequantize(), (Q, np.float32(0.5)), Q * np.float32(0.5)),
    Case("INT8, zero point", dequantize(), (Q, np.float32(0.5), np.int8(0)), Q * np.float32(0.5)),
    Case("INT8, zero point of float32", dequantize(), (Q, np.float32(0.5), np.float32(0)), Q * np.float32(0.5)),
    Case("INT8, a scale a row", dequantize(axis=0), (Q, np.float32([0.1, 0.3])), Q_BY_ROW),
    Case("INT8, a scale a column", dequantize(HALF, axis=1), (Q, np.float16([0.1, 0.3, 2])), Q_BY_COLUMN),
    Case("INT8 to double", dequantize(DataType.DOUBLE), (Q, np.float64(0.1)), Q * 0.1, rtol=1e-15),
    Case("INT8 of rank 0", dequantize(), (np.int8(3), np.float32(2)), np.float32(6)),
    Case("INT8 of rank 0, one scale of an axis", dequantize(), (np.int8(3), np.float32([2])), np.float32(6)),
    Case("INT4, blocks", dequantize(), (of(INT4, [[1, -8, 7, 2]]), np.float32([[2, 10]])), [[2, -16, 70, 20]]),
    Case("FP8", dequantize(), (of(FP8, SMALL_BY_1), np.float32(2)), 2 * np.float32(SMALL_BY_1)),
    Case("FP8, scales E8M0", dequantize(), (of(FP8, [[3, 448]]), of(E8M0, [[0.25, 2]])), [[0.75, 896]]),
    Case("FP8, the least scale E8M0", dequantize(), (of(FP8, FEW), of(E8M0, LEAST)), LEAST * FEW, rtol=0),
    Case("FP4, blocks", dequantize(block_shape=(2,)), (of(FP4, [6, 0.5, 1, -3]), np.float32([1, 2])), [6, 0.5, 2, -6]),
    Case("past the largest half", dequantize(HALF), (Q, np.float32(1e4)), None),
]

# Two blocks by hand: the scales are the largest values over 448, 127 or 6.
ROW = np.float32([[1, -2, 3.5, 0.4, 100, -448, 7, 0.5]])
PAIR = np.float32([[1, -2, 3.5, 0.4], [0, 0, 0, 0]])

DYNAMIC = [
    Case(
        "FP8 by FLOAT",
        dynamic(FP8, FLOAT, 1, 4),
        (ROW,),
        (of(FP8, [[128, -256, 448, 52, 96, -448, 7, 0.5]]), np.float32([[1 / 128, 1]])),
    ),
    Case(
        "INT8 by FLOAT",
        dynamic(INT8, FLOAT, -1, 2),
        (np.float32([[127, -3.5, 1, 2], [2.5, 40, -254, 9]]),),
        (np.int8([[127, -4, 0, 1], [2, 40, -127, 4]]), np.float32([[1, 2]])),
    ),
    Case(
        "FP8 by E8M0",
        dynamic(FP8, E8M0, 1, 4),
        (np.float32([[448, 7, 1, 0, 448.5, 4, 1, 3], [3.5, 1, 0.1, 0, 3.6, -7, 1, 0]]),),
        (
            of(FP8, [[448, 7, 1, 0, 224, 2, 0.5, 1.5], [448, 128, 13, 0, 224, -448, 64, 0]]),
            of(E8M0, [[1, 2], [2**-7, 2**-6]]),
        ),
    ),
    Case("a block of zeros", dynamic(FP8, FLOAT, 1, -1), (PAIR,), (of(FP8, 128 * PAIR), np.float32([[1 / 128], [0]]))),
    Case(
        "a block of zeros by E8M0",
        dynamic(FP8, E8M0, 1, -1),
        (PAIR,),
        (of(FP8, 128 * PAIR), np.array([[120], [0]], np.uint8).view(numpy_type(E8M0))),
    ),
    Case(
        "the greatest and no numbers by E8M0",
        dynamic(FP8, E8M0, 1),
        (np.float32([np.inf, -np.inf, np.nan, 3e38]),),
        (
            of(FP8, [448, -448, 0, 224]),
            np.array([254, 254, 255, 247], np.uint8).view(numpy_type(E8M0)),
        ),
    ),
    Case(
        "FP4 by FP8 by a scale",
        dynamic(FP4, FP8, 1, 4),
        (np.float32([[1, -2, 3.6, 0.4, 100, -448, 7, 0.5]]), np.float32(0.01)),
        (of(FP4, [[1.5, -3, 6, 0.5, 6, -6, 1.5, 0]]), of(FP8, [[60, 448]])),
    ),
    Case(
        "an axis cut into blocks",
        IDynamicQuantizeLayer(to_type=FP4, scale_type=FP8, axis=0, block_size=2),
        (np.float32([[12, 3], [-6, 3], [6, 0], [1, 24]]), np.float32(0.5)),
        (of(FP4, [[6, 6], [-3, 6], [6, 0], [1, 6]]), of(FP8, [[4, 1], [2, 8]])),
    ),
    Case("half", dynamic(FP8, FLOAT, 2), (np.float16([1, -448]),), (of(FP8, [1, -448]), np.float32([1]))),
    Case("of nothing", dynamic(FP8, FLOAT, 1, 2), (EMPTY,), (of(FP8, EMPTY), EMPTY[:, :2])),
    Case("of rank 0", dynamic(FP8, FLOAT, block_size=1), (np.float32([448]),), (of(FP8, [448]), np.float32([1]))),
]


@pytest.mark.parametrize("case", [*QUANTIZE, *DEQUANTIZE, *DYNAMIC], ids=str)
def test_laws(case):
    check_laws(case)


# ---------------------------------------------------------------------------- rounding


ROUND = jax.jit(lower_quantized, static_argnums=1)


def all_numbers(kind):
    """Every number of a type, decoded from its bits."""
    codes = np.arange(256, dtype=np.uint8)
    if kind is INT8:
        return codes.view(np.int8).astype(np.float64)
    if kind is INT4:
        return np.arange(-8, 8, dtype=np.float64)
    numbers = codes[: 16 if kind is FP4 else 256].view(numpy_type(kind)).astype(np.float64)
    return numbers[np.isfinite(numbers)]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_number_of_a_type_stays_itself(kind):
    numbers = all_numbers(kind).astype(np.float32)

    np.testing.assert_array_equal(quantized(numbers, kind).astype(np.float32), numbers)
    np.testing.assert_array_equal(np.asarray(ROUND(numbers, kind)).astype(np.float32), numbers)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_tie_goes_to_the_number_that_ends_in_an_even_bit(kind):
    numbers = np.unique(all_numbers(kind))
    numbers = numbers[numbers >= 0]
    ties = (numbers[:-1] + numbers[1:]) / 2
    even = np.where(np.arange(len(ties)) % 2 == 0, numbers[:-1], numbers[1:])

    np.testing.assert_array_equal(quantized(ties.astype(np.float32), kind).astype(np.float64), even)
    np.testing.assert_array_equal(np.asarray(ROUND(np.float32(-ties), kind)).astype(np.float64), -even)


@pytest.mark.parametrize("kind", FORMATS)
@given(numbers=st.lists(st.floats(-600, 600, width=32), min_size=1, max_size=20))
@examples(10)
def test_the_nearest_number_of_a_type_is_found(kind, numbers):
    x = np.float32(numbers)
    lowered = np.asarray(ROUND(np.resize(x, 20), kind))[: len(x)].astype(np.float64)

    distances = abs(x.astype(np.float64)[:, None] - all_numbers(kind)).min(1)
    np.testing.assert_array_equal(abs(lowered - x), distances)
    np.testing.assert_array_equal(quantized(x, kind).astype(np.float64), lowered)


def test_double_is_rounded_once():
    above = 1 + 2.0**-4 + 2.0**-40

    assert quantized(np.array(above), FP8).astype(float) == 1.125
    with jax.enable_x64(True):
        assert np.asarray(ROUND(np.array(above), FP8)).astype(float) == 1.125


# ---------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("x", "scale", "named", "match"),
    [
        (i8(2), f32(), {}, "the input is floating-point, not int8[2]"),
        (f32(), f32(), {}, "the input is float32[], but must have at least one axis"),
        (f32(2), f32(), {"kind": DataType.INT32}, "to_type is INT32, but must be one of INT8, INT4, FP8, FP4"),
        (f32(2), i8(), {}, "the scale is int8[], but must be floating-point or E8M0"),
        (f32(2, 3), f32(3), {}, "the scale is float32[3], and axis -1"),
        (f32(2, 3), f32(1), {"axis": 2}, "the scale is float32[1], and axis 2"),
        (f32(2, 3), f32(3), {"axis": 2}, "the scale is float32[3], and axis 2"),
        (f32(2, 3), f32(3), {"axis": 0}, "the scale has 3 elements, and axis 0 of the input has 2"),
        (f32(2, 3, 4), f32(1, 2), {}, "the scale is float32[1,2], and axis -1"),
        (f32(2, 6), f32(2, 4), {}, "axis 1 has 6 elements, and the scale 4"),
        (f32(2, 6), f32(2, 0), {}, "axis 1 has 6 elements, and the scale 0"),
        (f32(2, 6), f32(2, 3), {"block_shape": (1, 3)}, "axis 1 has 6 elements, and the scale 3"),
        (f32(2, 6), f32(2, -1), {"block_shape": (1, 4)}, "axis 1 has 6 elements, and the scale -1"),
        (f32(2, 6), f32(2, 6), {"block_shape": (1, -1)}, "axis 1 has 6 elements, and the scale 6"),
        (f32(2, 6), f32(2, 6), {"block_shape": (1,)}, "block_shape is (1,), but must be 2 positive numbers"),
        (f32(2, 6), f32(2, 6), {"block_shape": (1, 0)}, "block_shape is (1, 0), but must be 2 positive numbers"),
        (f32(2, 6), f32(), {"block_shape": (1, 3)}, "the scale is float32[], and block_shape (1, 3) needs one of 2"),
        (f32(2), np.array(0, np.float32), {}, "the scale has an element that is not positive"),
        (f32(2), np.float32([1, np.nan]), {}, "the scale has an element that is not positive"),
    ],
)
def test_what_cannot_be_quantised_is_refused(x, scale, named, match):
    refuses(quantize(**named), x, scale, match=match)


@pytest.mark.parametrize(
    ("zero", "match"),
    [
        (TensorType(np.dtype(np.int32)), "the zero point is int32[], but must be int8[], or floating-point"),
        (f32(2), "the zero point is float32[2], but must be int8[], or floating-point of that shape"),
        (i8(2), "the zero point is int8[2], but must be int8[], or floating-point of that shape"),
        (np.array(3, np.int8), "the zero point has an element that is not 0"),
    ],
)
def test_zero_point_has_the_type_of_the_output(zero, match):
    refuses(quantize(), f32(2), f32(), zero, match=match)
    refuses(dequantize(), i8(2), f32(), zero, match=match)


@pytest.mark.parametrize(
    ("x", "kind", "match"),
    [
        (f32(2), FLOAT, "the input is float32[2], but must be one of INT8, INT4, FP8, FP4"),
        (i8(2), INT8, "to_type is INT8, but must be one of FLOAT, HALF, BF16, DOUBLE"),
    ],
)
def test_dequantize_leads_from_few_bits_to_real_numbers(x, kind, match):
    refuses(dequantize(kind), x, f32(), match=match)


@pytest.mark.parametrize(
    ("layer", "inputs", "match"),
    [
        (dynamic(FP8, FLOAT, 1), [i8(2)], "the input is floating-point, not int8[2]"),
        (dynamic(FP4, FLOAT, 1), [f32(2)], "to_type is FP4 with scale_type FLOAT"),
        (dynamic(FP4, FP8, 1), [f32(2)], "to_type is FP4, and there is no scale of the scales"),
        (dynamic(FP8, E8M0, 1), [f32(2), f32()], "to_type is FP8, and there is a scale of the scales"),
        (dynamic(FP4, FP8, 1), [f32(2), f32(1)], "the scale of the scales is a real scalar, not float32[1]"),
        (
            dynamic(FP4, FP8, 1),
            [f32(2), np.array(0, np.float32)],
            "the scale of the scales is 0.0, but must be positive",
        ),
        (dynamic(FP8, FLOAT, 3), [f32(4)], "axis 0 has 4 elements, which is not a multiple of the block length 3"),
        (dynamic(FP8, FLOAT, -1), [f32(0)], "axis 0 has 0 elements, so its blocks have no largest element"),
        (dynamic(FP8, FLOAT, 1, 1), [f32(4)], "block_shape is (1, 1), but must be 1 positive numbers"),
        (dynamic(FP8, FLOAT), [f32(4)], "block_size is 0, but must be positive"),
        (dynamic(FP8, FLOAT, block_size=2, axis=1), [f32(4)], "axis 1 is not one of the 1 axes"),
    ],
)
def test_what_cannot_be_quantised_dynamically_is_refused(layer, inputs, match):
    refuses(layer, *inputs, match=match)


def test_unknown_lengths_of_the_input_are_kept():
    assert quantize(axis=1).infer(f32(-1, 3), f32(3)) == i8(-1, 3)
    assert quantize(axis=0).infer(f32(-1, 3), f32(-1)) == i8(-1, 3)
    assert quantize(block_shape=(1, 3)).infer(f32(-1, 6), f32(-1, 2)) == i8(-1, 6)
    assert quantize().infer(f32(-1, 6), f32(4, -1)) == i8(-1, 6)


def test_unknown_lengths_make_unknown_numbers_of_scales():
    made, scales = dynamic(INT8, FLOAT, 2, -1, 2).infer(f32(-1, -1, 6))

    assert (made, scales) == (i8(-1, -1, 6), f32(-1, 1, 3))


def test_zero_point_that_shows_only_in_the_run_is_refused_by_the_reference():
    with pytest.raises(LayerError, match="the zero point has an element that is not 0"):
        quantize().evaluate(X, np.float32(1), np.int8(1))


# ---------------------------------------------------------------------------- networks


def network_of(*shape):
    network = INetworkDefinition()
    return network, network.add_input("x", FLOAT, shape)


def constant(network, array):
    return network.add_constant(array.shape, array).get_output(0)


def both_ways(network, tensor, **feed):
    """Return the output, after checking that the reference and the engine agree to the last bit."""
    tensor.name = "y"
    network.mark_output(tensor)
    evaluated, compiled = netloop.evaluate(network, feed)["y"], netloop.compile(network)(feed)["y"]
    np.testing.assert_array_equal(np.asarray(compiled), evaluated)
    return evaluated


@pytest.mark.parametrize(("kind", "beyond"), [(INT8, -2.5), (INT4, -2), (FP8, -2.5), (FP4, -1.5)])
def test_a_pair_of_layers_rounds_to_multiples_of_the_scale(kind, beyond):
    network, x = network_of(6)
    scale = constant(network, np.float32(0.25))

    few = network.add_quantize(x, scale, kind).get_output(0)
    tensor = network.add_dequantize(few, scale, FLOAT).get_output(0)
    y = both_ways(network, tensor, x=np.float32([-2.5, -0.75, -0.3, 0.1, 0.5, 1]))

    assert few.dtype is kind
    np.testing.assert_array_equal(y[[0, 1, 4, 5]], [beyond, -0.75, 0.5, 1])


def test_two_arguments_stand_for_the_types_of_tensorrt_10():
    network, x = network_of(6)
    scale = constant(network, np.float32(1))

    few = network.add_quantize(x, scale)
    many = network.add_dequantize(few.get_output(0), scale)

    assert (few.to_type, many.to_type) == (INT8, FLOAT)


def test_double_quantisation_is_undone_by_two_layers():
    network, x = network_of(1, 8)
    scale = constant(network, np.float32(0.01))
    layer = network.add_dynamic_quantize(x, 1, 4, FP4, FP8)
    layer.set_input(1, scale)
    scales = network.add_dequantize(layer.get_output(1), scale, FLOAT).get_output(0)
    many = network.add_dequantize(layer.get_output(0), scales, FLOAT)
    many.block_shape = (1, 4)

    y = both_ways(network, many.get_output(0), x=np.float32([[0.9, -1.8, 3.6, 0.3, 6, 1, -2, 3]]))

    assert_allclose(y, [[0.9, -1.8, 3.6, 0.3, 5.76, 0.96, -1.92, 2.88]], rtol=1e-6)


@pytest.mark.parametrize("scale", [FLOAT, E8M0])
def test_dynamic_quantisation_is_undone_by_a_layer(scale):
    network, x = network_of(2, 4)
    layer = network.add_dynamic_quantize_v2(x, (1, 2), FP8, scale)

    y = both_ways(
        network,
        network.add_dequantize(*layer.outputs, FLOAT).get_output(0),
        x=np.float32([[448, 1, 3.5, 2], [7, -1, 0, 0]]),
    )

    assert_allclose(y, [[448, 1, 3.5, 2], [7, -1, 0, 0]], rtol=1e-6)


def test_dequantised_weights_have_a_derivative_with_respect_to_their_scale():
    q = np.int8([1, -2, 3])

    slope = jax.grad(lambda scale: dequantize().lower(q, scale).sum())(np.float32(0.5))

    assert slope == 2


def test_quantisation_is_a_step_whose_derivative_is_0():
    def total(x):
        few = quantize(FP8).lower(x, np.float32(1))
        return dequantize().lower(few, np.float32(1)).sum()

    assert jax.jit(jax.grad(total))(np.float32([0.3, 100])).tolist() == [0, 0]


def test_quantisation_maps_over_a_batch():
    layer = dynamic(FP8, E8M0, 4)

    made, scales = jax.jit(jax.vmap(layer.lower))(PAIR)

    assert made.astype(np.float32).tolist() == (128 * PAIR).astype(made.dtype).astype(np.float32).tolist()
    assert scales.shape == (2, 1)
