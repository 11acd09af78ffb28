"""Streams and events, which are numbers: all work is done when the call that asks for it returns."""

import time
from itertools import count

from netloop.tools.compat.status import InvalidHandle

DEFAULT = (0, 1, 2)
"""The handles of default streams, which are always there: 0, cudaStreamLegacy and cudaStreamPerThread."""


class Handles:
    """The handles of one kind that are in use; their numbers are never used again.

    Attributes:
        times: the time at which each was last recorded, in seconds.
    """

    def __init__(self, what: str, always: tuple[int, ...] = ()) -> None:
        self._what, self._always = what, always
        self._numbers = count(len(DEFAULT))
        self.times: dict[int, float] = {}

    def create(self) -> int:
        """Return a new handle."""
        handle = next(self._numbers)
        self.times[handle] = 0.0
        return handle

    def destroy(self, handle: int) -> None:
        """Make a handle invalid."""
        self.check(handle)
        self.times.pop(int(handle), None)

    def check(self, handle: int) -> None:
        """Check that a handle is in use.

        Raises:
            InvalidHandle: it is not.
        """
        if int(handle) not in self._always and int(handle) not in self.times:
            raise InvalidHandle(f"{self._what} {int(handle)} was not created, or it was destroyed")

    def record(self, handle: int) -> None:
        """Keep the present time."""
        self.check(handle)
        self.times[int(handle)] = time.perf_counter()


STREAMS, EVENTS = Handles("stream", DEFAULT), Handles("event")
