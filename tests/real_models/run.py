"""Running the models, one at a time, each in a process of its own."""

import json
import multiprocessing
import resource
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.real_models.measure import measure
from tests.real_models.openvino_peer import measure_converted
from tests.real_models.records import Records

MOST_MEMORY = 16 * 2**30
"""The address space of a process in bytes."""
PATIENCE = 20
"""The time in which a process must end, in its CPU time: other processes take theirs."""


Measure = Callable[[Path], dict[str, Any]]


def run_all(folder: Path, results: Records, words: list[str], *, converted: bool, seconds: int, again: bool) -> None:
    """Run the models of a folder that have no result yet, and record the results."""
    measured = measure_converted if converted else measure
    for name, record in Records(folder / "made.json").items():
        if "bytes" not in record or (name in results and not again) or not all(word in name for word in words):
            continue
        kept = {each: record[each] for each in ("source", "tool")}
        results[name] = {**kept, **run(measured, folder / f"{name}.onnx", seconds)}
        print(f"{name}: {results[name]}", flush=True)


def run(measured: Measure, path: Path, seconds: int) -> dict[str, Any]:
    """The result of one model, in a fork: what the imports take is spent once."""
    answer = path.with_suffix(".result.json")
    answer.unlink(missing_ok=True)
    process = multiprocessing.get_context("fork").Process(target=_in_child, args=(measured, path, seconds, answer))
    process.start()
    process.join(PATIENCE * seconds)
    process.kill()
    if answer.exists():
        return json.loads(answer.read_text(encoding="utf-8"))
    late = process.exitcode in (None, -signal.SIGXCPU, -signal.SIGKILL)
    return {"state": "takes too long" if late else "ends the process", "sizes": [], "reason": f"{process.exitcode}"}


def _in_child(measured: Measure, path: Path, seconds: int, answer: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    warnings.simplefilter("ignore")
    answer.write_text(json.dumps(measured(path)), encoding="utf-8")
