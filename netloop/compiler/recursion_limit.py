"""Raise Python's recursion limit for JAX, which recurses into nested loops and conditionals."""

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

DEEP_NEST = 16
"""JAX may reach Python's recursion limit where more loops and conditionals are nested."""

FRAMES_A_LEVEL = 100
"""An upper bound of the frames that JAX has on Python's stack for each enclosing loop or conditional."""

_lock = threading.Lock()
_raised: list[int] = []
"""By how much each running ``raised_recursion_limit`` needs the limit raised."""


@contextmanager
def raised_recursion_limit(depth: int) -> Generator[None]:
    """Raise Python's recursion limit, which all threads share, while JAX walks into a nest of some depth."""
    if depth <= DEEP_NEST:
        yield
        return
    _change(_raised.append, FRAMES_A_LEVEL * depth)
    try:
        yield
    finally:
        _change(_raised.remove, FRAMES_A_LEVEL * depth)


def _change(change: Callable[[int], None], frames: int) -> None:
    with _lock:
        before = sys.getrecursionlimit() - max(_raised, default=0)
        change(frames)
        sys.setrecursionlimit(before + max(_raised, default=0))
