"""A plugin of pytest that writes the outcome of each test to the file that NETLOOP_OUTCOMES names, as JSON."""

import json
import os
import time
from pathlib import Path
from typing import Any

OUTCOMES: dict[str, str] = {}
SECONDS = 5
"""How often the file is written: what it has counts, also where the process is ended."""

WRITTEN = [time.monotonic()]


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the outcome of a test: failed if a part of it fails."""
    if report.outcome != "passed" or report.when == "call":
        name = report.nodeid.rpartition("/")[2]
        OUTCOMES[name] = "failed" if "failed" in (report.outcome, OUTCOMES.get(name)) else report.outcome
    if time.monotonic() > WRITTEN[-1] + SECONDS:
        pytest_sessionfinish()


def pytest_collectreport(report: Any) -> None:
    """Keep files that cannot be imported as tests that fail."""
    if report.outcome == "failed":
        OUTCOMES[report.nodeid.rpartition("/")[2]] = "failed"


def pytest_sessionfinish() -> None:
    """Write the outcomes; those of workers are among those of the process that asks them."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    Path(os.environ["NETLOOP_OUTCOMES"]).write_text(json.dumps(OUTCOMES), encoding="utf-8")
    WRITTEN[:] = [time.monotonic()]
