"""How much commands say on stderr: ``--quiet``, ``--verbose``, or notes only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_level: ContextVar[int] = ContextVar("level", default=0)


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    levels = parser.add_mutually_exclusive_group()
    says = "print no notes and no progress"
    levels.add_argument("-q", "--quiet", dest="verbosity", action="store_const", const=-1, help=says)
    levels.add_argument(
        "-v",
        "--verbose",
        dest="verbosity",
        action="store_const",
        const=1,
        help="print each step, and the seconds it took",
    )


@contextmanager
def verbosity(level: int | None) -> Generator[None]:
    """The context in which a command prints as much as its arguments ask for."""
    token = _level.set(level or 0)
    try:
        yield
    finally:
        _level.reset(token)


def is_quiet() -> bool:
    """Whether notes and progress are left out."""
    return _level.get() < 0


def note(text: str) -> None:
    """Print what was chosen for the user, unless the command is to be quiet."""
    if not is_quiet():
        print(f"note: {text}", file=sys.stderr)


def report_time(text: str, seconds: float) -> None:
    """Print what was done and how long it took, if the command is to be verbose."""
    if _level.get() > 0:
        print(f"{text}: {seconds:.2f} s", file=sys.stderr)
