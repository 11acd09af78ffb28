"""The list of redundant cases: the node ID of each test, and below it what its cases are called."""

from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "data" / "redundant_cases.txt"
INDENT = "    "


def parametrized_test(case: str) -> str:
    """The node ID of the test of a case."""
    return case.partition("[")[0]


def text_of(cases: Iterable[str]) -> str:
    """The text of a list, from the node IDs of cases."""
    lines: list[str] = []
    for test, of_test in groupby(sorted(cases, key=lambda case: (parametrized_test(case), case)), parametrized_test):
        lines.append(test)
        lines.extend(f"{INDENT}{case.removeprefix(test)[1:-1]}" for case in of_test)
    return "".join(f"{line}\n" for line in lines)


def cases_of(text: str) -> frozenset[str]:
    """The node IDs of cases, from the text of a list."""
    cases: set[str] = set()
    test = ""
    for line in text.splitlines():
        if line.startswith(INDENT):
            cases.add(f"{test}[{line.removeprefix(INDENT)}]")
        else:
            test = line
    return frozenset(cases)


@cache
def listed() -> frozenset[str]:
    """The node IDs of all redundant cases."""
    return cases_of(FILE.read_text(encoding="utf-8"))


def mark_as_slow(items: Iterable[pytest.Item]) -> None:
    """Mark the items that are redundant cases."""
    for item in items:
        if item.nodeid in listed():
            item.add_marker(pytest.mark.slow)
