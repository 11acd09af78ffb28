"""Times of calls, in turns."""

import pytest

from netloop.tools.cli import timing
from netloop.tools.cli.timing import CallTime


@pytest.fixture
def clock(monkeypatch):
    """A clock that only calls move: each takes what its function says, in seconds."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    def call(name, takes, log):
        def made():
            log.append(name)
            now[0] += takes

        return made

    return call


def test_systems_take_turns_in_another_order_each(clock):
    log = []
    timing.in_turns({name: clock(name, 1.0, log) for name in "abc"}, iterations=3, duration=0, warm_up=0)

    assert "".join(log) == "abc" + "abc" + "bca" + "cab"


def test_warm_up_lasts_for_each_system_and_does_not_count(clock):
    log = []
    times = timing.in_turns({name: clock(name, 1.0, log) for name in "ab"}, iterations=1, duration=0, warm_up=3)

    assert "".join(log) == "aaa" + "bbb" + "ab"
    assert times == {"a": [CallTime(0.0, 1.0)], "b": [CallTime(1.0, 1.0)]}


def test_duration_is_that_of_the_systems_on_average(clock):
    log = []
    times = timing.in_turns({"slow": clock("s", 9.0, log), "fast": clock("f", 1.0, log)}, 1, duration=20, warm_up=0)

    assert [len(entry) for entry in times.values()] == [4, 4]


def test_there_is_at_least_one_turn(clock):
    assert len(timing.in_turns({"a": clock("a", 1.0, [])}, 0, 0, 0)["a"]) == 1


def test_numbers_of_the_table():
    times = {"netloop": [CallTime(0, number) for number in (0.001, 0.002, 0.006)], "x": [CallTime(0, 0.004)] * 3}
    _, _, mine, theirs, ratio = timing.lines_of(times, [100])

    assert mine.split() == ["netloop", "2", "3", "1", "6", "6", "333.3"]
    assert theirs.split() == ["x", "4", "4", "4", "4", "4", "250"]
    # of 1/4, 2/4 and 6/4, which is not the ratio of sums
    assert ratio == "netloop / x: 0.5 (median of the ratios of the turns; quartiles 0.375 and 1)"


def test_ratio_is_that_of_the_turns():
    times = {
        "netloop": [CallTime(0, number) for number in (1, 10, 100)],
        "x": [CallTime(0, number) for number in (2, 20, 25)],
    }

    *_, ratio = timing.lines_of(times, [])
    assert ratio.startswith("netloop / x: 0.5 ")
