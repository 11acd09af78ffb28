"""``netloop passes``: all passes as a table in Markdown."""

import argparse
from typing import Any

from netloop.passes import table


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    says = "print what each pass does and when, as a table in Markdown"
    parser = commands.add_parser("passes", help=says, description=says[0].upper() + says[1:] + ".")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    print(table(), end="")
    return 0
