"""Run torch2trt's own tests with netloop in TensorRT's place, on a machine without a GPU.

``python tests/other_projects/torch2trt_tests.py FOLDER`` takes a folder with the sources of the public repository
NVIDIA-AI-IOT/torch2trt, and needs torch, torchvision, onnx_graphsurgeon and pytest before 9. It prints the failures and
their number. The tests run in a process of their own, in which the name ``tensorrt`` is ``netloop.tensorrt``, and what
PyTorch is asked to put on a GPU stays in the host's memory.
"""

import collections
import functools
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from netloop.tools.compat.torch_device import on_host

FOLDERS = ["tests/converter_tests", "tests/feature_tests"]
PACKAGES = ("torch", "torchvision", "onnx_graphsurgeon", "packaging", "pytest")


class Outcomes:
    """A plugin of pytest that keeps the outcome of each test."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome != "passed" or report.when == "call":
            name = report.nodeid.rpartition("/")[2]
            self.found[name] = "failed" if "failed" in (report.outcome, self.found.get(name)) else report.outcome


def stand_in(torch: Any) -> None:
    """Put functions that stay on the host in the place of those that need a GPU."""
    copy, recent = torch.Tensor.contiguous, collections.deque[Any](maxlen=100)

    def contiguous(self: Any, *given: Any, **named: Any) -> Any:
        recent.append(copy(self, *given, **named))
        return recent[-1]

    # torch2trt keeps only the address of a copy, whose memory the allocator of a GPU does not give back at once
    torch.Tensor.contiguous = contiguous
    # the exporter for which torch2trt was written
    torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_, **__: self
    stream = types.SimpleNamespace(cuda_stream=1, synchronize=lambda: None)
    torch.cuda.current_stream = lambda *_: stream
    torch.cuda.synchronize = lambda *_: None


def run_tests(sources: Path, report: Path) -> None:
    """Run the tests in this process, and write the outcomes as JSON."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.modules["tensorrt"] = importlib.import_module("netloop.tensorrt")
    sys.path.insert(0, str(sources))
    torch = importlib.import_module("torch")
    stand_in(torch)
    torch.manual_seed(0)
    outcomes = Outcomes()
    os.chdir(sources)
    with on_host(torch):
        options = ["-q", "--tb=short", "-p", "no:cacheprovider", *FOLDERS]
        importlib.import_module("pytest").main(options, plugins=[outcomes])
    report.write_text(json.dumps(outcomes.found), encoding="utf-8")


def run(sources: Path, shown: Any = subprocess.DEVNULL) -> dict[str, str]:
    """The outcome of each test, by its file and name."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, __file__, str(sources.resolve()), str(report)]
        subprocess.run(command, stdout=shown, stderr=subprocess.STDOUT, check=True)
        return json.loads(report.read_text(encoding="utf-8"))


def missing(sources: Path | None) -> str:
    """What is not there of what the tests need; "" if they can run."""
    if sources is None or not (sources / FOLDERS[0]).is_dir():
        return f"no folder {FOLDERS[0]} in {sources}"
    lacking = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"no packages {', '.join(lacking)}" if lacking else ""


def main(arguments: list[str]) -> int:
    """Run all tests, or with a second argument in this process."""
    if len(arguments) == 2:
        run_tests(Path(arguments[0]), Path(arguments[1]))
        return 0
    sources = Path(arguments[0]) if arguments else None
    if missing(sources) or sources is None:
        print(f"skipped: {missing(sources)}")
        return 0
    found = run(sources, None)
    print(*(name for name, outcome in found.items() if outcome == "failed"), sep="\n")
    print(", ".join(f"{count} {outcome}" for outcome, count in collections.Counter(found.values()).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
