"""Each fault of ``mutants.py`` can be planted, and ``mutants.md`` names a test that exists for it."""

import ast
import re

import pytest

from tests.mutants import MUTANTS, ROOT, recorded

each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.fault)


@each_mutant
def test_fault_can_be_made_in_one_place(mutant):
    text = (ROOT / mutant.file).read_text(encoding="utf-8")

    assert text.count(mutant.old) == 1
    assert ast.dump(ast.parse(text.replace(mutant.old, mutant.new))) != ast.dump(ast.parse(text))


def test_page_tells_of_every_fault():
    assert list(recorded()) == [(each.fault, each.file) for each in MUTANTS]


@each_mutant
def test_test_that_the_page_tells_is_there(mutant):
    found = re.fullmatch(r"`(\w+)` in `(.+)`", recorded()[mutant.fault, mutant.file])

    assert found, "the page names no test that catches it"
    assert f"def {found[1]}(" in (ROOT / found[2]).read_text(encoding="utf-8")
