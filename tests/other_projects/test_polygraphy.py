"""Polygraphy's own tests pass on netloop, except for those that the page for users of TensorRT explains.

They run where the variable ``NETLOOP_TENSORRT_SOURCES`` names a folder with the sources of NVIDIA/TensorRT.
"""

import os
import re
from pathlib import Path

import pytest

from tests.other_projects import polygraphy_tests

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-tensorrt.md"
NAMED = os.environ.get("NETLOOP_TENSORRT_SOURCES")
SOURCES = Path(NAMED) if NAMED else None


def explained() -> list[str]:
    """The tests that fail, as the page has them; ``{a,b}`` stands for both a and b."""
    section = PAGE.read_text(encoding="utf-8").partition("## TensorRT's own tools\n")[2].partition("\n##")[0]
    found: list[str] = []
    for name in re.findall(r"^\| `(test_\S+::.*?)` \|", section, re.MULTILINE):
        before, brace, rest = name.partition("{")
        words, _, after = rest.partition("}")
        found += [before + word + after for word in words.split(",")] if brace else [name]
    return found


def test_page_explains_each_failure_once():
    assert len(explained()) == len(set(explained())) > 20


@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(polygraphy_tests.missing(SOURCES)), reason=polygraphy_tests.missing(SOURCES))
def test_only_what_the_page_explains_fails():
    assert SOURCES is not None
    found = polygraphy_tests.run(SOURCES)

    assert {name for name, outcome in found.items() if outcome == "failed"} == set(explained())
    assert sum(outcome == "passed" for outcome in found.values()) >= 240


def test_script_says_what_is_missing(capsys):
    assert polygraphy_tests.main(["no such folder"]) == 0
    assert capsys.readouterr().out.startswith("skipped: no folder")
