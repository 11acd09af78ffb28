"""Faults of one line, and what catches them: ``python -m tests.mutants`` updates the table of ``README.md``.

Each fault is planted in a copy of the tree, and its tests run there, or with ``--networks`` random networks. A fault
that nothing catches shows a gap. Neither pytest nor CI runs this: all tests take half an hour, and 200 networks for
each fault as long. Words select the faults that have all of them in their names.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.runs import Networks, caught_by
from tests.mutants.table import MUTANTS, record


def run_tests(mutants: list[Mutant], jobs: int) -> int:
    """Run the tests of each fault; return the number of faults that none of them catches."""
    survived = 0
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, test in zip(mutants, pool.map(caught_by, mutants), strict=True):
            print(f"{mutant.fault}: {test or 'SURVIVED'}", flush=True)
            record(mutant, test=test or "**nothing**")
            survived += test in ("", "time")
    return survived


def run_networks(mutants: list[Mutant], jobs: int, most: int) -> int:
    """Compare random networks with each fault; return the number of faults that none of them shows."""
    shown = [mutant for mutant in mutants if not mutant.hidden]
    hidden = 0
    with tempfile.TemporaryDirectory(prefix="programs-") as name, ThreadPoolExecutor(jobs) as pool:
        found = pool.map(Networks(most, Path(name)).needed, shown)
        for mutant, (networks, how) in zip(shown, found, strict=True):
            print(f"{networks:>3} {mutant.fault} ({mutant.file}): {how}", flush=True)
            record(mutant, networks=networks)
            hidden += not how
    return hidden


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="words that the names of the faults have")
    parser.add_argument("--networks", type=int, metavar="N", help="compare up to N random networks for each fault")
    parser.add_argument("--jobs", type=int, default=2, help="the number of faults that run at a time")
    given = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.fault for word in given.words)]
    if given.networks is None:
        return run_tests(chosen, given.jobs) > 0
    return run_networks(chosen, given.jobs, given.networks) > 0


if __name__ == "__main__":
    sys.exit(main())
