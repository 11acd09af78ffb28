"""A part of the tests, and what became of each, written as it ends: a plugin of pytest for a machine on loan.

    python -m pytest -p tests.gpu.shard --shard 0/8 --results gpu-results/tests tests/model/layers

The folder gets a line of JSON for the begin and the end of each test, and a file for each that fails. So a run that is
stopped loses nothing, and one that ends with its process, or takes too long for one test, goes on in a new process:
what has begun is not run again. ``python -m tests.gpu.shard gpu-results/tests`` prints the results.

It needs pytest alone: where Hypothesis, pytest-timeout or pytest-xdist are not installed, it does without.
"""

import faulthandler
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.gpu.stand_ins import without_hypothesis

without_hypothesis()

LIMIT = 60.0
"""The most seconds for a test."""
OVER_LIMIT = 3
"""The exit status of a process whose test took longer."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("shard")
    group.addoption("--shard", default="0/1", help="the number of this part, from 0, and that of all: 0/8")
    group.addoption("--results", type=Path, default=Path("gpu-results/tests"), help="the folder of the results")
    group.addoption("--limit", type=float, default=LIMIT, help="the most seconds for a test")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "timeout: of pytest-timeout, which need not be there")
    config.pluginmanager.register(Shard(config), "shard of the tests")


class Shard:
    """The tests of one process, and their results."""

    def __init__(self, config: pytest.Config) -> None:
        number, _, count = config.getoption("shard").partition("/")
        self.number, self.count = int(number), int(count)
        self.limit: float = config.getoption("limit")
        self.folder: Path = config.getoption("results")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / f"shard-{number}.jsonl"
        self._timer = threading.Timer(0, lambda: None)

    def note(self, **line: Any) -> None:
        """Add a line, which is in the file when this returns."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def keep(self, name: str, text: str) -> None:
        """Write the file of a failure."""
        safe = re.sub(r"[^\w.\-]+", "_", name)[-150:]
        (self.folder / f"failed-{safe}.txt").write_text(f"{name}\n\n{text}\n", encoding="utf-8")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of this part that have not begun; the cases of a test are compiled together, and stay so."""
        begun = {line["begins"] for line in lines(self.file) if "begins" in line}
        mine = [
            item
            for item in items
            if crc32(item.nodeid.partition("[")[0].encode()) % self.count == self.number and item.nodeid not in begun
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(mine)])
        items[:] = mine

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.note(test=report.nodeid, outcome="not collected")
            self.keep(report.nodeid, report.longreprtext)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.note(begins=nodeid)
        self._timer = threading.Timer(self.limit, self._end, [nodeid])
        self._timer.daemon = True
        self._timer.start()

    def _end(self, nodeid: str) -> None:
        """End the process: nothing else leaves a call inside of XLA."""
        self.note(test=nodeid, outcome="over the limit", seconds=self.limit)
        safe = self.folder / f"failed-limit-{self.number}-{crc32(nodeid.encode())}.txt"
        with safe.open("w", encoding="utf-8") as file:
            file.write(f"{nodeid}\n\nover {self.limit} s\n")
            file.flush()
            faulthandler.dump_traceback(file)
        os._exit(OVER_LIMIT)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            sections = "\n".join(f"--- {title}\n{text}" for title, text in report.sections)
            self.keep(report.nodeid, f"{report.when}\n{report.longreprtext}\n{sections}")
        if report.when == "call" or not report.passed:
            outcome = "expected to fail" if hasattr(report, "wasxfail") and report.skipped else report.outcome
            self.note(test=report.nodeid, outcome=outcome, seconds=round(report.duration, 3))
        if report.when == "teardown":
            self._timer.cancel()

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._timer.cancel()
        self.note(finished=int(exitstatus), at=time.time())


# ---------------------------------------------------------------------------- results


def lines(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file; the last may be cut where the process was stopped."""
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


def is_finished(file: Path) -> bool:
    """Whether the last process of a part came to its end."""
    return any("finished" in line for line in [*lines(file)][-1:])


def outcomes(files: Iterable[Path]) -> dict[str, str]:
    """What became of each test that has begun, by its name; the worst, if it has several reports."""
    result = dict[str, str]()
    for file in files:
        for line in lines(file):
            if "begins" in line:
                result.setdefault(line["begins"], "the process ended, or was stopped")
            elif "test" in line and result.get(line["test"]) != "failed":
                result[line["test"]] = line["outcome"]
    return result


def summary(folder: Path) -> str:
    """The numbers of outcomes, the folders of what failed, and its names."""
    found = outcomes(sorted(folder.glob("shard-*.jsonl")))
    bad = {name: text for name, text in sorted(found.items()) if text not in ("passed", "skipped", "expected to fail")}
    places = Counter(name.partition("[")[0] for name in bad)
    counts = ", ".join(f"{number} {text}" for text, number in Counter(found.values()).most_common())
    return "\n".join(
        [
            counts or "no test has begun",
            *(f"{number:5} {place}" for place, number in places.most_common()),
            "",
            *(f"{text}: {name}" for name, text in bad.items()),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1] == "--is-finished":
        sys.exit(not is_finished(Path(sys.argv[2])))
    print(summary(Path(sys.argv[1])))
