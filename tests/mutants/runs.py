"""The tests, or random networks, in a copy of the tree with a fault."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.mutants.mutant import ROOT, Mutant, planted

MOST_SECONDS = 900


def caught_by(mutant: Mutant) -> str:
    """The first of its tests that fails with a fault; empty if none does."""
    command = ["-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *mutant.tests.split()]
    with planted(mutant) as tree:
        try:
            done = _run(tree, command)
        except subprocess.TimeoutExpired:
            return "time"
    failed = re.search(r"^(?:FAILED|ERROR) tests/([\w/.]+)(?:::(\w+))?", done.stdout, re.MULTILINE)
    # where the process itself ended, pytest prints Python's stack
    failed = failed or re.search(r'^  File ".*/tests/([\w/.]+)", line \d+ in (test_\w+)', done.stderr, re.MULTILINE)
    assert failed or done.returncode == 0, done.stdout + done.stderr
    return f"`{failed[2] or 'import'}` in `tests/{failed[1]}`" if failed else ""


class Networks:
    """Random networks, compared in copies of the tree with faults.

    Programs that a fault does not change are taken from the folder ``compiled``, and are not compiled again.
    """

    def __init__(self, number: int, compiled: Path) -> None:
        self._number = number
        self._cache = {
            "JAX_COMPILATION_CACHE_DIR": str(compiled),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        done = _run(ROOT, ["-m", "tests.mutants.networks", "reach", str(number)], self._cache)
        assert done.returncode == 0, f"engine and reference differ without a fault:\n{done.stderr}"
        self._reached: dict[str, list[int]] = json.loads(done.stdout)

    def needed(self, mutant: Mutant) -> tuple[str, str]:
        """The number of networks until one shows a fault, and the error by which it does."""
        seeds = self._reached[mutant.key]
        unseen = f"not within {self._number}; {len(seeds)} execute it"
        if not seeds:
            return unseen, ""
        with planted(mutant) as tree:
            try:
                done = _run(tree, ["-m", "tests.mutants.networks", "compare", *map(str, seeds)], self._cache)
            except subprocess.TimeoutExpired:
                return f"{unseen}, in more than {MOST_SECONDS} seconds", ""
        if not done.returncode:
            return unseen, ""
        tried = done.stdout.split() or seeds[:1]
        errors = re.findall(r"^[\w.]*(?:Error|Timeout).*", done.stderr, re.MULTILINE)
        return str(int(tried[-1]) + 1), errors[-1] if errors else f"exit status {done.returncode}"


def _run(tree: Path, arguments: list[str], more: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    paths = {"PYTHONPATH": str(tree), "PATH": os.defpath, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=tree, env=paths | (more or {}), capture_output=True, text=True, timeout=MOST_SECONDS
    )
