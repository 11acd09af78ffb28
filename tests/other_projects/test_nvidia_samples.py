"""Samples of NVIDIA run unchanged under ``python -m netloop.compat``.

They run where the variable ``NETLOOP_TENSORRT_SOURCES`` names a folder with the sources of NVIDIA/TensorRT.
"""

import os
import re
from pathlib import Path

import pytest

from tests.other_projects.nvidia_samples import ALL, missing, run

PAGE = Path(__file__).parents[2] / "docs" / "without-a-gpu.md"
NAMED = os.environ.get("NETLOOP_TENSORRT_SOURCES")
SOURCES = Path(NAMED) if NAMED else None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ALL)
def test_sample_runs_unchanged(name):
    why = missing(SOURCES, ALL[name])
    if why:
        pytest.skip(why)
    assert SOURCES is not None
    done = run(SOURCES, ALL[name])

    assert done.returncode == 0, done.stderr
    assert re.search(ALL[name].prints, done.stdout)


@pytest.mark.parametrize("name", ALL)
def test_page_names_the_sample(name):
    assert f"`{name.partition(',')[0]}`" in PAGE.read_text(encoding="utf-8")
