"""The future of a request, which neither a callback of a caller nor a fork of the process can hold up."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from netloop.process.forked import FORK, require_jax
from netloop.values.types import Array

Outputs = dict[str, Array]


class ServiceThread(threading.Thread):
    """The thread of a service, in which most callbacks run."""


class Answer(Future[Outputs]):
    """The future of the outputs of a request.

    A callback that exits the thread of the service is logged, as one that raises any other exception, and the thread
    goes on. In a forked process, a request of the parent never ends: to wait for it is an ExecutionError there.
    """

    def add_done_callback(self, fn: Callable[[Future[Outputs]], Any]) -> None:
        """Add a function that is called with this future when it is done."""
        super().add_done_callback(partial(_contained, fn))

    def result(self, timeout: float | None = None) -> Outputs:
        """The outputs, or the error raised."""
        self._require_end()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error; None if there are outputs."""
        self._require_end()
        return super().exception(timeout)

    def cancel(self) -> bool:
        """Give the request up, if it can still be; whether it is given up."""
        return not FORK.lost_jax and super().cancel()

    def fail(self, error: Exception) -> None:
        """Give the request its error, whether it runs or waits, unless it is given up or answered."""
        if self.done() and not self.cancelled():
            return
        with suppress(RuntimeError):  # the second notice of one that was given up
            if self.running() or self.set_running_or_notify_cancel():
                self.set_exception(error)

    def _require_end(self) -> None:
        if FORK.lost_jax and not self.done():
            require_jax()


def _contained(callback: Callable[[Future[Outputs]], Any], future: Future[Outputs]) -> None:
    """Call back; in the thread of a service, SystemExit and KeyboardInterrupt become an Exception, which is logged."""
    try:
        callback(future)
    except BaseException as error:
        if isinstance(error, Exception) or not isinstance(threading.current_thread(), ServiceThread):
            raise
        raise RuntimeError(f"a callback of a request raised {type(error).__name__}") from error
