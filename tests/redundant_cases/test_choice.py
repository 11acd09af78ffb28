"""Redundant cases reach nothing that nothing else reaches, and tests keep some of their cases."""

import pytest

from tests.redundant_cases.choice import CHEAP, Case, redundant

DEAR = 2 * CHEAP


def cases(test, *reached, seconds=DEAR, is_needed=False):
    """Cases of a test, named by numbers, of which each reaches some places."""
    return {f"{test}[{number}]": Case(seconds, frozenset(places), is_needed) for number, places in enumerate(reached)}


def test_cases_that_reach_the_same_are_redundant_but_for_two():
    assert len(redundant(cases("a", "xy", "xy", "xy", "xy"))) == 2


def test_what_no_other_test_reaches_stays_reached():
    dropped = redundant(cases("a", "x", "y", "z", "z", "z") | cases("b", "v", "w"))

    assert dropped < {"a[2]", "a[3]", "a[4]"}
    assert len(dropped) == 2


def test_what_two_tests_reach_stays_reached_by_one():
    places = "uvwxyz"
    both = cases("a", *places) | cases("b", *places)
    dropped = redundant(both)

    assert {place for name, case in both.items() if name not in dropped for place in case.reached} == set(places)
    assert len(dropped) == 6


def test_the_case_that_reaches_most_in_its_time_stays():
    quick = cases("a", "xyz", "x", "xyz")
    slow = Case(10 * DEAR, frozenset("xyz"), is_needed=False)

    assert "a[0]" not in redundant(quick | {"a[0]": Case(DEAR, frozenset("xyz"), is_needed=False), "a[2]": slow})
    assert "a[2]" in redundant(quick | {"a[2]": slow})


@pytest.mark.parametrize("kind", [{"seconds": CHEAP}, {"is_needed": True}])
def test_cases_that_are_cheap_or_needed_stay(kind):
    assert not redundant(cases("a", "x", "x", "x", "x", **kind))


def test_the_only_case_of_a_test_stays():
    assert not redundant({"a": Case(DEAR, frozenset("x"), is_needed=False)})


def test_a_kept_case_counts_where_another_is_cheap():
    dropped = redundant(cases("a", "x", "x", "y") | {"a[3]": Case(CHEAP, frozenset("x"), is_needed=False)})

    assert len(dropped) == 2
    assert "a[2]" not in dropped
