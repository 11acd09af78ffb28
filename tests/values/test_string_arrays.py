import numpy as np
import pytest

from netloop.values.string_arrays import STRING, contents, string_array, type_name

TEXTS = ["a\0", "", "é" * 100, "\U0001f600"]


@pytest.mark.parametrize(
    "given",
    [TEXTS, tuple(TEXTS), np.array(TEXTS, object), np.array(TEXTS, np.dtypes.StringDType()), np.array(TEXTS, STRING)],
    ids=["list", "tuple", "objects", "StringDType", "strings"],
)
def test_every_form_of_texts_becomes_an_array_of_strings(given):
    made = string_array(given)

    assert made.dtype == STRING
    assert made.tolist() == TEXTS


def test_texts_of_fixed_length_become_strings():
    assert string_array(np.array([["ab", "c"]])).tolist() == [["ab", "c"]]


def test_single_text_is_a_scalar():
    assert (string_array("ab\0").shape, string_array("ab\0")[()]) == ((), "ab\0")


@pytest.mark.parametrize(
    "given",
    [
        ["a", 1], ["a", None], [b"a"], [["a"], ["b", "c"]], 3, None, [float("nan")], np.array([b"a"]), np.ones(2),
        np.array(["a", np.nan], object), np.array([["a"], ["b", "c"]], object),
        np.array(["a", np.nan], np.dtypes.StringDType(na_object=np.nan)),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_text_is_refused(given):
    with pytest.raises(ValueError, match="not every element is a str"):
        string_array(given)


def test_half_of_a_surrogate_pair_is_refused():
    with pytest.raises(ValueError, match="no valid Unicode"):
        string_array(["\ud800"])


def test_contents_differ_where_long_texts_do():
    same, other = (string_array(["x" * 100 + end]) for end in "ab")

    assert contents(same) == contents(same.copy()) != contents(other)
    assert contents(np.int32([1])) == contents(np.int32([1])) != contents(np.int32([2]))


def test_types_have_the_names_of_messages():
    assert [type_name(np.dtype(np.float32)), type_name(STRING)] == ["float32", "string"]
