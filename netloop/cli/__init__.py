"""The command line: ``netloop COMMAND``, or ``python -m netloop COMMAND``."""

import argparse
import sys
from collections.abc import Sequence

from netloop.cli import demo
from netloop.diagnostics import NetloopError

COMMANDS = (demo,)
"""The modules of the commands. Each has ``add_to(commands)``, which adds its parser and says what to run."""

FAILED = 1
"""The command ran, and its answer is no."""
MISUSED = 2
"""The command could not run: an argument or a file is wrong."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: what the user wrote after ``netloop``; by default what this process was started with.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="netloop", description="TensorRT's network builder on every device of JAX.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    given = parser.parse_args(argv)
    try:
        return given.run(given)
    except (NetloopError, OSError) as error:
        print(error, file=sys.stderr)
        return MISUSED
