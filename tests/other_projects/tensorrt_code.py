"""Run code of other projects that was written for TensorRT, and compare with the outcomes of the last time.

``python -m tests.other_projects.tensorrt_code FOLDER ...`` takes folders with the sources of public repositories, or
folders of such folders, and runs each suite whose sources and packages are there. It prints the numbers of tests, those
that fail now and did not before, and the other way round; it ends with 1 if a test that passed fails now.

``--record`` keeps the outcomes in ``tests/data/tensorrt_code.json``, of which the page ``docs/tensorrt-code.md`` is
made. ``--faked-device`` runs all as on a machine with a GPU, whose memory the host must not touch; its outcomes have a
file of their own. Options behind ``--`` are those of pytest. The variable NETLOOP_SHOW shows what the suites print, and
NETLOOP_PATIENCE is how many times as long as on an idle machine they may take.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.other_projects.suites import FAKED, ROOT, RUNNER, SUITES, Outcomes, Suite

RECORD = ROOT / "tests" / "data" / "tensorrt_code.json"
FAKED_RECORD = RECORD.with_stem("tensorrt_code_faked")
"""Those of a machine that seems to have a GPU."""


def sources_of(suite: Suite, folders: Iterable[Path]) -> Path | None:
    """The sources of a suite in folders, or in the folders in these; None if they are not there."""
    places = (place for folder in folders for place in (folder, *sorted(folder.glob("*/"))))
    return next((place for place in places if (place / suite.marker).exists()), None)


def recorded(runner: str = RUNNER) -> dict[str, dict[str, int | list[str]]]:
    """For each suite the numbers of tests that passed and were skipped, and the names of those that failed."""
    record = _record_of(runner)
    return json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}


def _record_of(runner: str) -> Path:
    return FAKED_RECORD if runner == FAKED else RECORD


def summary(outcomes: Outcomes) -> dict[str, int | list[str]]:
    """The outcomes as they are recorded."""
    count = Counter(outcomes.values())
    failed = sorted(name for name, outcome in outcomes.items() if outcome == "failed")
    return {"passed": count["passed"], "skipped": count["skipped"], "failed": failed}


def changes(outcomes: Outcomes, before: Iterable[str]) -> tuple[list[str], list[str]]:
    """The tests that fail now and are not among those that failed before, and those that passed now instead."""
    known = set(before)
    worse = [name for name, outcome in outcomes.items() if outcome == "failed" and name not in known]
    return worse, [name for name in sorted(known) if outcomes.get(name) == "passed"]


def run(suite: Suite, sources: Path, options: Sequence[str] = (), runner: str = RUNNER) -> Outcomes:
    """The outcomes of a suite."""
    outcomes: Outcomes = {}
    for part in suite.outcomes(sources, options, runner):
        outcomes.update(part)
    return outcomes


def compared(suite: Suite, outcomes: Outcomes, runner: str = RUNNER) -> list[str]:
    """Print how a suite ended; return the tests that fail now and did not before."""
    now, before = summary(outcomes), recorded(runner).get(suite.name)
    numbers = ", ".join(f"{len(value) if isinstance(value, list) else value} {name}" for name, value in now.items())
    print(f"{suite.name}: {numbers}", flush=True)
    if before is None:
        return []
    failed = before["failed"]
    assert isinstance(failed, list)
    worse, better = changes(outcomes, failed)
    for title, names in (("fails now", worse), ("passes now", better)):
        print(*(f"  {title}: {name}" for name in names), sep="\n", end="\n" if names else "", flush=True)
    return worse


def main(arguments: Sequence[str]) -> int:
    """Run the suites; 1 if a test that passed before fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.other_projects.tensorrt_code", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--suite", action="append", choices=[suite.name for suite in SUITES])
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--faked-device", action="store_true")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    asked, options = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    runner = FAKED if asked.faked_device else RUNNER
    worse: list[str] = []
    for suite in SUITES:
        if asked.suite and suite.name not in asked.suite:
            continue
        sources, lacking = sources_of(suite, asked.folders), suite.missing()
        if sources is None or lacking:
            why = f"no packages {lacking}" if lacking else f"no sources of {suite.source}"
            print(f"{suite.name}: skipped, {why}", flush=True)
            continue
        outcomes = run(suite, sources, options, runner)
        worse += compared(suite, outcomes, runner)
        if asked.record:
            text = json.dumps({**recorded(runner), suite.name: summary(outcomes)}, indent=1, sort_keys=True)
            _record_of(runner).write_text(text + "\n", encoding="utf-8")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
