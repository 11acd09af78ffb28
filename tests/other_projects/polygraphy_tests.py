"""Run Polygraphy's own tests with netloop in TensorRT's place, on a machine without a GPU.

``python tests/other_projects/polygraphy_tests.py FOLDER`` takes a folder with the sources of the public repository
NVIDIA/TensorRT, of which it reads ``tools/Polygraphy/tests``, and needs the packages polygraphy, torch,
onnx-graphsurgeon and pytest before 9. It prints the failures and their number. Each file runs in a process of its own,
in which the name ``tensorrt`` is ``netloop.tensorrt``, CUDA's memory is host memory, and the library of TensorRT's lean
runtime is an empty file. As in Polygraphy's Makefile, tests marked ``serial`` run apart from the others.
"""

import collections
import ctypes
import ctypes.util
import importlib
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TESTS = Path("tools", "Polygraphy", "tests")
FILES = [f"backend/trt/test_{name}.py" for name in ("config", "loader", "profile", "runner", "util")]
PACKAGES = ("polygraphy", "torch", "onnx_graphsurgeon", "onnxruntime", "pytest")


class HostMemory:
    """What Polygraphy calls of CUDA's runtime, on host memory and at once."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}

    def create_stream(self) -> int:
        return 1

    def stream_synchronize(self, ptr: int) -> None:
        """Do nothing: nothing runs later."""

    destroy_stream = stream_synchronize

    def malloc(self, nbytes: int) -> int:
        memory = ctypes.create_string_buffer(max(1, nbytes))
        self._kept[ctypes.addressof(memory)] = memory
        return ctypes.addressof(memory)

    def free(self, ptr: int) -> None:
        self._kept.pop(ptr, None)

    def memcpy(self, dst: int, src: int, nbytes: int, kind: Any, stream_ptr: int | None = None) -> None:
        ctypes.memmove(dst, src, nbytes)


def add_library(name: str, folder: str) -> None:
    """Put an empty library into a folder where ``ctypes.util`` finds it."""
    path, find = Path(folder, f"lib{name}.so"), ctypes.util.find_library
    path.touch()
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([folder, os.environ.get("LD_LIBRARY_PATH", "")])
    ctypes.util.find_library = lambda wanted: path.name if wanted == name else find(wanted)


class Outcomes:
    """A plugin of pytest that keeps the outcome of each test."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome != "passed" or report.when == "call":
            name = report.nodeid.rpartition("/")[2]
            self.found[name] = "failed" if "failed" in (report.outcome, self.found.get(name)) else report.outcome


def run_one(sources: Path, file: str, marked: str, report: Path) -> None:
    """Run the tests of one file that are marked in this process, and write the outcomes as JSON."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.modules["tensorrt"] = importlib.import_module("netloop.tensorrt")
    vars(importlib.import_module("polygraphy.cuda.cuda"))["G_CUDA"] = HostMemory()
    add_library("nvinfer_lean", str(report.parent))
    outcomes = Outcomes()
    os.chdir((sources / TESTS).parent)
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", "-m", marked]
    importlib.import_module("pytest").main([*options, str(Path("tests", file))], plugins=[outcomes])
    report.write_text(json.dumps(outcomes.found), encoding="utf-8")


def run(sources: Path, shown: Any = subprocess.DEVNULL) -> dict[str, str]:
    """The outcome of each test, by its file and name."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for file, marked in itertools.product(FILES, ("serial", "not serial")):
            report = Path(folder, "report.json")
            command = [sys.executable, __file__, str(sources.resolve()), file, marked, str(report)]
            subprocess.run(command, stdout=shown, stderr=subprocess.STDOUT, check=True)
            found.update(json.loads(report.read_text(encoding="utf-8")))
    return found


def missing(sources: Path | None) -> str:
    """What is not there of what the tests need; "" if they can run."""
    if sources is None or not (sources / TESTS).is_dir():
        return f"no folder {TESTS} in {sources}"
    lacking = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"no packages {', '.join(lacking)}" if lacking else ""


def main(arguments: list[str]) -> int:
    """Run all files, or with four arguments a part of one of them in this process."""
    if len(arguments) == 4:
        run_one(Path(arguments[0]), arguments[1], arguments[2], Path(arguments[3]))
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
