"""The plugin records what tests reach, and which tests reach what it does not see."""

import os
import subprocess
import sys

import pytest

from tests.redundant_cases.reach import FOLDER, ROOT, recorded

TESTS = """
import subprocess
import sys

import numpy as np
import pytest

import netloop as trt


@pytest.mark.parametrize("dtype", [trt.float32, trt.int32, trt.int32], ids=["floats", "integers", "again"])
def test_types(dtype):
    network = trt.INetworkDefinition()
    x = network.add_input("x", dtype, (2,))
    network.mark_output(network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0))
    trt.compile(network)(x=np.ones(2, trt.nptype(dtype)))


def test_process():
    subprocess.run([sys.executable, "-c", ""], check=True)


def test_failure():
    assert not subprocess
"""


@pytest.mark.slow
def test_what_tests_reach_is_recorded(tmp_path):
    file = tmp_path / "test_it.py"
    file.write_text(TESTS, encoding="utf-8")
    command = ["-m", "pytest", "-q", "-p", "tests.redundant_cases.reach", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    ran = subprocess.run(
        [sys.executable, *command, str(file)], cwd=ROOT, env=os.environ | {FOLDER: str(tmp_path)}, capture_output=True
    )
    cases = {name.partition("::")[2]: case for name, case in recorded(tmp_path).items()}

    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout
    floats, integers = cases["test_types[floats]"].reached, cases["test_types[integers]"].reached
    assert floats - integers
    assert integers - floats
    assert cases["test_types[again]"].reached <= integers
    assert {name for name, case in cases.items() if case.is_needed} == {"test_process", "test_failure"}
    assert all(case.seconds >= 0 for case in cases.values())
