"""``netloop passes``: a section for each pass."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from netloop.tools.cli import arguments
from netloop.tools.cli.pages import print_page

EXAMPLES = ("netloop passes",)


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    arguments.add_command(commands, "passes", EXAMPLES).set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    print_page(import_module("netloop.compiler.passes").sections())
    return 0
