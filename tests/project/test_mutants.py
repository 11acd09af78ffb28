"""Each fault of ``tests/mutants`` can be planted, and its page names a test that exists for it."""

import ast
import re
from functools import cache

import pytest

from tests.mutants.mutant import ROOT
from tests.mutants.reach import lines_of
from tests.mutants.table import MUTANTS, PAGE, page, recorded


@cache
def read(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def dumped(file: str) -> str:
    return ast.dump(ast.parse(read(file)))


@pytest.mark.slow
def test_every_fault_can_be_made_in_one_place():
    for mutant in MUTANTS:
        text = read(mutant.file)

        assert text.count(mutant.old) == 1, mutant.fault
        assert ast.dump(ast.parse(text.replace(mutant.old, mutant.new))) != dumped(mutant.file), mutant.fault


def test_statement_of_every_fault_is_found():
    for mutant in MUTANTS:
        lines = read(mutant.file).splitlines(keepends=True)

        assert mutant.old.rstrip() in "".join(lines[number - 1] for number in sorted(lines_of(mutant))), mutant.fault


def test_no_two_faults_have_one_name():
    assert len({mutant.key for mutant in MUTANTS}) == len(MUTANTS)


def test_page_has_a_row_for_each_fault():
    assert PAGE.read_text(encoding="utf-8") == page(recorded())


def test_tests_that_the_page_names_are_there():
    for mutant in MUTANTS:
        name = re.fullmatch(r"`(\w+)` in `(.+)`", recorded()[mutant.fault, mutant.file].test)

        assert name, f"the page names no test that catches: {mutant.fault}"
        assert f"def {name[1]}(" in read(name[2]), mutant.fault
