"""The watchdog of tests: how often it is armed, and that no test has more time than it may take."""

import faulthandler
import time

import pytest

from tests.support.watchdog import Watchdog


@pytest.fixture
def armed(monkeypatch):
    """The seconds of each watchdog, with the clock at ``now``, a list of one number."""
    seconds, now = [], [1000.0]
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda after, **_: seconds.append(after))
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: seconds.append(None))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return seconds, now


def test_one_watchdog_is_for_many_tests(armed):
    (seconds, now), watchdog = armed, Watchdog()
    for now[0] in (1000, 1005, 1009, 1011, 1020):
        watchdog.watch(300, 2)

    assert seconds == [300, 300]


def test_tests_with_less_or_more_time_have_their_own(armed):
    (seconds, _), watchdog = armed, Watchdog()
    for time_of_test in (300, 2, 300):
        watchdog.watch(time_of_test, 2)

    assert seconds == [300, 2, 300]


def test_nothing_is_armed_after_the_last_test(armed):
    (seconds, _), watchdog = armed, Watchdog()
    watchdog.watch(300, 2)
    watchdog.stop()
    watchdog.watch(300, 2)

    assert seconds == [300, None, 300]
