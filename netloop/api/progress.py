"""Progress of a build, and its cancelling."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class IProgressMonitor:
    """What is told how far a build is; derive from it and override the three methods."""

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """A phase of so many steps begins."""

    def step_complete(self, phase_name: str, step: int) -> bool:
        """A step is done; False ends the build."""
        return True

    def phase_finish(self, phase_name: str) -> None:
        """A phase is over."""


class Cancelled(Exception):
    """A progress monitor ended the build."""


class Progress:
    """The phases of a build, as a monitor is told of them."""

    WHOLE = "Building engine"

    def __init__(self, monitor: IProgressMonitor | None) -> None:
        self._monitor = monitor or IProgressMonitor()
        self._done = 0

    @contextmanager
    def build(self, steps: int) -> Generator[None]:
        """The whole build."""
        self._monitor.phase_start(self.WHOLE, None, steps)
        try:
            yield
        finally:
            self._monitor.phase_finish(self.WHOLE)

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        """One phase of the build.

        Raises:
            Cancelled: the monitor does not want to go on.
        """
        self._monitor.phase_start(name, self.WHOLE, 1)
        try:
            yield
            goes_on = self._monitor.step_complete(name, 0)
        finally:
            self._monitor.phase_finish(name)
        goes_on = self._monitor.step_complete(self.WHOLE, self._done) and goes_on
        self._done += 1
        if not goes_on:
            raise Cancelled(name)
