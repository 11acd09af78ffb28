"""The number of ONNX's tests that pass, by one runner for all: ``python -m tests.formats.onnx.rates NAME``.

Without a name it prints the table of ``docs/onnx.md``, with each installed backend in a process of its own. A test
passes if it runs and its outputs have the values, types and shapes that ONNX expects.
"""

import importlib.util
import json
import os
import subprocess
import sys
import unittest
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import onnx
from onnx.backend.base import Backend
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from tests.support.onnx_backend import Comparing

BACKENDS = {
    "netloop": ("tests.support.onnx_backend", "NetloopBackend"),
    "onnxruntime": ("onnxruntime.backend.backend", "OnnxRuntimeBackend"),
    "jaxonnxruntime": ("jaxonnxruntime.backend", "Backend"),
}
"""The backends, each by its module and class."""

GENEROUS = {
    "ALLOW_RELEASED_ONNX_OPSET_ONLY": "0",
    "JAX_ENABLE_X64": "1",
    "JAXORT_ONLY_ALLOW_INITIALIZERS_AS_STATIC_ARGS": "0",
}
"""The settings with which the others pass most tests."""

GROUPS = {
    "NodeModel": "operators",
    "SimpleModel": "simple models",
    "PyTorchConvertedModel": "models from PyTorch",
    "PyTorchOperatorModel": "operators from PyTorch",
}
"""The groups of tests, without the nine large models, which have no weights of their own."""

LOOPS = {"Loop", "Scan", "If", "SequenceMap", "LSTM", "GRU", "RNN"}
ALL, OF_LOOPS = "all", "of all: with loops or branches"


def operators(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, including those of graphs inside them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from operators(attribute.g)


def rows_of(group: str, model: onnx.ModelProto) -> Iterator[str]:
    """The rows of the table that a test belongs to."""
    yield GROUPS[group]
    yield ALL
    if any(node.op_type in LOOPS for node in operators(model.graph)):
        yield OF_LOOPS


def honest(backend: type[Backend]) -> type[Backend]:
    """The same backend, whose tests fail where it declares something to be unsupported."""

    class Honest(backend):
        @classmethod
        def prepare(cls, *given: Any, **options: Any) -> Any:
            try:
                return super().prepare(*given, **options)
            except BackendIsNotSupposedToImplementIt as error:
                raise unittest.SkipTest(str(error)) from error

    return Honest


def counted(name: str) -> dict[str, list[int]]:
    """The number of tests that pass, and of all tests, for each row of the table."""
    module, attribute = BACKENDS[name]
    runner: Any = Comparing(honest(getattr(importlib.import_module(module), attribute)), __name__)
    cases, passed, total = runner.test_cases, Counter[str](), Counter[str]()
    for group in GROUPS:
        for test, item in runner._test_items[group].items():
            if not test.endswith("_cpu"):
                continue
            result = unittest.TestResult()
            cases[f"OnnxBackend{group}Test"](test).run(result)
            rows = [*rows_of(group, item.proto[0])]
            total.update(rows)
            if result.wasSuccessful() and not result.skipped:
                passed.update(rows)
            else:
                print(test, file=sys.stderr)
    return {row: [passed[row], total[row]] for row in (*GROUPS.values(), ALL, OF_LOOPS)}


def counted_alone(name: str) -> dict[str, list[int]]:
    """The same numbers from a process of its own: ONNX makes the data of its tests once in a process, with warnings."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.formats.onnx.rates", name]
    done = subprocess.run(command, env={**os.environ, **GENEROUS}, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout.splitlines()[-1])


def table() -> str:
    """The table of all backends, as Markdown."""
    results: dict[str, dict[str, list[int]]] = {}
    for name, (module, _) in BACKENDS.items():
        if importlib.util.find_spec(module.partition(".")[0]) is not None:
            results[name] = counted_alone(name)
    totals = next(iter(results.values()))
    lines = [["tests", "number", *results]]
    lines += [
        [row, str(total), *(str(result[row][0]) for result in results.values())] for row, (_, total) in totals.items()
    ]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps(counted(sys.argv[1])) if sys.argv[1:] else table())
