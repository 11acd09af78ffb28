"""Room on Python's stack for JAX, which recurses into nested loops."""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

DEEP_NEST = 16
"""Loops nested deeper may meet Python's recursion limit inside JAX."""

FRAMES_A_LOOP = 100
"""More than the frames that JAX has on Python's stack for each loop around."""

_RECURSION = threading.Lock()


@contextmanager
def room_for(depth: int) -> Generator[None]:
    """Python's recursion limit raised, while JAX walks into loops nested so deep; one thread at a time may do so."""
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
