"""Markdown pages that list the operators of an importer."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Entry = tuple[str, Mapping[int, Callable[..., Any]]]
"""An operator and its functions by version."""


def operator_page(head: Sequence[str], columns: str, operators: Iterable[Entry]) -> str:
    """Markdown tables of operators, one for each module of their functions, with versions and meanings.

    The paragraphs of ``head`` come first; ``columns`` has the titles of the three columns, separated by bars.
    """
    families: dict[str, list[str]] = defaultdict(list)
    for name, versions in operators:
        newest = versions[max(versions)]
        says = (newest.__doc__ or "").partition("\n")[0].replace("``", "`").replace("|", "\\|")
        listed = ", ".join(map(str, sorted(versions)))
        families[newest.__module__].append(f"| `{name}` | {listed} | {says} |")
    sections = [_section(module, columns, families[module]) for module in sorted(families)]
    return "\n\n".join([*head, *sections]) + "\n"


def _section(module: str, columns: str, rows: Sequence[str]) -> str:
    title = (sys.modules[module].__doc__ or "").partition("\n")[0].rstrip(".")
    return "\n".join([f"## {title}\n", f"| {columns} |", "|---|---|---|", *rows])
