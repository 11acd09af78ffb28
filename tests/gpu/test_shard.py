"""The plugin that writes the result of each test as it ends, and goes on after a test that ends the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu import shard

ROOT = Path(__file__).parents[2]
FILE = """
import os, time, pytest

def test_passes(): pass
def test_fails(): assert 1 == 2, "the reason"
def test_ends_the_process(): os._exit(9)
def test_takes_too_long(): time.sleep(60)
@pytest.mark.timeout(5)
def test_comes_last(): pass
"""


def run(folder: Path, file: Path, part: str) -> int:
    command = [sys.executable, "-m", "pytest", "-p", "tests.gpu.shard", "--shard", part, "--results", str(folder)]
    options = ["--limit", "1", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    where = {"cwd": file.parent, "env": environment, "capture_output": True, "timeout": 100}
    return subprocess.run([*command, *options, str(file)], **where).returncode


def test_each_test_is_run_once_whatever_becomes_of_it(tmp_path):
    file, folder = tmp_path / "test_some.py", tmp_path / "results"
    file.write_text(FILE)
    statuses = [run(folder, file, "0/1")]
    while not shard.is_finished(folder / "shard-0.jsonl"):
        statuses.append(run(folder, file, "0/1"))

    assert statuses == [9, shard.OVER_LIMIT, 0]
    found = shard.outcomes([folder / "shard-0.jsonl"])
    assert {name.partition("::")[2]: text for name, text in found.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_ends_the_process": "the process ended, or was stopped",
        "test_takes_too_long": "over the limit",
        "test_comes_last": "passed",
    }
    assert "the reason" in (folder / "failed-test_some.py_test_fails.txt").read_text()
    assert any("time.sleep" in path.read_text() or "test_some" in path.read_text() for path in folder.glob("*limit*"))
    assert shard.summary(folder).startswith("2 passed, 1 failed")


def test_parts_have_every_test_once(tmp_path):
    file, folder = tmp_path / "test_many.py", tmp_path / "results"
    file.write_text("\n".join(f"def test_{number}(): pass" for number in range(40)))
    for number in range(2):
        run(folder, file, f"{number}/2")
    parts = [shard.outcomes([folder / f"shard-{number}.jsonl"]) for number in range(2)]

    assert all(parts)
    assert sum(map(len, parts)) == len({*parts[0], *parts[1]}) == 40


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the script is one of bash")
def test_script_runs_on_a_cpu(tmp_path):
    settings = {**os.environ, "DRY": "1", "OUT": str(tmp_path), "PYTHON": sys.executable}
    ran = subprocess.run(
        ["bash", "tests/gpu/run.sh"], cwd=ROOT, env=settings, capture_output=True, text=True, timeout=290
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    overview = (tmp_path / "overview.txt").read_text()
    assert [name for name in ("device", "demo", "tests", "loops") if f"{name}: ok" not in overview] == []
    assert (tmp_path / "tests.txt").read_text().startswith("55 passed")
