"""Redundant cases reach nothing that others do not, and tests keep some of their cases."""

from collections import Counter

import pytest

from tests.redundant_cases.choice import CHEAP, MANY, Case, redundant

DEAR = 2 * CHEAP


def cases(test, *reached, seconds=DEAR, is_needed=False):
    """Cases of a test, named by numbers, of which each reaches some places."""
    return {f"{test}[{number}]": Case(seconds, frozenset(places), is_needed) for number, places in enumerate(reached)}


def test_cases_that_reach_the_same_are_redundant_but_for_three():
    assert len(redundant(cases("a", "xy", "xy", "xy", "xy"))) == 1


def test_what_few_tests_reach_stays_reached_by_each():
    dropped = redundant(cases("a", "x", "y", "z", "z", "z") | cases("b", "x", "y", "z"))

    assert dropped < {"a[2]", "a[3]", "a[4]"}
    assert len(dropped) == 2  # x, y and one of z stay


def test_what_many_tests_reach_stays_reached_by_many():
    places = "uvwxyz"
    names = [f"t{number}" for number in range(MANY + 1)]
    all_cases = {name: case for test in names for name, case in cases(test, *places).items()}
    dropped = redundant(all_cases)

    kept = {name: case for name, case in all_cases.items() if name not in dropped}
    reaching = Counter(place for case in kept.values() for place in case.reached)
    assert set(reaching) == set(places)
    assert min(reaching.values()) == MANY
    assert len(dropped) == len(places)


def test_the_case_that_reaches_most_in_its_time_stays():
    quick = cases("a", "xyz", "x", "y", "z")
    late = {"a[4]": Case(10 * DEAR, frozenset("xyz"), is_needed=False)}

    dropped = redundant(quick | late)
    assert "a[4]" in dropped
    assert "a[0]" not in dropped


@pytest.mark.parametrize("kind", [{"seconds": CHEAP}, {"is_needed": True}])
def test_cases_that_are_cheap_or_needed_stay(kind):
    assert not redundant(cases("a", "x", "x", "x", "x", **kind))


def test_the_only_case_of_a_test_stays():
    assert not redundant({"a": Case(DEAR, frozenset("x"), is_needed=False)})


def test_cheap_cases_count_as_kept_ones():
    cheap = {f"a[{number}]": Case(CHEAP, frozenset("x"), is_needed=False) for number in (3, 4)}

    assert redundant(cases("a", "x", "x", "y") | cheap) == {"a[0]", "a[1]"}
