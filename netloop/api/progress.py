"""The progress of a build, and its cancellation."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class IProgressMonitor:
    """A receiver of the progress of a build; derive from it and override the three methods."""

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Called when a phase of ``num_steps`` steps begins."""

    def step_complete(self, phase_name: str, step: int) -> bool:
        """Called when a step is done; return False to cancel the build."""
        return True

    def phase_finish(self, phase_name: str) -> None:
        """Called when a phase ends."""


class Cancelled(Exception):
    """Raised when a progress monitor cancels the build."""


class Progress:
    """The phases of a build, reported to a monitor."""

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
            Cancelled: the monitor cancels the build.
        """
        self._monitor.phase_start(name, self.WHOLE, 1)
        try:
            yield
            continues = self._monitor.step_complete(name, 0)
        finally:
            self._monitor.phase_finish(name)
        continues = self._monitor.step_complete(self.WHOLE, self._done) and continues
        self._done += 1
        if not continues:
            raise Cancelled(name)
