"""The list of tests that are skipped, in docs/reliability.md."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reliability.md"
NEEDS = re.compile(r"""importorskip\(\s*["']([\w.]+)["']""")


def listed() -> set[str]:
    """The names in the first column of the list."""
    section = PAGE.read_text(encoding="utf-8").partition("## Skipped tests\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_each_package_without_which_a_test_is_skipped_is_listed():
    needed = {
        name.partition(".")[0]
        for path in TESTS.rglob("*.py")
        for name in NEEDS.findall(path.read_text(encoding="utf-8"))
        if not name.startswith("tests.")
    }

    assert len(needed) > 10
    assert needed - listed() == set()


def test_each_file_that_needs_a_client_of_triton_is_run_with_it_in_ci():
    needed = {
        path
        for path in TESTS.rglob("*.py")
        if any(name.startswith("tritonclient.") for name in NEEDS.findall(path.read_text(encoding="utf-8")))
    }

    assert needed == set(run_in_ci("OF_CLIENTS"))


def run_in_ci(name: str) -> list[Path]:
    """The files of a list in noxfile.py."""
    names = (TESTS.parent / "noxfile.py").read_text(encoding="utf-8").partition(f"{name} = (")[2].partition(")")[0]
    return [TESTS.parent / value for value in re.findall(r'"(tests/\S+\.py)"', names)]


@pytest.mark.parametrize(("name", "count"), [("OF_LIBRARIES", 4), ("OF_CLIENTS", 2)])
def test_what_ci_runs_for_other_packages_are_files_that_are_skipped_without_them(name, count):
    paths = run_in_ci(name)

    assert len(paths) == count
    assert [path for path in paths if "skip" not in path.read_text(encoding="utf-8")] == []
