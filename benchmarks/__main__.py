"""Compare netloop with hand-written JAX and with other systems: ``python -m benchmarks --only W2``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import figure, gpu_systems, h100, launches, table
from benchmarks.ablation import Ablation
from benchmarks.runner import Plan, Result, Runner, absent
from benchmarks.systems import SYSTEMS
from benchmarks.workload import Workload
from benchmarks.workloads import WORKLOADS, by_importance

PAGE = Path(__file__).parent / "RESULTS.md"


CORES = len(os.sched_getaffinity(0))
PLANS = {
    "cpu": Plan(threads=2, systems=SYSTEMS),
    # products are rounded to TensorFloat-32 there, so that texts of greedy searches may differ
    "gpu": Plan(CORES, 12, 0.5, 1, limit=60, systems=gpu_systems.GPU_SYSTEMS, times_what_differs=True),
}
"""How workloads are measured on each platform, where nothing else is said."""


def positive(text: str) -> int:
    """Return a positive integer."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add(
        "--only",
        action="append",
        default=[],
        metavar="W2",
        help="run the workload of this name, or those whose names begin with it; may be repeated",
    )
    add("--list", action="store_true", help="print the names of the workloads and run none")
    add("--ablate", action="store_true", help="time workloads with and without each pass that they measure")
    add("--launches", action="store_true", help="count the kernels of programs for an H100, and run none")
    says = "where the systems run; on a GPU, the workloads of most interest come first, and defaults are for minutes"
    add("--platform", choices=PLANS, default="cpu", help=says)
    add("--threads", type=positive, help="number of cores for each system (2; gpu: all)")
    add("--repetitions", type=positive, help="samples of each variant (30; gpu: 12)")
    add(
        "--seconds",
        type=float,
        help="stop sampling a variant after this time and at least 3 samples (10; gpu: 0.5)",
    )
    add("--places", type=positive, help="how often each variant is prepared anew, elsewhere in memory (3; gpu: 1)")
    add("--json", type=Path, metavar="F", help="add the results to those of earlier runs in a file")
    add("--plot", type=Path, metavar="FOLDER", help=f"draw the results of {PAGE.name} into a folder, and run nothing")
    add("--write", action="store_true", help=f"write the results to {PAGE.name}, as those of this machine")
    return parser.parse_args()


def chosen(prefixes: list[str]) -> list[Workload]:
    """Return the workloads with the given names or beginnings of names; all by default."""
    names = {workload.name for workload in WORKLOADS}
    exact, begins = names.intersection(prefixes), tuple(prefix for prefix in prefixes if prefix not in names)
    found = [
        workload for workload in WORKLOADS if not prefixes or workload.name in exact or workload.name.startswith(begins)
    ]
    if not found:
        raise SystemExit(f"no workload begins with {' or '.join(prefixes)}; --list prints their names")
    return found


def ready(workloads: Sequence[Workload]) -> list[Workload]:
    """Return the workloads that can run, and say what the others need."""
    for workload in workloads:
        if workload.missing:
            print(f"{workload.name} is left out: {workload.missing}", file=sys.stderr)
    return [workload for workload in workloads if not workload.missing]


def run(workloads: Sequence[Workload], plan: Plan) -> Iterator[Result]:
    """Yield the result of each workload as soon as it is known."""
    runner = Runner(plan)
    try:
        for workload in workloads:
            yield runner.run(workload)
    finally:
        runner.close()


def show_launches(workloads: Sequence[Workload]) -> None:
    """Print the table of launches, row by row."""
    if not h100.is_there():
        raise SystemExit('the CUDA plugin of JAX is not installed: pip install -e ".[cuda13]"')
    print(f"| {' | '.join(launches.HEADER)} |\n|{'---|' * len(launches.HEADER)}")
    for workload in workloads:
        for line in launches.measured(workload):
            print(f"| {' | '.join(launches.cells(line))} |", flush=True)


def main() -> None:
    """Run benchmarks."""
    given = options()
    if given.plot:
        print(*figure.draw(figure.lines(PAGE.read_text(encoding="utf-8")), given.plot), sep="\n")
        return
    os.environ.setdefault("JAX_PLATFORMS", {"cpu": "cpu", "gpu": "cuda,cpu"}[given.platform])
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the systems share a GPU
    workloads = chosen(given.only)
    if given.platform == "gpu":
        workloads = [workload for workload in by_importance() if workload in workloads]
    if given.ablate:
        workloads = [Ablation(workload) for workload in workloads if workload.passes]
    if given.list:
        print("\n".join(workload.name for workload in workloads))
        return
    if given.launches:
        show_launches(ready(workloads))
        return
    measure(ready(workloads), given)


def measure(workloads: Sequence[Workload], given: argparse.Namespace) -> None:
    """Time workloads, and print and keep the results as they come."""
    plan = PLANS[given.platform]
    said = {name: getattr(given, name) for name in ("threads", "repetitions", "seconds", "places")}
    plan = replace(plan, **{name: value for name, value in said.items() if value is not None})
    for package in absent(plan.systems):
        print(f"{package} is not installed and is left out", file=sys.stderr)
    order = [workload.name for workload in (*WORKLOADS, *map(Ablation, WORKLOADS))]
    results = table.load(given.json) if given.json else []
    for result in run(workloads, plan):
        print(table.markdown(table.DETAIL, table.detail(result)), flush=True)
        results = table.joined(results, [result], order)
        if given.json:
            table.save(results, given.json)
    print(table.markdown(table.SUMMARY, map(table.summary, results)))
    if given.write:
        PAGE.write_text(table.page(results, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
