"""The soak as a test, and the measures by which it judges a process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.health import Sample, slope, violations

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("NETLOOP_SOAK_SECONDS", "1800"))
MARGIN = 600
"""The seconds that the start, the children and the end of a soak may take."""


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 2 * MARGIN)
@pytest.mark.skipif(sys.platform != "linux", reason="the soak reads /proc")
def test_results_and_memory_stay_as_they_are_whatever_runs_together():
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.soak", str(SECONDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS + MARGIN)

    assert done.returncode == 0, done.stdout + done.stderr


def samples(rss, threads=20, files=9):
    """Samples of twenty minutes, from the memory, and the last numbers of threads and files."""
    made = [Sample(60.0 * minute, rss(minute), 20, 9) for minute in range(20)]
    return [*made[:-1], made[-1]._replace(threads=threads, files=files)]


def test_growth_is_that_of_the_memory_in_a_minute():
    assert slope(samples(lambda minute: 100 + 2 * minute)) == pytest.approx(2)


def test_memory_may_grow_while_caches_are_filled():
    assert violations(samples(lambda minute: 100 + 50 * min(minute, 10)), 0.5) == []


def test_memory_that_grows_to_the_end_is_a_violation():
    assert violations(samples(lambda minute: 100 + minute), 0.5) == ["the memory grows by 1.00 MiB a minute"]


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        ({"threads": 21}, "there were 20 threads, and in the end 21"),
        ({"files": 10}, "there were 9 files, and in the end 10"),
    ],
)
def test_thread_or_file_that_is_left_is_a_violation(change, violation):
    assert violations(samples(lambda minute: 100, **change), 0.5) == [violation]
