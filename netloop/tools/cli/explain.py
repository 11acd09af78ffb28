"""``netloop explain``: the text of a code, or all codes."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from netloop.tools.cli import arguments
from netloop.tools.cli.failures import Misuse

EXAMPLES = ("netloop explain NL204", "netloop explain")


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    parser = arguments.add_command(commands, "explain", EXAMPLES, "Without a code, list all of them.")
    parser.add_argument("code", nargs="?", metavar="CODE", help="the code of a finding")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command.

    Raises:
        Misuse: there is no such code.
    """
    import_module("netloop.model.check")  # its rules have codes too
    texts = import_module("netloop.values.diagnostics.explain")
    try:
        print(texts.codes() if args.code is None else texts.explain(args.code))
    except ValueError as error:
        raise Misuse(str(error)) from None
    return 0
