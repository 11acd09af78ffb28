"""The command line: ``python -m tests.fuzz [TARGET ...] [--seconds 600]`` fuzzes the targets, one after the other.

Corpora are kept in ``.fuzz/TARGET/corpus`` from run to run, and finds are written to ``.fuzz/TARGET/finds``. The exit
status is 1 if there is a find.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".fuzz"
OPTIONS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=20000", "-len_control=0", "-print_final_stats=1")
STATUS = re.compile(r"^#(\d+)\s+(INITED|DONE|\w+)\s+cov: (\d+) ft: (\d+)")
LEAST_SECONDS = 5
"""The shortest time that is worth another start after a find that ended the process."""


def fuzz(name: str, seconds: int) -> list[Path]:
    """Fuzz a target and print a summary; return the finds."""
    corpus, finds = FOLDER / name / "corpus", FOLDER / name / "finds"
    for path in (corpus, finds):
        path.mkdir(parents=True, exist_ok=True)
    for data in TARGETS[name].seeds():
        (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
    words = FOLDER / name / "words.txt"
    # one word at least: libFuzzer ends where there is none
    words.write_text("".join(f'"{token}"\n' for token in TARGETS[name].tokens or ("x",)), encoding="utf-8")
    before, end = set(finds.iterdir()), time.monotonic() + seconds
    coverage: list[str] = []
    runs = 0
    while (left := round(end - time.monotonic())) >= LEAST_SECONDS:
        statuses = list(_statuses(name, finds, f"-dict={words}", f"-max_total_time={left}", corpus))
        if not statuses:
            sys.exit("the fuzzer did not start; it needs the extra fuzz: pip install -e '.[fuzz]'")
        coverage += [name for _, name in statuses]
        runs += statuses[-1][0]
    found = sorted(set(finds.iterdir()) - before)
    print(f"{name}: {runs} runs in {seconds} s, from {coverage[0]} to {coverage[-1]}, {len(found)} finds")
    return found


def _statuses(name: str, finds: Path, *options: object) -> Iterator[tuple[int, str]]:
    """The number of runs and the coverage so far, as one process of the fuzzer reports them from time to time."""
    command = [sys.executable, "-m", "tests.fuzz.child", name, finds, f"-artifact_prefix={finds}/", *OPTIONS, *options]
    with subprocess.Popen(list(map(str, command)), cwd=ROOT, stderr=subprocess.PIPE, text=True, errors="replace") as it:
        assert it.stderr is not None
        for line in it.stderr:
            if (found := STATUS.match(line)) and found[2] != "pulse":
                yield int(found[1]), f"{found[3]} edges and {found[4]} features"
            if not found or found[2] in ("INITED", "DONE"):
                print(line, end="", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all if none is named")
    parser.add_argument("--seconds", type=int, default=600, help="for each target (default: %(default)s)")
    arguments = parser.parse_args()
    unknown = [target for target in arguments.targets if target not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    if arguments.seconds < LEAST_SECONDS:
        parser.error(f"--seconds is {arguments.seconds}, but must be at least {LEAST_SECONDS}")
    finds = [path for name in arguments.targets or TARGETS for path in fuzz(name, arguments.seconds)]
    for find in finds:
        print(f"find: {find}")
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
