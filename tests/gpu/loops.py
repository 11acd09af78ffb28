"""The time of loops on this device, netloop's and that of an expert's JAX: a line of JSON for each, as it is known.

    python -m tests.gpu.loops --results loops.jsonl                # the loops of benchmarks/, in the order of interest
    python -m tests.gpu.loops --only W1 --only "W4 " --samples 5

A line has the workload, the system, the milliseconds of a call (median, fastest and slowest of the samples), the
seconds of the first call, and the largest difference from the first system's results, relative to their largest number.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tests.gpu.stand_ins import without_onnx

without_onnx()

from benchmarks.systems import InJax  # noqa: E402 (after the stand-in)
from benchmarks.workload import Arrays, Workload  # noqa: E402
from benchmarks.workloads import by_importance  # noqa: E402

LOOPS = "W1", "W4", "W8", "W2", "W6", "W9", "W7", "W5", "W3"
"""The beginnings of the names of loops, the ones of most interest first."""
SECONDS = 0.5
"""The time after which a system gets no more samples than the least."""
FEWEST = 3


def measured(run: Callable[[], Mapping[str, Any]], samples: int) -> Iterator[float]:
    """The seconds of calls: at least a few, then no more than fit."""
    began = time.perf_counter()
    for number in range(samples):
        before = time.perf_counter()
        if number >= FEWEST and before - began > SECONDS:
            return
        run()
        yield time.perf_counter() - before


def results(workload: Workload, samples: int) -> Iterator[dict[str, Any]]:
    """A line for each system that solves a workload in JAX."""
    system, expected = InJax(), Arrays()
    for variant in (name for name in system.variants(workload) if name != "idiomatic"):
        line: dict[str, Any] = {"workload": workload.name, "system": variant, "device": jax.devices()[0].device_kind}
        try:
            began = time.perf_counter()
            run = system.make(workload, variant)
            outputs = system.results(run())
            line["first call"] = round(time.perf_counter() - began, 3)
            times = sorted(1e3 * seconds for seconds in measured(run, samples))
            line.update(median=statistics.median(times), fastest=times[0], slowest=times[-1], samples=len(times))
            expected = expected or outputs
            line["difference"] = difference(outputs, expected)
        except Exception as error:  # the other systems and workloads go on
            line["error"] = f"{type(error).__name__}: {error}"[:500]
        yield line


def difference(outputs: Arrays, expected: Arrays) -> float:
    """The largest difference of the results, relative to the largest number."""
    differences = [0.0]
    for name in outputs.keys() & expected.keys():
        wanted = expected[name].astype(np.float64)
        largest = max(1e-30, float(np.max(np.abs(wanted), initial=0)))
        differences.append(float(np.max(np.abs(outputs[name].astype(np.float64) - wanted), initial=0)) / largest)
    return max(differences)


def main() -> int:
    """Measure, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.loops")
    parser.add_argument("--only", action="append", help="the beginning of the names of workloads; may be repeated")
    parser.add_argument("--samples", type=int, default=30, help="the most samples of each system (30)")
    parser.add_argument("--results", type=Path, help="the file to which the lines are added")
    given = parser.parse_args()
    failed = False
    for workload in by_importance(given.only or LOOPS):
        for line in results(workload, given.samples):
            failed |= "error" in line
            print(json.dumps(line), flush=True)
            if given.results:
                with given.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
