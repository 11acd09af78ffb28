"""Make the list of redundant cases anew, in about twenty minutes on two cores: ``python -m tests.redundant_cases``.

Arguments are those of pytest, by default two workers; the list is made of all tests that run.
Cases that fail stay fast.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.redundant_cases.choice import redundant
from tests.redundant_cases.listed import FILE, text_of
from tests.redundant_cases.reach import FOLDER, ROOT, recorded


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="reach-") as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.redundant_cases.reach"]
        ran = subprocess.run([*command, *(sys.argv[1:] or ["-n", "2"])], cwd=ROOT, env=os.environ | {FOLDER: folder})
        if ran.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return ran.returncode
        cases = recorded(Path(folder))
    chosen = redundant(cases)
    FILE.write_text(text_of(chosen), encoding="utf-8")
    seconds, saved = (sum(cases[case].seconds for case in some) for some in (cases, chosen))
    print(f"{len(chosen)} of {len(cases)} are redundant, with {saved:.0f} of {seconds:.0f} s")
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
