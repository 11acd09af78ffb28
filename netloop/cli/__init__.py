"""The command line: ``netloop COMMAND``, or ``python -m netloop COMMAND``."""

import argparse
import os
import sys
from collections.abc import Sequence

from netloop.cli import check, convert, demo, texts
from netloop.diagnostics import NetloopError

COMMANDS = (check, convert, texts, demo)
"""The modules of the commands. Each has ``add_to(commands)``, which adds its parsers and sets the functions to run."""

MISUSED = 2
"""The exit status of a command that could not run because of an argument or a file; one that ran returns 0 or 1."""

INTERRUPTED = 128 + 2
UNREAD = 128 + 13
"""The exit statuses that shells give to programs ended by Ctrl-C, and by writing to a pipe that no one reads."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; ``argv`` are the arguments after ``netloop``."""
    parser = argparse.ArgumentParser(prog="netloop", description="TensorRT's network builder on every device of JAX.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    given = parser.parse_args(argv)
    try:
        status = given.run(given)
        print(end="", flush=True)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = UNREAD
    except (NetloopError, OSError, UnicodeEncodeError) as error:
        print(error, file=sys.stderr)
        status = MISUSED
    _drop_unwritten()
    return status


def _drop_unwritten() -> None:
    """Drop output that cannot be written, which Python would otherwise try again at exit, with a traceback."""
    try:
        print(end="", flush=True)
    except OSError:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
