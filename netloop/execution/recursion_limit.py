"""Raise Python's recursion limit for JAX, which recurses into nested loops."""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

DEEP_NEST = 16
"""Loops nested deeper may reach Python's recursion limit inside JAX."""

FRAMES_A_LOOP = 100
"""An upper bound of the frames that JAX has on Python's stack for each enclosing loop."""

_RECURSION = threading.Lock()


@contextmanager
def raised_recursion_limit(depth: int) -> Generator[None]:
    """Raise Python's recursion limit while JAX walks into loops nested ``depth`` deep; one thread at a time."""
    if depth <= DEEP_NEST:
        yield
        return
    with _RECURSION:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(before + FRAMES_A_LOOP * depth)
        try:
            yield
        finally:
            sys.setrecursionlimit(before)
