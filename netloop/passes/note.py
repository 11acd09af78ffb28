"""What was done to make a network fast."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """What a pass did.

    Attributes:
        by: the name of the pass.
        what: what it did, with the names of what it did it to.
    """

    by: str
    what: str

    def __str__(self) -> str:
        return f"{self.by}: {self.what}"
