"""The command line: ``netloop COMMAND``, or ``python -m netloop COMMAND``."""

import argparse
import sys
from collections.abc import Sequence

from netloop.cli import check, demo, explain, operators, passes, rules
from netloop.diagnostics import NetloopError

COMMANDS = (check, explain, rules, operators, passes, demo)
"""The modules of the commands. Each has ``add_to(commands)``, which adds its parser and says what to run."""

MISUSED = 2
"""The exit status of a command that could not run, as an argument or a file is wrong. One that ran gives 0 for yes and
1 for no.
"""


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
