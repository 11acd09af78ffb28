"""Messages, documentation and comments use the terms of docs/glossary.md, and plain English."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import netloop
from tests.project.test_architecture import nodes_of

ROOT = Path(__file__).parents[2]
SOURCES = sorted(Path(netloop.__file__).parent.rglob("*.py"))
PAGES = sorted(
    page
    for folder in (ROOT, ROOT / "docs", ROOT / "benchmarks", ROOT / "netloop")
    for page in (folder.glob("*.md") if folder in (ROOT, ROOT / "benchmarks") else folder.rglob("*.md"))
    if page.name not in ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "glossary.md")
)

REPLACED = {
    r"\btell|\btold\b|\btells\b": "report, name, give",
    r"\bbeside\b": "next to, with, in addition to",
    r"\broads?\b": "strategy",
    r"\bstretch(es|ed|ing)?\b": "chunk, section, broadcast, resized",
    r"\bspoil(s|t|ed)?\b": "poison",
    r"\bbaked\b": "compile-time constant",
    r"\bsurely\b": "always",
    r"\bbut for\b": "except",
    r"\bwhat it is that\b": "(say the thing)",
    r"\bthe run tells\b": "data-dependent",
    r"\bgoes? round\b": "is carried",
    r"\blook-?alikes?\b": "negative case",
    r"\btwins?\b": "copy",
    r"\bas such\b": "(leave it out)",
    r"\bcomplaints?\b": "error, finding",
    r"(?<!per )\btrips?\b(?! (limit|count))": "iteration; trip limit and trip count are TensorRT's",
}
"""Words that the glossary replaced, and their replacements."""
ANY = re.compile("|".join(REPLACED), re.IGNORECASE)


def without_code(text: str) -> str:
    """Prose without quoted code."""
    return re.sub(r"```.*?```|``.+?``|`[^`\n]+`|'[^'\n]*'|\{[^{}]*\}|\b\w*_\w*\b", " ", text, flags=re.DOTALL)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The strings and comments of a source file, with their lines."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def replaced(text: str) -> list[str]:
    plain = without_code(text)
    if not ANY.search(plain):
        return []
    return [f"{found[0]} -> {say}" for word, say in REPLACED.items() for found in re.finditer(word, plain, re.I)]


def test_sources_have_no_replaced_word():
    assert [f"{path}:{line}: {word}" for path in SOURCES for line, text in texts(path) for word in replaced(text)] == []


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of a source file, also those of names, with their lines."""
    for node in nodes_of(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def test_docstrings_name_the_thing():
    opened = [
        (path, line) for path in SOURCES for line, text in docstrings(path) if text.startswith(("What ", "Which "))
    ]

    assert opened == []


def test_pages_have_no_replaced_word():
    lines = [(page, line) for page in PAGES for line in without_code(page.read_text(encoding="utf-8")).splitlines()]

    assert [f"{page}: {line.strip()}: {word}" for page, line in lines for word in replaced(line)] == []
