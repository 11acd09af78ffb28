"""``netloop demo``: a language model that generates text in a loop, checked, compiled and compared."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from netloop.tools.cli import arguments

EXAMPLES = ("netloop demo --seed JULIET --length 20",)
SEED = "ROMEO"
LENGTH = 200
LONGEST = 1_000_000


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    parser = arguments.add_command(commands, "demo", EXAMPLES)
    parser.add_argument("--seed", default=SEED, metavar="TEXT", help="the text to continue (%(default)s)")
    parser.add_argument("--length", type=_length, default=LENGTH, metavar="N", help="how many characters (%(default)s)")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="another weight file")
    arguments.add_device(parser)
    parser.set_defaults(run=run)


def _length(text: str) -> int:
    length = int(text)
    if not 1 <= length <= LONGEST:
        raise argparse.ArgumentTypeError(f"{length} is not from 1 to {LONGEST}")
    return length


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 if engine and reference differ."""
    return import_module("netloop.tools.demo.show").show(args.seed, args.length, args.weights)
