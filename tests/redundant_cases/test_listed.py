"""The list of redundant cases names tests that exist, and its cases are slow."""

import re
from functools import cache
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems
from tests.redundant_cases.listed import FILE, cases_of, listed, parametrized_test, text_of

ROOT = FILE.parents[2]


@cache
def source(file):
    return (ROOT / file).read_text(encoding="utf-8")


def test_every_test_of_the_list_exists():
    for test in sorted({parametrized_test(case) for case in listed()}):
        file, *_, name = test.split("::")

        assert re.search(rf"^ *def {name}\(", source(file), re.MULTILINE), (
            f"{test} is gone: change its name in {FILE.relative_to(ROOT)}, or take it out with its cases"
        )


def test_list_comes_back_as_it_was_written():
    cases = {"a.py::test_a[x]", "a.py::test_a[y [1] :: z]", "a.py::test_a[  two]", "a.py::Test::test_a[1-True]"}

    assert cases_of(text_of(cases)) == cases
    assert text_of(listed()) == FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_cases_are_slow_except_where_the_list_is_made_anew(is_made_anew):
    marks = {case: [] for case in ("other", *listed())}
    items = [SimpleNamespace(nodeid=name, add_marker=of_name.append) for name, of_name in marks.items()]
    plugins = SimpleNamespace(has_plugin={"tests.redundant_cases.reach": is_made_anew}.__getitem__)
    pytest_collection_modifyitems(SimpleNamespace(pluginmanager=plugins), items)

    assert not marks.pop("other")
    assert all(of_name == [pytest.mark.slow] * (not is_made_anew) for of_name in marks.values())
