"""Unique names of nodes and values."""

from collections.abc import Iterable


class UniqueNames:
    """Gives out names, each of them once, and none of those that are ``taken`` already."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def new(self, wanted: str) -> str:
        """Return the wanted name, with a number appended if it is in use."""
        number, name = self._next.get(wanted, 0), wanted
        while not name or name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._next[wanted] = number
        self._taken.add(name)
        return name
