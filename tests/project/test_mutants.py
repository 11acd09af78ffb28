"""The faults of ``mutants.py`` can be made, and the page of them is true of the tests that there are."""

import ast
import re

import pytest

from tests.mutants import MUTANTS, ROOT, told

each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.fault)


@each_mutant
def test_fault_can_be_made_in_one_place(mutant):
    text = (ROOT / mutant.file).read_text(encoding="utf-8")

    assert text.count(mutant.old) == 1
    assert ast.dump(ast.parse(text.replace(mutant.old, mutant.new))) != ast.dump(ast.parse(text))


def test_page_tells_of_every_fault():
    assert list(told()) == [(each.fault, each.file) for each in MUTANTS]


@each_mutant
def test_test_that_the_page_tells_is_there(mutant):
    found = re.fullmatch(r"`(\w+)` in `(.+)`", told()[mutant.fault, mutant.file])

    assert found, "no test is told that catches it"
    assert f"def {found[1]}(" in (ROOT / found[2]).read_text(encoding="utf-8")
