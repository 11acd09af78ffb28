"""Suites of other projects that run with netloop in TensorRT's place: where their sources are, and how they run.

A suite is found by a path of its sources, runs in processes of its own, and has an outcome for each test: ``passed``,
``failed`` or ``skipped``.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.other_projects import logs, nvidia_samples

ROOT = Path(__file__).parents[2]
PLUGINS = Path(__file__).parent / "plugins"
"""Plugins of pytest for the suites, outside of this package: a suite may have a package of the same name."""

RUNNER, PATIENCE = nvidia_samples.RUNNER, nvidia_samples.PATIENCE
FAKED = "tests.other_projects.faked_device"
"""The module that runs scripts as on a machine with a GPU."""

Outcomes = dict[str, str]


@dataclass(frozen=True)
class Suite:
    """Tests or scripts of a public repository.

    Attributes:
        name: its name on the command line.
        title: its name on the page.
        source: the repository.
        marker: a path in the sources that no other repository has.
        packages: the packages that it needs.
    """

    name: str
    title: str
    source: str
    marker: str
    packages: Sequence[str] = ()

    def missing(self) -> str:
        """The packages that are not installed; empty if there are none."""
        return ", ".join(name for name in self.packages if find_spec(name) is None)

    def outcomes(self, sources: Path, options: Sequence[str] = (), runner: str = RUNNER) -> Iterator[Outcomes]:
        """The outcomes of the tests, in parts as they are there.

        Args:
            sources: the folder of the sources.
            options: options of pytest.
            runner: the module that runs scripts.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class TestSuite(Suite):
    """Tests that pytest runs, by default each file in a process of its own.

    Attributes:
        folder: the folder in which they run, from that of the sources.
        files: patterns of the files, from that folder.
        paths: folders of modules, from that of the sources.
        options: options of pytest.
        marks: expressions of marks, for each of which a file has a process.
        is_together: whether all files have one process.
        seconds: the time that a process may take.
        without: names of files that do not run.
    """

    __test__ = False
    folder: str = "."
    files: Sequence[str] = ()
    paths: Sequence[str] = (".",)
    options: Sequence[str] = ()
    marks: Sequence[str] = ("",)
    is_together: bool = False
    seconds: int = 600
    without: Sequence[str] = ()

    def outcomes(self, sources: Path, options: Sequence[str] = (), runner: str = RUNNER) -> Iterator[Outcomes]:
        folder = (sources / self.folder).resolve()
        paths = [path for pattern in self.files for path in sorted(folder.glob(pattern))]
        files = [str(path.relative_to(folder)) for path in paths if path.name not in self.without]
        for part in [files] if self.is_together else [[file] for file in files]:
            print(".", end="", file=sys.stderr, flush=True)
            for mark in self.marks:
                faked = ["-p", "faked_gpu"] if runner == FAKED else []
                yield self._outcomes_of(sources, folder, part, [*faked, *options, "-m", mark])

    def _outcomes_of(self, sources: Path, folder: Path, files: Sequence[str], options: Sequence[str]) -> Outcomes:
        paths = os.pathsep.join([str(ROOT), str(PLUGINS), *(str((sources / path).resolve()) for path in self.paths)])
        plugins = ["-p", "netloop.compat.pytest_plugin", "-p", "outcomes"]
        command = [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
            *plugins,
            *options,
            *self.options,
        ]
        with tempfile.TemporaryDirectory() as name:
            report = Path(name, "outcomes.json")
            named = {"PYTHONPATH": paths, "JAX_PLATFORMS": "cpu", "NETLOOP_OUTCOMES": str(report)}
            ended = _ended([*command, *files], folder, named, self.seconds)
            has_run = report.exists()
            outcomes = json.loads(report.read_text(encoding="utf-8")) if has_run else {}
        # a process that died has no test that failed: its files stand for those that did not run
        return outcomes if ended and has_run else {**outcomes, **dict.fromkeys(files, "failed")}


