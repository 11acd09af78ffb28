"""UniqueNames that are each given once."""

from collections.abc import Iterable


class UniqueNames:
    """Gives names, none twice.

    Args:
        taken: the names that are given already.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def new(self, wanted: str) -> str:
        """The name that is wanted, or one that begins with it."""
        number, name = self._next.get(wanted, 0), wanted
        while not name or name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._next[wanted] = number
        self._taken.add(name)
        return name
