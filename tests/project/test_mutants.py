"""The faults of ``mutants.py`` can be made, and the page of them is true of the tests that there are."""

import ast
import re

import pytest

from tests.mutants import MUTANTS, ROOT, catching_tests

each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.fault)


@each_mutant
def test_fault_can_be_made_in_one_place(mutant):
    text = (ROOT / mutant.file).read_text(encoding="utf-8")

    assert text.count(mutant.old) == 1
    assert ast.dump(ast.parse(text.replace(mutant.old, mutant.new))) != ast.dump(ast.parse(text))


def test_page_lists_every_fault():
    assert list(catching_tests()) == [(each.fault, each.file) for each in MUTANTS]


@each_mutant
def test_test_named_on_the_page_exists(mutant):
    found = re.fullmatch(r"`(\w+)` in `(.+)`", catching_tests()[mutant.fault, mutant.file])

    assert found, "the page names no test that catches it"
    assert f"def {found[1]}(" in (ROOT / found[2]).read_text(encoding="utf-8")
