"""Models of each kind: one line loads each, and it computes what onnxruntime does.

Each is skipped where a package that makes it is not installed.
"""

from pathlib import Path

import pytest

from tests.real_models.measure import measure
from tests.real_models.recipe import Recipe, save_inputs
from tests.real_models.sources import NAMES, packages

SHIPPED = [name for name in packages.MODELS if name.startswith(("silero", "ppocr"))]
DETECTOR, LLAMA, BERT = (
    "tv_fasterrcnn_mobilenet_v3_large_fpn_script",
    "hf_llama_cache_script",
    "hf_bert_classifier_script",
)
MADE = {
    DETECTOR: "torchvision_models",
    f"ort_4bits_qoperator_{LLAMA}": "onnxruntime_tools",
    "ort_4bits_qdq_hf_llama_cache": "onnxruntime_tools",
    f"ort_fused_{BERT}": "onnxruntime_tools",
}
"""The sources of some models."""
LONG = {DETECTOR, "ort_4bits_qdq_hf_llama_cache"}
BASES = {LLAMA: "decoder_models", "hf_llama_cache": "decoder_models", BERT: "language_models"}

pytestmark = pytest.mark.filterwarnings("ignore")  # those of exporters


def made(folder: Path, recipe: Recipe) -> Path:
    """The file of a model, with its inputs."""
    if recipe.base:
        made(folder, recipe_of(BASES[recipe.base], recipe.base))
    path = folder / f"{recipe.name}.onnx"
    save_inputs(path, recipe.write(path))
    return path


def recipe_of(source: str, name: str) -> Recipe:
    assert source in NAMES
    return pytest.importorskip(f"tests.real_models.sources.{source}").RECIPES[name]


@pytest.mark.parametrize("name", SHIPPED)
def test_model_of_a_package_agrees(name, tmp_path):
    if packages.installed(packages.MODELS[name]) is None:
        pytest.skip(f"{packages.MODELS[name].package} is not installed")

    assert measure(made(tmp_path, packages.RECIPES[name]))["state"] == "agrees"


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow) if each in LONG else each for each in MADE]
)
def test_model_of_an_exporter_agrees(name, tmp_path):
    assert measure(made(tmp_path, recipe_of(MADE[name], name)))["state"] == "agrees"
