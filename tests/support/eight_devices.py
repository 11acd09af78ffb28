"""Tests that need eight devices: they run in a child process with eight virtual ones.

XLA reads the number of its devices once, and all other tests are for one. A test that is marked ``eight_devices`` runs
where there are eight; elsewhere its whole file runs once in a child process, and the test reports what it did there.
"""

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import jax

ROOT = Path(__file__).parents[2]
FLAG = "--xla_force_host_platform_device_count=8"


def has_eight_devices() -> bool:
    return jax.device_count() >= 8


@cache
def outcomes(path: Path) -> dict[str, str]:
    """What each test of a file reported in a process with eight devices, by its name; empty if it passed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "eight_devices"]
        settings = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {FLAG}"}
        ran = subprocess.run(
            [*command, f"--junitxml={report}", str(path)],
            cwd=ROOT,
            env=settings,
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert report.exists(), ran.stdout + ran.stderr
        return {case.attrib["name"]: _failure(case) for case in ElementTree.parse(report).iter("testcase")}


def _failure(case: ElementTree.Element) -> str:
    return "\n".join(
        element.text or element.attrib.get("message", "") for element in case if element.tag in ("failure", "error")
    )
