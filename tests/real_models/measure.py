"""One model in netloop and onnxruntime."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import netloop
import netloop.onnx
from tests.real_models.agreement import agrees, changed, errors, largest_noise, leaves
from tests.real_models.costs import Call, Follow, same_inputs, use
from tests.real_models.feedback import follow
from tests.real_models.recipe import Inputs, Sizes, load_inputs
from tests.real_models.records import one_line

LEVELS = onnxruntime.GraphOptimizationLevel
FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)


class Expected(NamedTuple):
    """The outputs of another runtime, the noise of each, and those of a second one that may be right if it differs."""

    outputs: list[Any]
    noise: list[float]
    second: list[Any] | None = None


def runner(model: str | bytes, level: LEVELS = LEVELS.ORT_DISABLE_ALL) -> Callable[[Inputs], list[Any]]:
    """The model in onnxruntime, on one thread. An output that it lists twice is one output."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    names = list(dict.fromkeys(output.name for output in session.get_outputs()))
    return lambda inputs: session.run(names, inputs)


def changed_model(path: Path, chance: np.random.Generator) -> bytes:
    """The model with its weights changed by a unit in the last place."""
    model = onnx.load(path)
    for initializer in model.graph.initializer:
        if initializer.data_type in FLOATS:
            initializer.CopyFrom(
                numpy_helper.from_array(changed(numpy_helper.to_array(initializer), chance), initializer.name)
            )
    return model.SerializeToString()


class OnnxRuntime:
    """onnxruntime's outputs and its noise."""

    def __init__(self, path: Path) -> None:
        self.plain = runner(str(path))
        self.others = [runner(str(path), LEVELS.ORT_ENABLE_ALL)]
        for seed in (1, 2):
            with suppress(Exception):  # a changed model may be invalid, as one that resizes by a weight
                self.others.append(runner(changed_model(path, np.random.default_rng(seed))))

    def __call__(self, inputs: Inputs) -> Expected:
        reference = self.plain(inputs)
        return Expected(reference, largest_noise(reference, [run(inputs) for run in self.others]))


def compare(outputs: list[Any], expected: Expected) -> dict[str, Any]:
    """The largest error and noise of the outputs, and whether all agree; the error from the second runtime as well."""
    found, good = judged(outputs, expected.outputs, expected.noise)
    result = {"error": found, "noise": max(expected.noise, default=0.0), "agrees": good}
    if expected.second is None:
        return result
    found, good = judged(outputs, expected.second, expected.noise)
    return {**result, "second_error": found, "agrees_with_second": good}


def judged(outputs: list[Any], expected: list[Any], noise: list[float]) -> tuple[float, bool]:
    """The largest error of the outputs, and whether all agree."""
    found = errors(outputs, expected)
    arrays = [leaf for value in expected for leaf in leaves(value)]
    return max(found, default=0.0), len(found) == len(arrays) and all(map(agrees, found, noise, arrays))


def measure(path: Path) -> dict[str, Any]:
    """Load and run a model at all of its sizes."""
    return measured(lambda: netloop.onnx.load(path), load_inputs(path), lambda: OnnxRuntime(path), follow(path))


def measure_onnxruntime(path: Path) -> dict[str, Any]:
    """What onnxruntime takes for a model, with its optimizer."""
    costs: dict[str, Any] = {}
    use(lambda: runner(str(path), LEVELS.ORT_ENABLE_ALL), load_inputs(path), costs)
    del costs["state"]
    return costs


def measured(
    load: Callable[[], netloop.INetworkDefinition],
    sizes: Sizes,
    peer: Callable[[], Callable[[Inputs], Expected]],
    follow: Follow = same_inputs,
) -> dict[str, Any]:
    """Load a network, run it at all sizes and compare it with another runtime, which starts last."""
    result: dict[str, Any] = {"state": "does not load", "sizes": []}

    def start() -> Call:
        network = load()
        result["layers"] = network.num_layers
        engine = netloop.compile(network)
        return lambda inputs: list(engine(inputs).values())

    try:
        with programs_counted(result):
            outputs = use(start, sizes, result, follow)
    except Exception as failure:  # any failure is a result
        return {**result, "reason": one_line(failure)}
    expected = peer()
    result["sizes"] = [compare(*pair) for pair in zip(outputs, map(expected, sizes), strict=True)]
    if all(value["agrees"] for value in result["sizes"]):
        return {**result, "state": "agrees"}
    with_second = all(value.get("agrees_with_second") for value in result["sizes"])
    return {**result, "state": "agrees with onnxruntime alone" if with_second else "differs"}


@contextmanager
def programs_counted(result: dict[str, Any]) -> Iterator[None]:
    """Count ``programs``, those that XLA compiles inside."""
    result["programs"] = 0

    def count(event: str, _: float, **__: Any) -> None:
        result["programs"] += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(count)
