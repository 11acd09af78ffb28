"""The pages of the documentation, and the Python blocks in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class Example(NamedTuple):
    """A Python block of a page.

    Attributes:
        line: the line of the page on which its source begins, from 1.
        source: the block.
        output: what it prints, if the page says so in a text block right after it.
    """

    line: int
    source: str
    output: str | None


def examples(text: str) -> Iterator[Example]:
    blocks = list(FENCE.finditer(text))
    for number, block in enumerate(blocks):
        if block[1] == "python":
            after = next((block for block in blocks[number + 1 : number + 2] if block[1] == "text"), None)
            follows = after is not None and not text[block.end() : after.start()].strip()
            yield Example(text.count("\n", 0, block.start(2)) + 1, block[2], after[2] if after and follows else None)
