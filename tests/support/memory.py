"""Pages of memory of every kind: readable, writable, forbidden."""

import ctypes
import mmap
import sys
from typing import Any, Self

import pytest

IS_CHECKED = sys.platform == "linux"
needs_checks = pytest.mark.skipif(not IS_CHECKED, reason="addresses are checked on Linux")

PAGE = mmap.PAGESIZE
NO_ACCESS, READ, WRITE = 0, 1, 2


class Pages:
    """Three pages next to each other: one to write, one to read only, and a guard page that nobody may touch.

    Attributes:
        writable, read_only, guard: their addresses.
    """

    def __enter__(self) -> Self:
        self._map = mmap.mmap(-1, 3 * PAGE)
        self._view: Any = ctypes.c_char.from_buffer(self._map)
        self.writable = ctypes.addressof(self._view)
        self.read_only, self.guard = self.writable + PAGE, self.writable + 2 * PAGE
        protect(self.read_only, PAGE, READ)
        protect(self.guard, PAGE, NO_ACCESS)
        return self

    def forbid(self) -> None:
        """Forbid every access to all pages, as if they were freed."""
        protect(self.writable, 3 * PAGE, NO_ACCESS)

    def __exit__(self, *error: object) -> None:
        protect(self.writable, 3 * PAGE, READ | WRITE)
        del self._view
        self._map.close()


def protect(address: int, size: int, access: int) -> None:
    """Set the access to pages."""
    mprotect = ctypes.CDLL(None).mprotect
    assert mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), access) == 0


def mapped() -> list[tuple[range, str]]:
    """The ranges of memory of this process, with their permissions, such as ``r-xp``."""
    ranges: list[tuple[range, str]] = []
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            place, access = line.split()[:2]
            begin, end = (int(word, 16) for word in place.split("-"))
            ranges.append((range(begin, end), access))
    return ranges
