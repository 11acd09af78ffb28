"""Tests that need eight devices: they run in a child process with eight virtual ones.

XLA reads the number of its devices once, and all other tests are for one. A test that is marked ``eight_devices`` runs
where there are eight; elsewhere it runs once in a child process, and reports what it did there. A child runs the tests
of one folder of ``tests``, as the imports of each child take seconds.
"""

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import jax
import pytest

ROOT = Path(__file__).parents[2]
FLAG = "--xla_force_host_platform_device_count=8"


def has_eight_devices() -> bool:
    return jax.device_count() >= 8


def needs_eight_devices(item: pytest.Item) -> bool:
    return item.get_closest_marker("eight_devices") is not None


def outcome(item: pytest.Item) -> str:
    """The failure of a test in a process with eight devices; empty if it passed."""
    return _outcomes(item.session, _folder(item))[item.path, item.name]


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT / "tests").parts[0]


@cache
def _outcomes(session: pytest.Session, part: str) -> dict[tuple[Path, str], str]:
    """The failures of tests of a folder in a process with eight devices, by file and name; empty if a test passed."""
    tests = [item.nodeid for item in session.items if needs_eight_devices(item) and _folder(item) == part]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "eight_devices"]
        settings = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {FLAG}"}
        ran = subprocess.run(
            [*command, f"--junitxml={report}", "-o", "junit_family=xunit1", *tests],
            cwd=ROOT,
            env=settings,
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert report.exists(), ran.stdout + ran.stderr
        cases = ElementTree.parse(report).iter("testcase")
        return {(ROOT / case.attrib["file"], case.attrib["name"]): _failure(case) for case in cases}


def _failure(case: ElementTree.Element) -> str:
    return "\n".join(
        element.text or element.attrib.get("message", "") for element in case if element.tag in ("failure", "error")
    )
