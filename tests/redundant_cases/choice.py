"""The choice of redundant cases: test suite reduction by what cases reach.

The cases of a test that stay reach all that they reached together, except for what many other tests reach.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from tests.redundant_cases.listed import parametrized_test

CHEAP = 0.05
"""CPU time in seconds of a case that is worth no line in the list; recording takes up to half of it."""
CASES_OF_A_TEST = 3
"""A test keeps so many cases, even if one reaches all: often they are the reference, an engine and a function."""
MANY = 50
"""The number of other tests to which a case may leave what it reaches: few of them state the same (decision 74)."""


class Case(NamedTuple):
    """A case of a parametrized test, or a test that has none.

    Attributes:
        seconds: its CPU time.
        reached: the numbers of what it reaches.
        is_needed: whether it stays in any case, as it reaches what is not recorded.
    """

    seconds: float
    reached: frozenset[int]
    is_needed: bool


def redundant(cases: Mapping[str, Case]) -> set[str]:
    """The redundant ones of cases, which have their node IDs as keys."""
    tests = {test: list(of_test) for test, of_test in groupby(sorted(cases, key=parametrized_test), parametrized_test)}
    reached = {test: _union(cases[case] for case in of_test) for test, of_test in tests.items()}
    reaching = Counter(place for places in reached.values() for place in places)
    result: set[str] = set()
    # tests whose cases take longest are first, as the first have the choice
    for test in sorted(tests, key=lambda test: -sum(cases[case].seconds for case in tests[test])):
        rare = frozenset(place for place in reached[test] if reaching[place] <= MANY)
        kept = _kept({case: cases[case] for case in tests[test]}, rare)
        reaching.subtract(reached[test] - _union(cases[case] for case in kept))
        result.update(tests[test])
        result.difference_update(kept)
    return result


def _kept(cases: Mapping[str, Case], rare: frozenset[int]) -> set[str]:
    """The cases of a test that stay, which reach most in their time, and all that is rare."""
    kept = {name for name, case in cases.items() if case.is_needed or case.seconds <= CHEAP}
    while any((gains := _gains(cases, kept, rare)).values()):
        kept.add(max(gains, key=gains.__getitem__))
    while len(kept) < CASES_OF_A_TEST and (gains := _gains(cases, kept, _union(cases.values()))):
        kept.add(max(gains, key=gains.__getitem__))
    return kept


def _gains(cases: Mapping[str, Case], kept: set[str], wanted: frozenset[int]) -> dict[str, float]:
    """The wanted places that each other case would add to those of the kept ones, in a second of its time."""
    missing = wanted - _union(cases[name] for name in kept)
    others = sorted(cases.keys() - kept)
    return {name: len(cases[name].reached & missing) / cases[name].seconds for name in others}


def _union(cases: Iterable[Case]) -> frozenset[int]:
    return frozenset().union(*(case.reached for case in cases))
