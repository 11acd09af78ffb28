"""Compares netloop with hand-written JAX and with other systems: ``python -m benchmarks --only W2``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import table
from benchmarks.ablation import Ablation
from benchmarks.runner import Plan, Result, Runner, absent
from benchmarks.workload import Workload
from benchmarks.workloads import WORKLOADS

PAGE = Path(__file__).parent / "RESULTS.md"


def positive(text: str) -> int:
    """A number of things, one at least."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add(
        "--only",
        action="append",
        default=[],
        metavar="W2",
        help="workloads whose names are this, or else begin so; may be repeated",
    )
    add("--list", action="store_true", help="tell the names of the workloads, and run none")
    add("--ablate", action="store_true", help="time each pass on and off, for the workloads that it is for")
    add("--threads", type=positive, default=2, help="cores that each system may use (2)")
    add("--repetitions", type=positive, default=30, help="samples of each variant (30)")
    add("--seconds", type=float, default=10.0, help="no more samples, but for 3, of what has taken this long (10)")
    add("--json", type=Path, metavar="F", help="keep results in a file, beside those of earlier runs that it has")
    add("--plot", type=Path, metavar="F.png", help="draw the results")
    add("--write", action="store_true", help=f"write the results to {PAGE.name}")
    return parser.parse_args()


def chosen(prefixes: list[str]) -> list[Workload]:
    """The workloads whose names are or begin with what was asked for; all if nothing was."""
    names = {each.name for each in WORKLOADS}
    exact, begins = names.intersection(prefixes), tuple(each for each in prefixes if each not in names)
    found = [each for each in WORKLOADS if not prefixes or each.name in exact or each.name.startswith(begins)]
    if not found:
        raise SystemExit(f"no workload begins with {' or '.join(prefixes)}; --list tells their names")
    return found


def run(workloads: Sequence[Workload], plan: Plan) -> Iterator[Result]:
    """The results of workloads, each as soon as it is there."""
    runner = Runner(plan)
    try:
        for workload in workloads:
            yield runner.run(workload)
    finally:
        runner.close()


def main() -> None:
    """Run benchmarks."""
    given = options()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # as that is where the other systems run
    workloads = chosen(given.only)
    if given.ablate:
        workloads = [Ablation(each) for each in workloads if each.passes]
    if given.list:
        print("\n".join(each.name for each in workloads))
        return
    for package in absent():
        print(f"{package} is not installed, and left out", file=sys.stderr)
    order = [each.name for each in (*WORKLOADS, *map(Ablation, WORKLOADS))]
    results = table.load(given.json) if given.json else []
    for result in run(workloads, Plan(given.threads, given.repetitions, given.seconds)):
        print(table.markdown(table.DETAIL, table.detail(result)), flush=True)
        results = table.joined(results, [result], order)
        if given.json:
            table.save(results, given.json)
    print(table.markdown(table.SUMMARY, map(table.summary, results)))
    if given.plot:
        table.plot(results, given.plot)
    if given.write:
        PAGE.write_text(table.page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
