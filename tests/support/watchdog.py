"""The end of a process whose test takes too long."""

import faulthandler
import time

SLACK = 10
"""The seconds that a test may take longer than it may: a watchdog of Python's is a thread that starts, and as one for
each test they would take a twentieth of the time of all tests."""


class Watchdog:
    """The end of this process, with the stacks of all threads, some time after its last test began."""

    def __init__(self) -> None:
        self._end = 0.0

    def watch(self, seconds: float, file: int) -> None:
        """End the process in ``seconds``, or up to SLACK later; write the stacks to a file."""
        end = time.monotonic() + seconds
        if not end <= self._end <= end + SLACK:
            faulthandler.dump_traceback_later(seconds + SLACK, exit=True, file=file)
            self._end = end + SLACK

    def stop(self) -> None:
        """Do not end the process."""
        faulthandler.cancel_dump_traceback_later()
        self._end = 0.0
