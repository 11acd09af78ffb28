"""torch2trt's own tests pass on netloop, except for those that the page for users of TensorRT explains.

They run where the variable ``NETLOOP_TORCH2TRT_SOURCES`` names a folder with the sources of torch2trt.
"""

import os
import re
from pathlib import Path

import pytest

from tests.other_projects import torch2trt_tests

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-tensorrt.md"
NAMED = os.environ.get("NETLOOP_TORCH2TRT_SOURCES")
SOURCES = Path(NAMED) if NAMED else None


def explained() -> list[str]:
    """The tests that fail, as the page has them; ``{a,b}`` stands for both a and b."""
    section = PAGE.read_text(encoding="utf-8").partition("### torch2trt\n")[2].partition("\n## ")[0]
    found: list[str] = []
    for name in re.findall(r"^\| `(test_\S+::.*?)` \|", section, re.MULTILINE):
        before, brace, rest = name.partition("{")
        words, _, after = rest.partition("}")
        found += [before + word + after for word in words.split(",")] if brace else [name]
    return found


def test_page_explains_each_failure_once():
    assert len(explained()) == len(set(explained())) == 14


@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(torch2trt_tests.missing(SOURCES)), reason=torch2trt_tests.missing(SOURCES))
def test_only_what_the_page_explains_fails():
    assert SOURCES is not None
    found = torch2trt_tests.run(SOURCES)

    # some of the explained ones fail for most random inputs only
    assert {name for name, outcome in found.items() if outcome == "failed"} <= set(explained())
    assert sum(outcome == "passed" for outcome in found.values()) >= 269


def test_script_says_what_is_missing(capsys):
    assert torch2trt_tests.main(["no such folder"]) == 0
    assert capsys.readouterr().out.startswith("skipped: no folder")
