"""The documents say what is true: their examples run, their links lead somewhere, and their rules exist."""

import contextlib
import doctest
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import netloop
from netloop.check.rule import RULES

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
LINKED = [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"\bNL\d{3}\b")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("path", PAGES, ids=name_of)
each_linked_page = pytest.mark.parametrize("path", LINKED, ids=name_of)


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
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] != "python":
            continue
        follows = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
        yield Example(text.count("\n", 0, block.start(2)) + 1, block[2], after[2] if after and follows else None)


def run(example: Example, page: str, names: dict[str, Any]) -> str:
    """What an example prints; the line numbers in its messages are those of the page."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (example.line - 1) + example.source, page, "exec"), names)
    return printed.getvalue()


@each_page
def test_examples_print_what_the_page_says(path):
    names: dict[str, Any] = {"__name__": path.stem}
    for example in examples(path.read_text(encoding="utf-8")):
        printed = run(example, name_of(path), names)

        if example.output is not None:
            same = doctest.OutputChecker().check_output(example.output, printed, doctest.ELLIPSIS)
            assert same, f"{name_of(path)}:{example.line} prints\n{printed}\nand the page says\n{example.output}"


def prose(path: Path) -> str:
    """A page without its blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """What links to the headings of a page may end in."""
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(prose(path)))
    return {heading.replace(" ", "-") for heading in headings}


@each_linked_page
def test_links_lead_somewhere(path):
    for link in LINK.findall(prose(path)):
        if link.startswith(("https://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{name_of(path)} links to {link}"
        assert not anchor or anchor in anchors(file), f"{name_of(path)} links to {link}"


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_page_is_reached_from_the_index(path):
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(prose(index))}

    assert path == index or path in linked


@each_linked_page
def test_rules_exist(path):
    sources = "".join(each.read_text(encoding="utf-8") for each in Path(netloop.__file__).parent.rglob("*.py"))

    assert set(CODE.findall(path.read_text(encoding="utf-8"))) <= set(RULES) | set(CODE.findall(sources))


def test_semantics_has_the_order_of_the_source():
    classes = re.findall(r"^class (I\w+)\(?", (ROOT / "netloop" / "layers" / "loop.py").read_text("utf-8"), re.MULTILINE)
    headings = " ".join(HEADING.findall(prose(ROOT / "docs" / "loops.md")))

    places = [headings.find(f"`{name}`") for name in classes if f"`{name}`" in headings]

    assert len(places) >= 5
    assert places == sorted(places)
