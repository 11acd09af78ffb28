"""The tables of ``docs/tensorrt-code.md``: ``python -m tests.other_projects.page`` makes them of what was recorded."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.other_projects.reasons import reason
from tests.other_projects.suites import FAKED, ROOT, RUNNER, SUITES
from tests.other_projects.tensorrt_code import recorded

PAGE = ROOT / "docs" / "tensorrt-code.md"
BEGIN, END = "<!-- outcomes -->\n", "<!-- end of outcomes -->\n"
NOT_EXAMINED = "not examined"


def row(suite: str, outcomes: dict[str, int | list[str]]) -> str:
    """The row of a suite in the table of counts."""
    title, source = next((entry.title, entry.source) for entry in SUITES if entry.name == suite)
    passed, skipped, failed = (outcomes[key] for key in ("passed", "skipped", "failed"))
    assert isinstance(failed, list)
    faked = recorded(FAKED).get(suite, {}).get("passed", "")
    return f"| {title} | {source} | {passed} | {len(failed)} | {skipped} | {faked} |"


def names(tests: Iterable[str]) -> str:
    """The tests, one for all that differ in their parameters only."""
    counts = Counter(test.partition("[")[0] for test in tests)
    parts = (f"`{test}`" + (f" ({count})" if count > 1 else "") for test, count in sorted(counts.items()))
    return ", ".join(parts)


def failures(suite: str, failed: Iterable[str]) -> list[str]:
    """The rows of a suite in the table of failures."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for test in failed:
        by_reason[reason(suite, test) or NOT_EXAMINED].append(test)
    return [f"| {len(tests)} | {why} | {names(tests)} |" for why, tests in sorted(by_reason.items(), key=_rank)]


def _rank(entry: tuple[str, list[str]]) -> tuple[bool, int, str]:
    return entry[0] == NOT_EXAMINED, -len(entry[1]), entry[0]


def section(title: str, rows: list[str]) -> list[str]:
    """The table of some failures; nothing if there are none."""
    head = ["", f"## {title}", "", "| tests | why they fail | names |", "|---|---|---|"]
    return [*head, *rows] if rows else []


def fails_on_a_gpu(suite: str) -> list[str]:
    """The tests that fail on a machine that seems to have a GPU, and not on one without."""
    faked, here = ({*map(str, recorded(runner).get(suite, {}).get("failed", []))} for runner in (FAKED, RUNNER))
    return sorted(faked - here)


def tables() -> str:
    """The counts of all suites, and what fails in each."""
    outcomes = recorded()
    lines = ["| suite | from | pass | fail | skipped | pass on a faked GPU |", "|---|---|---|---|---|---|"]
    listed = [suite for suite in SUITES if suite.name in outcomes]
    lines += [row(suite.name, outcomes[suite.name]) for suite in listed]
    for suite in listed:
        failed = outcomes[suite.name]["failed"]
        assert isinstance(failed, list)
        lines += section(suite.title, failures(suite.name, failed))
    faked = [line for suite in listed for line in failures(f"faked {suite.name}", fails_on_a_gpu(suite.name))]
    lines += section("On a faked GPU only", faked)
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page with the tables of today."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + "\n" + tables() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
