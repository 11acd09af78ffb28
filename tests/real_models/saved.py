"""One model, saved by netloop in the format of another runtime, and run there."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import netloop
import netloop.onnx
from netloop.peers import peer
from tests.real_models.measure import Expected, OnnxRuntime, compare
from tests.real_models.recipe import load_inputs

RUNS = 2
"""How often each size is called, because runtimes keep memory from call to call."""


def measure_saved(path: Path, runtimes: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Load a model, save it for runtimes, and compare what these compute from the files with an engine, in each run.

    The noise is that of onnxruntime with the model itself.
    """
    network = netloop.onnx.load(path)
    engine, original = netloop.compile(network), OnnxRuntime(path)
    peers = {runtime: peer(runtime, network) for runtime in runtimes}
    results: dict[str, list[dict[str, Any]]] = {runtime: [] for runtime in peers}
    for inputs in load_inputs(path):
        expected = Expected(list(engine(inputs).values()), original(inputs).noise)
        for runtime, run in peers.items():
            results[runtime] += [compare(list(run(inputs).values()), expected) for _ in range(RUNS)]
    return results
