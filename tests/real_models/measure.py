"""One model in netloop and onnxruntime."""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import netloop
import netloop.onnx
from tests.real_models.agreement import agrees, changed, errors, largest_noise, leaves
from tests.real_models.recipe import Inputs, load_inputs

LEVELS = onnxruntime.GraphOptimizationLevel


def runner(model: str | bytes, level: LEVELS = LEVELS.ORT_DISABLE_ALL) -> Callable[[Inputs], list[Any]]:
    """The model in onnxruntime, on one thread."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def changed_model(path: Path, chance: np.random.Generator) -> bytes:
    """The model with its weights changed by a unit in the last place."""
    model = onnx.load(path)
    for each in model.graph.initializer:
        if each.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE):
            each.CopyFrom(numpy_helper.from_array(changed(numpy_helper.to_array(each), chance), each.name))
    return model.SerializeToString()


class Peer:
    """onnxruntime: its outputs and its noise."""

    def __init__(self, path: Path) -> None:
        self.plain = runner(str(path))
        self.others = [runner(str(path), LEVELS.ORT_ENABLE_ALL)]
        for seed in (1, 2):
            with suppress(Exception):  # a changed model may be invalid, as one that resizes by a weight
                self.others.append(runner(changed_model(path, np.random.default_rng(seed))))

    def outputs_and_noise(self, inputs: Inputs) -> tuple[list[Any], list[float]]:
        """The outputs of a call, and the noise of each."""
        reference = self.plain(inputs)
        return reference, largest_noise(reference, [run(inputs) for run in self.others])


def compare(outputs: list[Any], reference: list[Any], noise: list[float]) -> dict[str, Any]:
    """The largest error and noise of the outputs, and whether all agree."""
    found = errors(outputs, reference)
    if len(found) != len(noise):
        return {"error": "number of outputs", "noise": 0.0, "agrees": False}
    expected = [leaf for each in reference for leaf in leaves(each)]
    good = all(map(agrees, found, noise, expected))
    return {"error": float(max(found, default=0)), "noise": float(max(noise, default=0)), "agrees": good}


def reason(failure: Exception) -> str:
    """The code of a finding and its first line, or the name of another exception."""
    text = str(failure).strip() or "no message"
    first = text.splitlines()[0]
    code = re.search(r"NL\d+", text)
    return f"{type(failure).__name__} {code[0] if code else ''}: {first}"[:300]


def measure(path: Path) -> dict[str, Any]:
    """Load and run one model at all of its sizes."""
    result: dict[str, Any] = {"state": "loads", "sizes": []}
    peer = Peer(path)
    sizes = load_inputs(path)
    began = time.process_time()
    try:
        network = netloop.onnx.load(path)
        result["layers"] = network.num_layers
        engine = netloop.compile(network)
    except Exception as failure:  # any failure is a result
        return {**result, "state": "fails to load", "reason": reason(failure)}
    loading = time.process_time() - began
    for inputs in sizes:
        reference, noise = peer.outputs_and_noise(inputs)
        began = time.process_time()
        try:
            outputs = list(engine(inputs).values())
        except Exception as failure:
            return {**result, "state": "fails to run", "reason": reason(failure)}
        if not result["sizes"]:
            result["seconds"] = round(loading + time.process_time() - began, 2)
        result["sizes"].append(compare(outputs, reference, noise))
    agreeing = all(each["agrees"] for each in result["sizes"])
    return {**result, "state": "agrees" if agreeing else "differs"}
