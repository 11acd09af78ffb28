"""A cache that drops what was not used for longest."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A dict of at most some values, which drops the least recently used one.

    Args:
        capacity: the largest number of values.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[V]:
        return iter([*self._values.values()])

    def get(self, key: K) -> V | None:
        """The value of a key, which is then the most recently used one; None if there is none."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def find(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, which is made if there is none."""
        value = self.get(key)
        return self.put(key, make()) if value is None else value

    def put(self, key: K, value: V) -> V:
        """Store a value as the most recently used one, and return it."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._capacity:
            self._values.popitem(last=False)
        return value
