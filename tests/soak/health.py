"""The health of this process over time: its memory, threads and open files."""

import ctypes
import gc
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

MIB = 1 << 20


class Sample(NamedTuple):
    """The state of this process.

    Attributes:
        seconds: the time.
        rss: the resident memory in MiB, after a garbage collection, and once the C library has given back free memory.
        threads: the number of threads.
        files: the number of open files.
    """

    seconds: float
    rss: float
    threads: int
    files: int


def sample(began: float) -> Sample:
    """The present state."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    threads, files = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    return Sample(time.monotonic() - began, pages * os.sysconf("SC_PAGE_SIZE") / MIB, threads, files)


def slope(samples: list[Sample]) -> float:
    """The growth of the resident memory in MiB a minute: that of the line with the least squares of differences."""
    times, sizes = np.array([[other.seconds, other.rss] for other in samples]).T
    return float(np.polyfit(times / 60, sizes, 1)[0])


def violations(samples: list[Sample], most_growth: float) -> list[str]:
    """What is wrong with the later half of some samples; the earlier half is the warm-up."""
    late = samples[len(samples) // 2 :]
    found = [f"the memory grows by {slope(late):.2f} MiB a minute"] if slope(late) > most_growth else []
    for what in ("threads", "files"):
        before, after = getattr(late[0], what), max(getattr(other, what) for other in late[-3:])
        if after > before:
            found.append(f"there were {before} {what}, and in the end {after}")
    return found
