"""Arrays written on the command line."""

import ml_dtypes
import numpy as np
import pytest

import netloop as trt
from netloop.tools.cli.failures import Misuse
from netloop.tools.cli.literals import array

HALF = ml_dtypes.bfloat16


def of(network, text, dtype=trt.int64, shape=(), wanted=None):
    tensor = network.add_input("x", dtype, shape)
    return array(tensor, text, shape if wanted is None else wanted)


@pytest.mark.parametrize(
    ("text", "dtype", "shape", "expected"),
    [
        ("20", trt.int64, (), np.int64(20)),
        ("-3", trt.int8, (), np.int8(-3)),
        ("20", trt.int64, (2, 2), np.full((2, 2), 20)),
        ("[1,2,3]", trt.int32, (3,), np.int32([1, 2, 3])),
        ("[[1, 2], [3, 4]]", trt.int32, (2, -1), np.int32([[1, 2], [3, 4]])),
        ("[]", trt.float32, (0, 3), np.zeros((0, 3), np.float32)),
        ("[[],[]]", trt.float32, (2, 0), np.zeros((2, 0), np.float32)),
        ("1.5", trt.float32, (), np.float32(1.5)),
        ("1e-3", trt.bfloat16, (), np.asarray(1e-3, HALF)),
        ("2", trt.float16, (1,), np.float16([2])),
        ("[nan, 1]", trt.float32, (2,), None),
        ("-inf", trt.float32, (), np.float32(-np.inf)),
        ("True", trt.bool, (), np.bool_(True)),
        ("[true, false]", trt.bool, (2,), np.array([True, False])),
        ("0", trt.bool, (), np.bool_(False)),
        ("1.5", trt.fp8, (), np.asarray(1.5, ml_dtypes.float8_e4m3fn)),
        ("255", trt.uint8, (), np.uint8(255)),
        ("9223372036854775807", trt.int64, (), np.int64(2**63 - 1)),
    ],
)
def test_value_of_the_type_and_shape_of_the_input(network, text, dtype, shape, expected):
    if expected is None:
        with pytest.raises(Misuse, match=r"'\[nan, 1\]' is no number, list or .npy file for input 'x'; write x=3"):
            of(network, text, dtype, shape)
        return
    made = of(network, text, dtype, shape)

    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(
    ("text", "expected"), [("a b", ["a b", "a b"]), ('["a","b,c"]', ["a", "b,c"]), ('"7"', ["7"] * 2)]
)
def test_strings(network, text, expected):
    assert of(network, text, trt.string, (2,)).tolist() == expected


@pytest.mark.parametrize(
    ("text", "dtype", "shape", "says"),
    [
        ("1.5", trt.int64, (), r"input 'x' is int64\[\], and --inputs has 1.5 for it"),
        ("300", trt.uint8, (), "has 300 for it"),
        ("-1", trt.uint8, (), "has -1 for it"),
        ("true", trt.int64, (), "has True for it"),
        ("2", trt.bool, (), "has 2 for it"),
        ('"a"', trt.float32, (), "has 'a' for it"),
        ("[1,2]", trt.int64, (3,), r"input 'x' is int64\[3\], and --inputs has a list of the shape \[2\] for it"),
        ("[1,2]", trt.int64, (), r"a list of the shape \[2\]"),
        ("[[1],[2,3]]", trt.int64, (2, 2), "have different lengths"),
        ("[[1],2]", trt.int64, (2, 1), "have different lengths"),
        ("many", trt.int64, (), "'many' is no number, list or .npy file"),
        ("[1,2", trt.int64, (2,), "is no number, list or .npy file"),
        ("x.txt", trt.float32, (), "is no number, list or .npy file"),
        ("{}", trt.float32, (), "has {} for it"),
        ("null", trt.float32, (), "has None for it"),
    ],
)
def test_what_is_no_value_is_refused(network, text, dtype, shape, says):
    with pytest.raises(Misuse, match=says):
        of(network, text, dtype, shape)
