"""Why a command cannot run, on one screen."""

LINES = 30
"""The most lines of a message."""
FIRST = 22
"""The lines of a longer message that are shown from its beginning; the others are from its end."""


class Misuse(Exception):
    """A command cannot run because of an argument or a file; the message says why."""


def one_screen(text: str) -> str:
    """A message without its middle, if it has more lines than a screen."""
    lines = text.splitlines()
    if len(lines) <= LINES:
        return text
    dropped = len(lines) - (LINES - 1)
    return "\n".join([*lines[:FIRST], f"... {dropped} more lines ...", *lines[FIRST + dropped :]])
