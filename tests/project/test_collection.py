"""Slow tests cost nothing where they are left out."""

from types import SimpleNamespace

import pytest

from tests.conftest import pytest_pycollect_makeitem


@pytest.mark.slow
def slow():
    """Stands for a slow test."""


def quick():
    """Stands for any other."""


def items(obj, expression="not slow", arguments=("tests",)):
    """The items that take the place of those that pytest would make; None if pytest makes them."""
    config = SimpleNamespace(option=SimpleNamespace(markexpr=expression), args=list(arguments))
    return pytest_pycollect_makeitem(SimpleNamespace(config=config), obj)


def test_slow_test_is_not_made_where_slow_tests_are_left_out():
    assert items(slow) == []


@pytest.mark.parametrize("expression", ["", "slow", "slow or not slow"])
def test_slow_test_is_made_where_slow_tests_may_run(expression):
    assert items(slow, expression) is None


def test_slow_test_that_the_command_line_names_is_made():
    assert items(slow, arguments=["tests/test_it.py::slow"]) is None


def test_other_tests_are_made():
    assert items(quick) is None
