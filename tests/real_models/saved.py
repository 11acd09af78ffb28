"""One model, saved by netloop in the format of another runtime, and run there."""

from pathlib import Path
from typing import Any

import netloop
import netloop.onnx
from netloop.peers import peer
from tests.real_models.measure import Expected, OnnxRuntime, compare
from tests.real_models.recipe import load_inputs

RUNS = 2
"""How often each size is called, because runtimes keep memory from call to call."""


def measure_saved(path: Path, runtime: str) -> list[dict[str, Any]]:
    """Load a model, save it, and compare what the runtime computes from that file with an engine, in each run.

    The noise is that of onnxruntime with the model itself.
    """
    network = netloop.onnx.load(path)
    engine, other, original = netloop.compile(network), peer(runtime, network), OnnxRuntime(path)
    results: list[dict[str, Any]] = []
    for inputs in load_inputs(path):
        expected = Expected(list(engine(inputs).values()), original(inputs).noise)
        results += [compare(list(other(inputs).values()), expected) for _ in range(RUNS)]
    return results
