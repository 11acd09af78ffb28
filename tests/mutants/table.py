"""All faults, and the page that says what catches each."""

import re
from threading import Lock
from typing import NamedTuple

from tests.mutants import convolutions, layers, lowering, meaning, meshes, passes, precision, rules
from tests.mutants.mutant import ROOT, Mutant

MUTANTS = [
    fault
    for group in (meaning, lowering, layers, passes, convolutions, meshes, precision, rules)
    for fault in group.FAULTS
]
PAGE = ROOT / "tests" / "mutants" / "README.md"
HEAD = """\
# Faults, and what catches them

Each row of this table is a fault of one line that was planted in a copy of the tree, with the first test that failed,
and the number of random networks until engine and reference differed on one (numbers 0, 1, 2 ... of
`tests/mutants/networks.py`). `python -m tests.mutants` writes the tests, and `python -m tests.mutants --networks 200`
the numbers of networks; with words as arguments, they update the rows with all of these words.

| fault | in | caught by | networks |
|---|---|---|---|
"""
OPEN = "not yet run"


class Row(NamedTuple):
    """What caught a fault."""

    test: str = OPEN
    networks: str = OPEN


def recorded() -> dict[tuple[str, str], Row]:
    """The rows of the page, by fault and file."""
    rows = re.findall(r"^\| (.+) \| `(.+)` \| (.+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {(fault, file): Row(test, networks) for fault, file, test, networks in rows}


_lock = Lock()


def record(mutant: Mutant, **changed: str) -> None:
    """Change the row of a fault."""
    with _lock:
        rows = recorded()
        key = mutant.fault, mutant.file
        rows[key] = rows.get(key, Row())._replace(**changed)
        PAGE.write_text(page(rows), encoding="utf-8")


def page(rows: dict[tuple[str, str], Row]) -> str:
    """The page, with the rows in the order of the faults."""
    known = [(mutant, rows.get((mutant.fault, mutant.file), Row())) for mutant in MUTANTS]
    shown = (
        f"| {value.fault} | `{value.file}` | {row.test} | {value.hidden or row.networks} |\n" for value, row in known
    )
    return HEAD + "".join(shown)
