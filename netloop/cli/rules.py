"""``netloop rules``: the texts of all codes, as a page of Markdown."""

import argparse
from typing import Any

from netloop.diagnostics.explanations import rules_page


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    says = "print the texts of all codes, as a page of Markdown"
    parser = commands.add_parser("rules", help=says, description=says[0].upper() + says[1:] + ".")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    print(rules_page(), end="")
    return 0
