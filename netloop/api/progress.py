"""The progress of a build, and its cancellation."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager


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
    """Raised when a progress monitor cancels the compilation of a network; it names the phase."""


class Progress:
    """The phases of a build, reported to a monitor."""

    WHOLE = "Building engine"
    PARTS = {"passes": "Optimize", "load": "Load weights", "trace": "Trace", "compile": "Compile by XLA"}
    """The names of the phases of a compilation, by those that ``ICudaEngine.profile`` has."""

    def __init__(self, monitor: IProgressMonitor | None) -> None:
        self._monitor = monitor or IProgressMonitor()
        self._done = 0
        self._phase = self.WHOLE

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
        self._phase = name
        with self._reported(name, self.WHOLE):
            yield
        continues = self._monitor.step_complete(self.WHOLE, self._done)
        self._done += 1
        if not continues:
            raise Cancelled(name)

    def part(self, name: str) -> AbstractContextManager[None]:
        """One part of the phase in progress, by its name in ``PARTS``.

        Raises:
            Cancelled: the monitor cancels the build.
        """
        return self._reported(self.PARTS[name], self._phase)

    def trial(self, what: str) -> None:
        """Report that a form is timed next.

        Raises:
            Cancelled: the monitor cancels the build.
        """
        with self._reported(f"Time {what}", self._phase):
            pass

    @contextmanager
    def _reported(self, name: str, parent: str) -> Generator[None]:
        self._monitor.phase_start(name, parent, 1)
        try:
            yield
            continues = self._monitor.step_complete(name, 0)
        finally:
            self._monitor.phase_finish(name)
        if not continues:
            raise Cancelled(name)
