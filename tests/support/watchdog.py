"""The end of a process whose test takes too long."""

import faulthandler
import time

EARLY = 1 / 30
"""The part of its time by which a test may be ended early: a watchdog of Python's is a thread that starts, and as one
for each test they would take a twentieth of the time of all tests."""


class Watchdog:
    """The end of this process, with the stacks of all threads, if a test takes longer than it may."""

    def __init__(self) -> None:
        self._end = 0.0

    def watch(self, seconds: float, file: int) -> None:
        """End the process in ``seconds``, or a little earlier; write the stacks to a file."""
        end = time.monotonic() + seconds
        if not end - EARLY * seconds <= self._end <= end:
            faulthandler.dump_traceback_later(seconds, exit=True, file=file)
            self._end = end

    def stop(self) -> None:
        """Do not end the process."""
        faulthandler.cancel_dump_traceback_later()
        self._end = 0.0
