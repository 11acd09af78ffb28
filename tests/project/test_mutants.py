"""Each fault of ``tests/mutants`` can be planted, and its page names a test that exists for it."""

import ast
import re

import pytest

from tests.mutants.mutant import ROOT
from tests.mutants.reach import lines_of
from tests.mutants.table import MUTANTS, PAGE, page, recorded

each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.fault)


@each_mutant
def test_fault_can_be_made_in_one_place(mutant):
    text = (ROOT / mutant.file).read_text(encoding="utf-8")

    assert text.count(mutant.old) == 1
    assert ast.dump(ast.parse(text.replace(mutant.old, mutant.new))) != ast.dump(ast.parse(text))


@each_mutant
def test_statement_of_a_fault_is_found(mutant):
    lines = (ROOT / mutant.file).read_text(encoding="utf-8").splitlines(keepends=True)
    statement = "".join(lines[number - 1] for number in sorted(lines_of(mutant)))

    assert mutant.old.rstrip() in statement


def test_no_two_faults_have_one_name():
    assert len({each.key for each in MUTANTS}) == len(MUTANTS)


def test_page_has_a_row_for_each_fault():
    assert PAGE.read_text(encoding="utf-8") == page(recorded())


@each_mutant
def test_test_that_the_page_names_is_there(mutant):
    found = re.fullmatch(r"`(\w+)` in `(.+)`", recorded()[mutant.fault, mutant.file].test)

    assert found, "the page names no test that catches it"
    assert f"def {found[1]}(" in (ROOT / found[2]).read_text(encoding="utf-8")


@each_mutant
def test_page_has_a_number_of_networks_or_the_reason_why_there_is_none(mutant):
    networks = recorded()[mutant.fault, mutant.file].networks

    assert re.fullmatch(r"\d+|none: .+", networks), "no random network shows the fault: draw what it changes"