@dataclass(frozen=True)
class ScriptSuite(Suite):
    """Scripts of which each runs in a copy of its folder.

    Attributes:
        folder: the folder that has them, from that of the sources.
        tensorrt: the version of TensorRT that they are written for.
        seconds: the time that a script may take.
    """

    folder: str = "."
    tensorrt: int = 11
    seconds: int = 100

    def outcomes(self, sources: Path, options: Sequence[str] = (), runner: str = RUNNER) -> Iterator[Outcomes]:
        scripts = sources / self.folder
        for script in sorted(scripts.rglob("*.py")):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name, "copy")
                shutil.copytree(script.parent, folder)
                command = [sys.executable, "-m", runner, "--tensorrt", str(self.tensorrt), script.name]
                named = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
                passed = _ended(command, folder, named, self.seconds)
            yield {str(script.relative_to(scripts)): "passed" if passed else "failed"}


@dataclass(frozen=True)
class LoggedSuite(Suite):
    """Scripts that come with logs of their runs on a GPU: a case passes if it prints the numbers of its log.

    Attributes:
        folders: patterns of the folders that have a script and its log, from that of the sources.
        paths: folders of modules, from that of the sources.
        tensorrt: the version of TensorRT of the logs.
        seconds: the time that a script may take.
    """

    folders: Sequence[str] = ()
    paths: Sequence[str] = ()
    tensorrt: int = 11
    seconds: int = 300

    def outcomes(self, sources: Path, options: Sequence[str] = (), runner: str = RUNNER) -> Iterator[Outcomes]:
        paths = os.pathsep.join([str(ROOT), *(str((sources / path).resolve()) for path in self.paths)])
        for log in (log for pattern in self.folders for log in sorted(sources.glob(f"{pattern}/log-main.py.log"))):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name, "copy")
                shutil.copytree(log.parent, folder)
                command = [sys.executable, "-m", runner, "--tensorrt", str(self.tensorrt), "main.py"]
                printed = _printed(command, folder, {"PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}, self.seconds)
            ours = logs.cases(printed)
            yield {
                f"{log.parent.name}::{case}": "passed" if case in ours and logs.agree(ours[case], text) else "failed"
                for case, text in logs.cases(log.read_text(encoding="utf-8")).items()
            }


@dataclass(frozen=True)
class SampleSuite(Suite):
    """NVIDIA's samples for Python, with the models and pictures of ``nvidia_samples``."""

    def outcomes(self, sources: Path, options: Sequence[str] = (), runner: str = RUNNER) -> Iterator[Outcomes]:
        for name, sample in nvidia_samples.ALL.items():
            if not nvidia_samples.missing(sources, sample):
                yield {name: "passed" if nvidia_samples.passes(sources, sample, runner) else "failed"}


def _ended(command: Sequence[str], folder: Path, named: dict[str, str], seconds: int) -> bool:
    """Whether a process ends in time, with success or, if it is pytest, with tests or files that fail."""
    lines = None if os.environ.get("NETLOOP_SHOW") else subprocess.DEVNULL
    accepted = (0, 1, 2, 5) if "pytest" in command else (0,)
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=_environment() | named,
            stdout=lines,
            stderr=lines,
            timeout=PATIENCE * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return process.returncode in accepted


def _environment() -> dict[str, str]:
    """The environment of this process, but for what says that it is a worker of pytest: a suite has its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}


def _printed(command: Sequence[str], folder: Path, named: dict[str, str], seconds: int) -> str:
    """The output of a process, which is ended when its time is over."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        errors = None if os.environ.get("NETLOOP_SHOW") else subprocess.DEVNULL
        named = os.environ | named | {"PYTHONUNBUFFERED": "1"}
        try:
            limit = PATIENCE * seconds
            subprocess.run(command, cwd=folder, env=named, stdout=file, stderr=errors, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            pass
        file.seek(0)
        return file.read()


USES = Path(__file__).parent / "uses"
"""Tests of applications' modules, written for them here, because they have none that a model made anew could serve."""


def uses(name: str, title: str, source: str, marker: str, packages: Sequence[str] = (), **named: Any) -> TestSuite:
    """A suite of a file of such tests, with the version of TensorRT for which the application is written."""
    version = named.pop("tensorrt", 8)
    return TestSuite(
        name,
        title,
        source,
        marker,
        ("onnx", "onnxruntime", "torch", *packages),
        str(USES),
        [f"use_{name}.py"],
        options=["--tensorrt", str(version)],
        **named,
    )


CONVERTERS = (
    "abs", "cat", "cumsum", "embedding", "embedding_bag", "index", "matmul", "reshape", "select", "slice", "softmax",
    "split", "topk", "unsqueeze", "where",
)  # fmt: skip
"""The fifteen operators of PyTorch whose converters are tested."""

SUITES = (
    TestSuite(
        "polygraphy", "Polygraphy's backend of TensorRT", "NVIDIA/TensorRT", "tools/Polygraphy/tests/backend/trt",
        ("polygraphy", "torch", "onnx_graphsurgeon", "onnxruntime"), "tools/Polygraphy",
        [f"tests/backend/trt/test_{name}.py" for name in ("config", "loader", "profile", "runner", "util")],
        options=["-p", "lean_runtime", "--tensorrt", "10"], paths=(), marks=("serial", "not serial"),
    ),
    SampleSuite("samples", "NVIDIA's samples for Python", "NVIDIA/TensorRT", "samples/python", ("onnx",)),
    TestSuite(
        "onnx_tensorrt", "onnx-tensorrt's backend, by ONNX's tests", "onnx/onnx-tensorrt", "onnx_backend_test.py",
        ("onnx", "six", "tabulate"), files=["onnx_backend_test.py"],
        options=["--tensorrt", "10", "-k", "not RealModel"], seconds=1800,
    ),
    TestSuite(
        "torch2trt", "torch2trt", "NVIDIA-AI-IOT/torch2trt", "torch2trt/torch2trt.py",
        ("torch", "torchvision", "packaging"),
        files=["tests/converter_tests/test_*.py", "tests/feature_tests/test_*.py"],
        options=["-p", "older_export"], is_together=True, seconds=1800,
    ),
    TestSuite(
        "torch_tensorrt", "Torch-TensorRT's converters", "pytorch/TensorRT", "tests/py/dynamo/conversion",
        ("torch", "parameterized", "dllist", "expecttest", "packaging"), "tests/py/dynamo/conversion",
        [f"test_{name}_aten.py" for name in CONVERTERS], ["py"], is_together=True, seconds=1800,
    ),
    TestSuite(
        "model_connect", "TensorRT-Model-Connect", "NVIDIA/TensorRT-Model-Connect",
        "python/tensorrt_model_connect/families", ("torch", "transformers"),
        files=[
            "tests/builder/test_graph_*.py", "tests/builder/test_qwen_llama_native_kv_attention.py",
            "tests/builder/test_dynamic_batch_profile.py", "tests/builder/test_debug_runner*.py",
            "tests/builder/test_cache_state_machine.py", "tests/builder/test_lfm2_python_builder.py",
            "tests/builder/test_falcon_graph_ops.py", "tests/e2e/models/*/test_*_build_engine_integration.py",
        ],
        paths=["python"], is_together=True, seconds=1800,
    ),
    TestSuite(
        "tensorrt_llm", "TensorRT-LLM 0.5", "octoml/TensorRT-LLM-release", "tensorrt_llm/models/chatglm6b/model.py",
        ("torch", "parameterized", "polygraphy", "transformers", "lark", "einops"), "tests",
        ["functional/test_*.py", *(f"test_{name}.py" for name in (
            "builder", "debugging_api", "graph_rewriter", "layer", "mapping", "module", "precision_control",
            "session",
        ))],
        [".", "tests"], ["-p", "llm_libraries", "--tensorrt", "9"], is_together=True, seconds=1800,
    ),
    TestSuite(
        "tensorrt_llm_14", "TensorRT-LLM 0.14's functions", "StudyingShao/TensorRT-LLM", "tensorrt_llm/hlapi/llm.py",
        (
            *("torch", "parameterized", "polygraphy", "transformers", "accelerate", "sentencepiece", "datasets"),
            *("h5py", "lark", "pulp", "strenum"),
        ),
        "tests", ["functional/test_*.py"], [".", "tests"], ["-p", "llm_libraries", "--tensorrt", "10"],
        is_together=True, seconds=1800,
        without=[f"test_{name}.py" for name in (  # all of their tests need plugins that are not here, or several GPUs
            "gemm_swiglu", "low_latency_gemm", "mamba_conv1d", "moe", "nccl", "reduce_norm", "rg_lru", "selective_scan",
        )],
    ),
    uses(
        "mmdeploy", "mmdeploy's backend", "open-mmlab/mmdeploy", "mmdeploy/backend/tensorrt/wrapper.py",
        ("mmcv", "mmengine", "h5py"),
    ),
    uses(
        "streamdiffusion", "StreamDiffusion's engines", "cumulo-autumn/StreamDiffusion",
        "src/streamdiffusion/acceleration/tensorrt/utilities.py",
        ("polygraphy", "onnx_graphsurgeon", "diffusers"), paths=["src"],
    ),
    uses(
        "transformer_deploy", "transformer-deploy's engines", "ELS-RD/transformer-deploy",
        "src/transformer_deploy/backends/trt_utils.py", paths=["src"],
    ),
    uses(
        "nanosam", "NanoSAM's predictor", "NVIDIA-AI-IOT/nanosam", "nanosam/utils/predictor.py",
        ("torch2trt", "PIL"), tensorrt=11,
    ),
    uses(
        "jetson_dla", "The tutorial for a Jetson's DLA", "NVIDIA-AI-IOT/jetson_dla_tutorial", "modify.py",
        ("torchvision",),
    ),
    uses(
        "yolo_series", "TensorRT-For-YOLO-Series", "Linaom1214/TensorRT-For-YOLO-Series", "image_batch.py", ("PIL",),
    ),
    uses(
        "tacotron2", "Tacotron 2, with a loop as its decoder", "NVIDIA/TensorRT",
        "demo/Tacotron2/tensorrt/generate_decoder.py",
        ("onnx_graphsurgeon", "librosa", "inflect", "unidecode", "matplotlib"),
        paths=["demo/Tacotron2", "demo/Tacotron2/tensorrt"],
    ),
    uses(
        "paddle_detection", "PaddleDetection's script for engines", "PaddlePaddle/PaddleDetection",
        "deploy/third_engine/demo_onnx_trt/trt_infer.py", ("cv2", "yaml"),
        paths=["deploy/third_engine/demo_onnx_trt"],
    ),
    uses("yolov8_tensorrt", "YOLOv8-TensorRT's engines", "triple-Mu/YOLOv8-TensorRT", "models/cudart_api.py"),
    uses("tensorrtx", "tensorrtx's LeNet and line", "wang-xinyu/tensorrtx", "lenet/lenet.py", tensorrt=7),
    uses("tensorrt_utils", "tensorrt-utils' scripts", "rmccorm4/tensorrt-utils", "network/dump_network.py", ("PIL",)),
    uses(
        "ultralytics", "Ultralytics' export and backend", "ultralytics/ultralytics",
        "ultralytics/nn/backends/tensorrt.py", ("ultralytics",), tensorrt=11,
    ),
    LoggedSuite(
        "cookbook", "The cookbook's layers, by the numbers of TensorRT 10.16",
        "NVIDIA/trt-samples-for-hackathon-cn", "cookbook/tensorrt_cookbook",
        ("torch", "nvtx", "onnx_graphsurgeon", "onnxruntime", "polygraphy"),
        folders=["cookbook/02-API/Layer/*"], paths=["cookbook"], tensorrt=10,
    ),
    TestSuite(
        "cookbook_networks", "The cookbook's serializer of networks", "NVIDIA/trt-samples-for-hackathon-cn",
        "cookbook/tests/NetworkSerialization", ("torch", "nvtx", "onnx_graphsurgeon", "onnxruntime", "polygraphy"),
        "cookbook/tests/NetworkSerialization", ["test_*.py"], ["cookbook"], ["--tensorrt", "10"], is_together=True,
        seconds=1800,
    ),
    ScriptSuite(
        "cookbook8", "The cookbook's scripts for TensorRT 8.6", "NVIDIA/trt-samples-for-hackathon-cn",
        "cookbook/02-API/Layer/RNNv2Layer", folder="cookbook/02-API", tensorrt=8,
    ),
)  # fmt: skip
"""All suites, in the order of the page."""
