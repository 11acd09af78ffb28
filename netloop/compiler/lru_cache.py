"""A cache that drops what was not used for longest."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A dict of at most some values, which drops the least recently used one; threads may share it.

    Args:
        capacity: the largest number of values.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        # weak, so that each lock is gone with the last thread that waits for it
        self._making = WeakValueDictionary[K, threading.Lock]()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[V]:
        with self._lock:
            return iter([*self._values.values()])

    def get(self, key: K) -> V | None:
        """The value of a key, which is then the most recently used one; None if there is none."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def making(self, key: K) -> threading.Lock:
        """The lock of the thread that makes the value of a key; other values are looked up and made meanwhile."""
        with self._lock:
            return self._making.setdefault(key, threading.Lock())

    def find(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, which one thread makes if there is none."""
        value = self.get(key)
        if value is None:
            with self.making(key):
                value = self.get(key)
                return self.put(key, make()) if value is None else value
        return value

    def put(self, key: K, value: V) -> V:
        """Store a value as the most recently used one, and return it."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._capacity:
                self._values.popitem(last=False)
            return value
