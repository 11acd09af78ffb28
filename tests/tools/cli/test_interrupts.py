"""Ctrl-C that arrives in a callback of Python is not lost."""

import gc
import signal
import sys
import threading
import time

import pytest

from netloop.tools.cli.interrupts import interrupts_deferred, interrupts_kept


def wait():
    for _ in range(500):
        time.sleep(0.01)


@pytest.mark.slow
def test_interrupt_in_a_callback_of_the_garbage_collector_is_raised_after_it(capfd):
    def interrupt(phase, _):
        gc.callbacks.remove(interrupt)
        signal.raise_signal(signal.SIGINT)

    def collect():
        with interrupts_kept():
            gc.callbacks.append(interrupt)
            gc.collect()
            wait()

    with pytest.raises(KeyboardInterrupt):
        collect()
    assert capfd.readouterr() == ("", "")


def test_other_exceptions_are_shown_as_before(monkeypatch):
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    before = sys.unraisablehook

    class Failing:
        def __del__(self):
            raise ValueError

    with interrupts_kept():
        Failing()

    assert [value.exc_type for value in shown] == [ValueError]
    assert sys.unraisablehook is before


def test_interrupt_during_imports_is_raised_after_them():
    done = []

    def work():
        with interrupts_deferred():
            signal.raise_signal(signal.SIGINT)
            done.append("imports")
        done.append("more")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["imports"]
    assert signal.getsignal(signal.SIGINT) is before


def test_ignored_interrupts_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_deferred():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_defer_nothing():
    done = []

    def work():
        with interrupts_deferred():
            done.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(100)
    assert done == [signal.getsignal(signal.SIGINT)]
