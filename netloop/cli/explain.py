"""``netloop explain``: the text of a code."""

import argparse
import sys
from typing import Any

import netloop as trt


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    says = "explain a code such as NL204, with examples"
    parser = commands.add_parser("explain", help=says, description=says[0].upper() + says[1:] + ".")
    parser.add_argument("code", metavar="CODE", help="the code of a finding")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run the command; 2 if there is no such code."""
    try:
        print(trt.explain(given.code))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
