"""A planted fault, and the copy of the tree in which it is planted."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Mutant(NamedTuple):
    """A fault of one line.

    Attributes:
        fault: its name.
        file: the file, from the root of the repository.
        old: a text that occurs once in the file.
        new: the replacement.
        tests: the tests that should fail, as arguments of pytest.
        hidden: the reason why no random network can show it; empty if one can.
    """

    fault: str
    file: str
    old: str
    new: str
    tests: str
    hidden: str = ""

    @property
    def key(self) -> str:
        """Its name and file, which no other fault has."""
        return f"{self.fault} ({self.file})"


@contextmanager
def planted(mutant: Mutant) -> Iterator[Path]:
    """A copy of the tree with the fault."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        tree = Path(name)
        for word in ("netloop", "tests", "docs", "samples", "benchmarks"):
            shutil.copytree(ROOT / word, tree / word, ignore=shutil.ignore_patterns("__pycache__"))
        for page in [*ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
            shutil.copy(page, tree)
        file = tree / mutant.file
        text = file.read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.file} has {text.count(mutant.old)} of {mutant.old!r}"
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        yield tree
