"""Which random networks execute the lines of which faults: only these can show them."""

import ast
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FrameType
from typing import Any

from tests.mutants.mutant import ROOT, Mutant


@cache
def lines_of(mutant: Mutant) -> frozenset[int]:
    """The lines of the statement that a fault changes, without the statements inside it."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    begin = text.index(mutant.old)
    first, last = (text.count("\n", 0, end) + 1 for end in (begin, begin + len(mutant.old.rstrip())))
    around = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt) and node.lineno <= first]
    inner = [loop for loop in around if last <= (loop.end_lineno or 0) and loop.col_offset]
    if not inner:
        return frozenset(range(first, last + 1))
    found = max(inner, key=lambda other: other.lineno)
    body: list[ast.stmt] = getattr(found, "body", [])
    end = body[0].lineno - 1 if body else found.end_lineno or last
    return frozenset(range(found.lineno, max(end, last) + 1))


class Reach:
    """Records which of some lines are executed.

    Attributes:
        reached: the file, from the root of the repository, and number of each line that was executed.
    """

    def __init__(self, mutants: Iterable[Mutant]) -> None:
        self.reached: set[tuple[str, int]] = set()
        self._wanted: dict[str, set[int]] = {}
        for mutant in mutants:
            self._wanted.setdefault(mutant.file, set()).update(lines_of(mutant))
        self._of_code: dict[CodeType, str] = {}

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record what this thread executes."""
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        file = self._of_code.get(code)
        if file is None:
            file = self._of_code[code] = self._file_of(code)
        if not file:
            return None
        self.reached.add((file, frame.f_lineno))
        return self._trace

    def _file_of(self, code: CodeType) -> str:
        """The file of a code, from the root of the repository; empty if none of its lines is wanted."""
        file = code.co_filename.removeprefix(f"{ROOT}/")
        wanted = self._wanted.get(file, set())
        return file if any(line in wanted for _, _, line in code.co_lines()) else ""
