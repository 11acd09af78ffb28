"""How well two runtimes agree."""

import jax.numpy as jnp
import numpy as np
import pytest

from netloop.peers import agreements


def one(got, expected, **tolerances):
    (found,) = agreements({"y": got}, {"y": expected}, **tolerances)
    return found


def test_numbers_of_a_difference():
    found = one(np.array([1, 2.5, -8]), np.array([1, 2, -4.0]), rtol=0, atol=0.1)

    assert not found.agrees
    assert (found.elements, found.differing, found.absolute, found.relative) == (3, 2, 4.0, 1.0)
    assert found.worst == ((2,), -4, -8)
    said = "y: differs, 2 of 3 elements, largest difference 4, relative 1; -8.0 and -4.0 at [2]"
    assert str(found) == said


def test_rounding_agrees_by_the_usual_tolerances():
    found = one(np.float32([1.0001]), np.float32([1]))

    assert found.agrees
    assert str(found).startswith("y: agrees, largest difference 0.0001, relative 0.0001")
    assert not one(np.float32([1.001]), np.float32([1])).agrees


@pytest.mark.parametrize(("got", "same"), [(np.nan, True), (np.inf, False), (0.0, False)])
def test_nan_agrees_with_itself_only(got, same):
    assert one(np.array([got]), np.array([np.nan])).agrees is same


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (np.zeros(2), np.zeros(3), "y: differs, (2,) and (3,)"),
        (np.zeros(2), np.zeros(2, np.float32), "y: differs, float64 and float32"),
        ([np.zeros(2)], [], "y: differs, 1 arrays and no value"),
        (None, np.zeros(2), "y: differs, no value and 1 arrays"),
    ],
)
def test_other_types_differ(got, expected, said):
    assert str(one(got, expected)).startswith(said)


def test_integers_bools_and_strings_are_equal_or_not():
    assert one(np.array([1, 2]), np.array([1, 2])).agrees
    assert one(np.array([1, 2]), np.array([1, 3])).differing == 1
    assert one(np.array(["a"], object), np.array(["a"])).agrees
    assert not one(np.array(["a"]), np.array(["b"])).agrees
    assert not one(np.array([True]), np.array([False])).agrees


def test_short_floats():
    a = np.asarray(jnp.array([1.0, 2.0], jnp.bfloat16))

    assert one(a, a).agrees
    assert one(a, a + 1).absolute == 1


def test_parts_of_sequences_and_maps_are_compared():
    found = agreements({"s": [np.zeros(1)], "m": {"k": 1.0}}, {"s": [np.ones(1)], "m": {"k": 1.0}})

    assert [(agreement.name, agreement.agrees) for agreement in found] == [
        ("s[0]", False),
        ("m.keys", True),
        ("m.values", True),
    ]


def test_no_elements_agree():
    assert one(np.zeros((0, 2)), np.zeros((0, 2))).agrees


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        ({"y": np.zeros(1)}, {}, "y: differs, an output and no output"),
        ({}, {"y": np.zeros(1)}, "y: differs, no output and an output"),
    ],
)
def test_output_that_only_one_has_differs(got, expected, said):
    (found,) = agreements(got, expected)

    assert str(found) == said
    assert not found.agrees


@pytest.mark.parametrize("value", [[], None])
def test_values_without_arrays_agree_and_it_says_so(value):
    assert str(one(value, value)) == "y: agrees, largest difference 0, relative 0; both have no value"
