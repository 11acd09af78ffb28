"""Operator tables: the functions that translate operators, by operator and version."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
F = TypeVar("F", bound=Callable[..., Any])
G = TypeVar("G", bound=Callable[..., Any])


class OperatorTable(Generic[K, F]):
    """The functions that an importer or exporter translates operators with.

    The type of the keys is up to the format: a name, a domain and a name, or a class of layers. A function serves from
    the version that it is registered for up to the next one: most new versions of an operator only allow more types.
    """

    def __init__(self) -> None:
        self._functions: dict[K, dict[int, F]] = {}

    def register(self, *keys: K, since: int | Sequence[int] = 1) -> Callable[[G], G]:
        """Return a decorator that registers a function for some operators, from one or more versions on."""
        numbers = (since,) if isinstance(since, int) else since

        def enter(function: Any) -> Any:
            for key, number in product(keys, numbers):
                versions = self._functions.setdefault(key, {})
                # the same function again: Python imports a module twice if Ctrl-C ended the first import
                present = versions.setdefault(number, function)
                same = (present.__module__, present.__qualname__) == (function.__module__, function.__qualname__)
                assert same, f"{key} has a function since version {number} already"
                versions[number] = function
            return function

        return enter

    def versions(self, key: K) -> Mapping[int, F]:
        """The functions of an operator by version; empty if it has none."""
        return self._functions.get(key, {})

    def version_at(self, key: K, version: int | None = None) -> int | None:
        """The newest registered version that is not above ``version``, or the newest of all; None if there is none."""
        return max((number for number in self.versions(key) if version is None or number <= version), default=None)

    def find(self, key: K, version: int | None = None) -> F | None:
        """The function of that version; None if there is none."""
        number = self.version_at(key, version)
        return None if number is None else self.versions(key)[number]

    def __iter__(self) -> Iterator[K]:
        """The operators, in the order in which they were registered."""
        return iter(self._functions)
