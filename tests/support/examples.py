"""The number of examples of a property-based test, which depends on the profile of Hypothesis in use."""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

IS_NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
SCALE = 10 if IS_NIGHTLY else 1


def examples(number: int, nightly: int | None = None) -> settings:
    """Run a test on a number of examples; in the nightly profile on another, or on ten times as many."""
    return settings(max_examples=(nightly or number * SCALE) if IS_NIGHTLY else number)


def same_examples(number: int, nightly: int | None = None) -> settings:
    """Run a test on the same examples each time; in the nightly profile on random ones, as many as ``examples`` has."""
    return settings(examples(number, nightly), derandomize=not IS_NIGHTLY)


def many(number: int, start: int = 0) -> range:
    """Seeds of random networks for slow tests; in the nightly profile ten times as many."""
    return range(start, start + number * SCALE)


def mostly_slow(fast: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of a test, single values or tuples of them, of which all after the first few are slow."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.slow] if place >= fast else [])
        for place, case in enumerate(cases)
    ]
