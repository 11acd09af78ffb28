"""Arguments of the command line."""

import argparse

import pytest

from netloop.tools.cli import arguments


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("x:1x3x224x224", {"x": (1, 3, 224, 224)}),
        ("x:4,y:2x5", {"x": (4,), "y": (2, 5)}),
        ("n:scalar", {"n": ()}),
        ("input:0:2x3", {"input:0": (2, 3)}),
        ("'input:0':2x3", {"input:0": (2, 3)}),
        ("x:0x3", {"x": (0, 3)}),
        ("x:batchx-1x3", {"x": ("batch", -1, 3)}),
    ],
)
def test_shapes_as_trtexec_writes_them(text, read):
    assert arguments.shapes(text) == read


@pytest.mark.parametrize("text", ["", "x", "x:", ":3", "x:2x", "x:-2", "x:2,", "x:2.5", "x:2X3"])
def test_what_is_no_shape_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no shape of an input"):
        arguments.shapes(text)


@pytest.mark.parametrize("text", ["-1", "nan", "many", ""])
def test_tolerance_is_a_number(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a number of at least 0"):
        arguments.tolerance(text)


def test_tolerances():
    assert [arguments.tolerance(name) for name in ("0", "1e-5")] == [0.0, 1e-5]


@pytest.mark.parametrize("text", ["-1", "1.5", "x"])
def test_natural_number(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number"):
        arguments.natural(text)


def test_suffix_of_models_is_checked_in_any_case():
    assert arguments.model_path("A.ONNX").name == "A.ONNX"
    with pytest.raises(argparse.ArgumentTypeError, match=r"'a.pt' ends in none of .onnx, .xml, .plan, .py"):
        arguments.model_path("a.pt")


def test_lists_have_known_words():
    split = arguments.listed_in(("a", "b"))

    assert split("b,a") == ["b", "a"]
    with pytest.raises(argparse.ArgumentTypeError, match="'c' is none of a, b"):
        split("a,c")


@pytest.mark.parametrize("text", ["inf", "1e10", "1e308", "-1", "nan", "many"])
def test_duration_ends(text):
    for other in (arguments.duration, arguments.milliseconds):
        with pytest.raises(argparse.ArgumentTypeError, match="at least 0"):
            other(text)


def test_durations_are_of_seconds_or_milliseconds():
    assert [arguments.duration(name) for name in ("0", "4194304")] == [0.0, 4194304.0]
    assert [arguments.milliseconds(name) for name in ("200", "4194304000")] == [200.0, 4194304000.0]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("limit:1:50", [("limit", (1, 50))]),
        ("x:-1:1,n:0:9", [("x", (-1, 1)), ("n", (0, 9))]),
        ("x:-1.5:1e3", [("x", (-1.5, 1000.0))]),
        ("input:0:2:3", [("input:0", (2, 3))]),
        ("'input:0':2:3", [("input:0", (2, 3))]),
        ("1:5", [("", (1, 5))]),
        ("n:4:4", [("n", (4, 4))]),
        ("n:[1,50],x:[-1,1]", [("n", (1, 50)), ("x", (-1, 1))]),
        ("[0, 1]", [("", (0, 1))]),
    ],
)
def test_ranges_of_random_numbers(text, read):
    assert arguments.ranges(text) == read


def test_whole_numbers_of_ranges_stay_whole():
    ((_, ends),) = arguments.ranges("n:0:9007199254740993")

    assert ends == (0, 2**53 + 1)
    assert [type(end) for end in ends] == [int, int]


@pytest.mark.parametrize("text", ["", "n", "n:1", "n:2:1", "n:a:b", "n:0:inf", "n:nan:1", "n:1:2,"])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no range of an input"):
        arguments.ranges(text)
