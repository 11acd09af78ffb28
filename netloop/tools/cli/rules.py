"""``netloop rules``: the page of all codes."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from netloop.tools.cli import arguments
from netloop.tools.cli.pages import print_page

EXAMPLES = ("netloop rules > rules.md",)


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    arguments.add_command(commands, "rules", EXAMPLES).set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import_module("netloop.model.check")  # its rules have codes too
    print_page(import_module("netloop.values.diagnostics.explain").rules_page())
    return 0
