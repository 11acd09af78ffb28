"""Ctrl-C that reaches Python in a callback."""

import _thread
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

DELAY = 0.05
"""The seconds after which the interrupt is repeated, when the callback has ended."""


@contextmanager
def interrupts_kept() -> Generator[None]:
    """A context in which no Ctrl-C is lost.

    Python drops an exception in a callback of its garbage collector or its imports, and JAX has such callbacks.
    """
    before = sys.unraisablehook

    def hook(dropped: Any) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            threading.Timer(DELAY, _thread.interrupt_main).start()
        else:
            before(dropped)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def interrupts_deferred() -> Generator[None]:
    """A context at whose end Ctrl-C is raised.

    While packages in C were imported, it has ended the process by SIGSEGV. Where Ctrl-C is ignored, as in the
    background of a shell, it stays ignored.
    """
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
    if came:
        raise KeyboardInterrupt
