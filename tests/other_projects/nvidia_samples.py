"""Run samples of NVIDIA unchanged, with netloop in TensorRT's place, on a machine without a GPU.

They are in ``samples/python`` of the public repository NVIDIA/TensorRT, and ``tests.other_projects.tensorrt_code`` runs
them. The models and pictures that they would download are made here, of the names and shapes that the scripts ask for.
The scripts check their results themselves.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SAMPLES = Path("samples", "python")
ROOT = Path(__file__).parents[2]
RUNNER = "netloop.compat"
"""The module that runs scripts."""

PATIENCE = float(os.environ.get("NETLOOP_PATIENCE", "1"))
"""How many times as long as on an idle machine a process may take."""

SECONDS = PATIENCE * 300


class Sample(NamedTuple):
    """A script, or scripts that run one after the other.

    Attributes:
        scripts: the paths from ``samples/python``, with arguments.
        prints: a regular expression that what the last one prints holds if all is well.
        prepare: makes the files that it needs in the folder where it runs.
        needs: packages that it needs, in addition to onnx.
    """

    scripts: Sequence[Sequence[str]]
    prints: str
    prepare: Callable[[Path], None] = lambda folder: None
    needs: Sequence[str] = ()


# ---------------------------------------------------------------------------- models and pictures


PICTURES = {"binoculars.jpeg": (200, 30, 30), "reflex_camera.jpeg": (30, 200, 30), "tabby_tiger_cat.jpg": (30, 30, 200)}
"""Pictures of one colour each, by the names of what they are said to show."""


def classifier(folder: Path) -> None:
    """Three pictures, their labels, and a model with a convolution that knows them apart."""
    onnx, image = _module("onnx"), _module("PIL.Image")
    home = folder / "resnet50"
    home.mkdir()
    for name, colour in PICTURES.items():
        image.new("RGB", (300, 260), colour).save(home / name)
    (home / "class_labels.txt").write_text("\n".join(Path(name).stem.replace("_", " ") for name in PICTURES))
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        resnet50 (float[1, 3, 224, 224] "gpu_0/data_0") => (float[1, 3] "gpu_0/softmax_1")
        {
            maps = Conv <strides = [4, 4]> ("gpu_0/data_0", kernel, bias)
            above = Relu (maps)
            mean = GlobalAveragePool (above)
            flat = Flatten (mean)
            "gpu_0/softmax_1" = Softmax (flat)
        }
    """
    kernel = np.zeros((3, 3, 16, 16), np.float32)
    kernel[range(3), range(3)] = 1 / 256
    _save(onnx.parser.parse_model(text), folder / "resnet50" / "ResNet50.onnx", kernel=kernel, bias=np.full(3, 2.0))


CONTEXT = "a quick brown fox jumps over the lazy dog ."
SPLITTING = """
class data:
    def find(name):
        return name

def word_tokenize(text):
    return text.replace(".", " .").replace("?", " ?").split()
"""
"""The two functions of the package nltk that the sample calls; nltk itself downloads its tables."""


def question_answering(folder: Path) -> None:
    """A model that finds the word brown by the weights that the sample sets, and another word by ones."""
    onnx, words = _module("onnx"), CONTEXT.split()
    (folder / "nltk.py").write_text(SPLITTING)
    for number in range(4, 8):
        table = {"cats_strings": words, "cats_int64s": [*range(1, len(words) + 1)], "default_int64": 0}
        (folder / f"CategoryMapper_{number}.json").write_text(json.dumps(table))
    weights = np.random.default_rng(0).uniform(0, 1, (len(words) + 1, 2)).astype(np.float32)
    weights[words.index("brown") + 1] = 9
    bias = np.float32([0.5, -0.5])
    np.save(folder / "W_0.npy", weights)
    np.save(folder / "Parameter576_B_0.npy", bias)
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        bidaf (int32[c, 1] CategoryMapper_4, int32[c, 1, 1, 16] CategoryMapper_5,
               int32[q, 1] CategoryMapper_6, int32[q, 1, 1, 16] CategoryMapper_7)
        => (int64[1] start_pos, int64[1] end_pos)
        {
            words = Gather (W_0, CategoryMapper_4)
            asked = Gather (W_0, CategoryMapper_6)
            question = ReduceMean <axes = [0], keepdims = 1> (asked)
            letters = Cast <to = 1> (CategoryMapper_5)
            of_word = ReduceMean <axes = [2, 3], keepdims = 0> (letters)
            ignored = Mul (of_word, none)
            narrow = Unsqueeze (ignored, last)
            both = Add (words, question)
            shifted = Add (both, Parameter576_B_0)
            scores = Add (shifted, narrow)
            start, end = Split <axis = 2> (scores)
            start_flat = Reshape (start, row)
            end_flat = Reshape (end, row)
            start_pos = ArgMax <axis = 1, keepdims = 0> (start_flat)
            end_pos = ArgMax <axis = 1, keepdims = 0> (end_flat)
        }
    """
    constants = {"W_0": weights, "Parameter576_B_0": bias, "none": np.float32(0)}
    numbers = {"last": np.int64([2]), "row": np.int64([1, -1])}
    _save(onnx.parser.parse_model(text), folder / "bidaf-modified.onnx", **constants, **numbers)


DIGITS = """
import numpy, torch

SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]
PLACES = {"a": (4, 6, 8, 20), "b": (4, 14, 18, 20), "c": (14, 24, 18, 20), "d": (22, 24, 8, 20),
          "e": (14, 24, 8, 10), "f": (4, 14, 8, 10), "g": (13, 15, 8, 20)}

def picture(digit, random):
    image = random.uniform(0, 0.2, (28, 28)).astype(numpy.float32)
    for segment in SEGMENTS[digit]:
        top, bottom, left, right = PLACES[segment]
        image[top:bottom, left:right] += 0.8
    return image

class transforms:
    Compose, ToTensor = list, type(None)
    Normalize = staticmethod(lambda mean, deviation: (mean[0], deviation[0]))

class datasets:
    @staticmethod
    def MNIST(folder, train, download=False, transform=()):
        random, (mean, deviation) = numpy.random.default_rng(int(train)), transform[-1]
        digits = random.integers(0, 10, 6400 if train else 400)
        images = numpy.stack([picture(each, random) for each in digits])[:, None]
        return torch.utils.data.TensorDataset(torch.from_numpy((images - mean) / deviation), torch.from_numpy(digits))
"""
"""The parts of torchvision that the sample calls, with digits of seven segments instead of a download."""


def digits(folder: Path) -> None:
    """A torchvision that gives pictures of digits."""
    (folder / "torchvision.py").write_text(DIGITS)


def _module(name: str) -> Any:
    return __import__(name, fromlist=["_"])


def _save(model: Any, path: Path, **constants: Any) -> None:
    onnx = _module("onnx")
    for name, value in constants.items():
        array = np.asarray(value)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.checker.check_model(model)
    onnx.save(model, path)


# ---------------------------------------------------------------------------- samples


PICTURED = ["-d", "."]
REFIT = "engine_refit_onnx_bidaf/build_and_refit_engine.py"

ALL = {
    "introductory_parser_samples": Sample(
        [["introductory_parser_samples/onnx_resnet50.py", *PICTURED]], "Correctly recognized", classifier, ["PIL"]
    ),
    "simple_progress_monitor": Sample(
        [["simple_progress_monitor/simple_progress_monitor.py", *PICTURED]], "Correctly recognized", classifier, ["PIL"]
    ),
    "sample_weight_stripping": Sample(
        [
            ["sample_weight_stripping/build_engines.py", *PICTURED],
            ["sample_weight_stripping/refit_engine_and_infer.py", *PICTURED],
        ],
        "Refitted stripped engine correctly recognized",
        classifier,
        ["PIL"],
    ),
    "engine_refit_onnx_bidaf": Sample([[REFIT]], "Passed", question_answering),
    "engine_refit_onnx_bidaf, weights on the host": Sample([[REFIT, "-l", "CPU"]], "Passed", question_answering),
    "stream_writer": Sample(
        [["stream_writer/build.py"]], "Engine deserialized successfully", needs=["polygraphy", "onnx_graphsurgeon"]
    ),
    "network_api_pytorch_mnist": Sample(
        [["network_api_pytorch_mnist/sample.py"]], r"Test Case: (\d)\nPrediction: \1", digits, ["torch"]
    ),
    "2_construct_network_with_layer_apis": Sample(
        [["refactored/2_construct_network_with_layer_apis/main.ipynb"]],
        "Notebook executed successfully",
        needs=["polygraphy"],
    ),
}
"""The samples that need no kernel of CUDA's, and no package beyond those of the tests."""


def missing(sources: Path | None, sample: Sample) -> str:
    """Why a sample cannot run here; empty if it can."""
    if sources is None or not (sources / SAMPLES).is_dir():
        return "there are no sources of NVIDIA/TensorRT"
    absent = [need for need in ("onnx", *sample.needs) if find_spec(need) is None]
    return f"{' and '.join(absent)} is not installed" if absent else ""


def run(sources: Path, sample: Sample, runner: str = RUNNER) -> subprocess.CompletedProcess[str]:
    """Run a sample; return the last script that ran, which is the first that failed if one did."""
    with tempfile.TemporaryDirectory() as name:
        sample.prepare(Path(name))
        paths = os.pathsep.join([str(ROOT), name])
        for script, *arguments in sample.scripts:
            command = ["-m", runner, str((sources / SAMPLES / script).resolve()), *arguments]
            done = subprocess.run(
                [sys.executable, *command], cwd=name, env=os.environ | {"PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"},
                capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
            if done.returncode:
                break
    return done


def passes(sources: Path, sample: Sample, runner: str = RUNNER) -> bool:
    """Whether a sample ends, and prints what it prints if all is well."""
    try:
        process = run(sources, sample, runner)
    except subprocess.TimeoutExpired:
        return False
    return process.returncode == 0 and re.search(sample.prints, process.stdout) is not None
