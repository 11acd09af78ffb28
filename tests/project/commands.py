"""The commands of the command line as Markdown, from their parsers, for ``docs/command-line.md``.

``python -m tests.project.commands`` writes them into the page.
"""

import argparse
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from netloop.tools.cli import COMMANDS, parser_for

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
BEGIN, END = "<!-- commands -->\n", "<!-- end of commands -->\n"


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    actions = parser_for(command)._actions
    return next(action.choices for action in actions if isinstance(action, argparse._SubParsersAction))[command]


def section(command: str) -> str:
    """A command: what it does, its arguments, and its examples."""
    parser = parser_of(command)
    rows = [row(action) for action in parser._actions if action.dest != "help"]
    table = ["\n".join(["| argument | meaning |", "|---|---|", *rows])] if rows else []
    examples = "\n".join(["```sh", *import_module(f"netloop.tools.cli.{command}").EXAMPLES, "```"])
    return "\n\n".join([f"### netloop {command}", parser.description or "", *table, examples])


def row(action: argparse.Action) -> str:
    """An argument as a row of a table."""
    taken = "" if action.nargs == 0 else action.metavar or "|".join(map(str, action.choices or [action.dest]))
    names = ", ".join(f"`{string} {taken}`" if taken else f"`{string}`" for string in action.option_strings)
    return f"| {names or f'`{taken}`'} | {(action.help or '') % vars(action)} |".replace("|tensorrt", "\\|tensorrt")


def sections() -> Iterator[str]:
    """All commands."""
    return map(section, COMMANDS)


def page() -> str:
    """The page with the commands of today."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + "\n\n".join(sections()) + "\n\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
