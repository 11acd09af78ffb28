"""Running the models, one at a time, each in a process of its own."""

import json
import multiprocessing
import resource
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.real_models.measure import measure, measure_onnxruntime
from tests.real_models.openvino_peer import measure_converted
from tests.real_models.records import Records

MOST_MEMORY = 16 * 2**30
"""The address space of a process in bytes."""
PATIENCE = 20
"""The time in which a process must end, in its CPU time: other processes take theirs."""


Measure = Callable[[Path], dict[str, Any]]


def run_all(folder: Path, results: Records, chosen: list[str], *, converted: bool, seconds: int) -> None:
    """Run models of a folder in this order, and record the results."""
    made, measured = Records(folder / "made.json"), measure_converted if converted else measure
    for name in chosen:
        kept = {word: made[name][word] for word in ("source", "tool")}
        path = folder / f"{name}.onnx"
        result = {**kept, **run(measured, path, seconds)}
        results[name] = result if converted else {**result, "onnxruntime": run(measure_onnxruntime, path, seconds)}
        print(f"{name}: {results[name]}", flush=True)


def choose(folder: Path, sources: list[str], words: list[str], known: Records | None) -> list[str]:
    """The models that were made, of some sources in this order, with all words in their names, and not yet known."""
    made = Records(folder / "made.json")
    return [
        name
        for source in sources
        for name, record in made.items()
        if record["source"] == source
        and "bytes" in record
        and all(word in name for word in words)
        and (known is None or name not in known)
    ]


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
