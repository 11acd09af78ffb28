"""Texts of users and of files in messages: names of any length and any characters, shown short and on one line."""

from typing import Any

LONGEST_QUOTED = 100
"""The longest text that is quoted whole, in characters."""
LONGEST_FIELD = 2000
"""The longest field of a finding, in characters."""


def quoted(value: Any) -> str:
    """A text in quotes, or another value as its ``repr``; of a long one the beginning, the end and the length.

    Characters that a terminal or a log does not show as they are, such as newlines, are escaped.
    """
    if isinstance(value, str | bytes) and len(value) > LONGEST_QUOTED:
        unit = "characters" if isinstance(value, str) else "bytes"
        return f"{value[: LONGEST_QUOTED // 2]!r}...{value[-LONGEST_QUOTED // 4 :]!r} ({len(value)} {unit})"
    return shortened(repr(value), LONGEST_FIELD // 4)


def shortened(text: str, most: int = LONGEST_FIELD) -> str:
    """A text of at most ``most`` characters: of a longer one the beginning and the end."""
    if len(text) <= most:
        return text
    left_out = f" ...({len(text)} characters)... "
    kept = most - len(left_out)
    return text[: kept - kept // 3] + left_out + text[-(kept // 3) :]


def plain(text: str) -> str:
    """A text without quotes, if it is short and has no character to escape; else in quotes."""
    return text if len(text) <= LONGEST_QUOTED and text.isprintable() else quoted(text)


def printable(text: str) -> str:
    """A text with the characters escaped that a terminal does not show as they are, except for newlines and tabs."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in "\n\t" else repr(character)[1:-1] for character in text
    )
