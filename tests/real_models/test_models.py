"""Models of each kind: one line loads each, it computes what onnxruntime does, and runtimes that it is saved for agree.

Each is skipped where a package that makes it is not installed.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.real_models.measure import measure
from tests.real_models.recipe import Recipe, save_inputs
from tests.real_models.saved import measure_saved
from tests.real_models.sources import NAMES, packages

SHIPPED = [name for name in packages.MODELS if name.startswith(("silero", "ppocr"))]
DETECTOR, LLAMA, BERT = (
    "tv_fasterrcnn_mobilenet_v3_large_fpn_script",
    "hf_llama_cache_script",
    "hf_bert_classifier_script",
)
SOURCES = {
    DETECTOR: "torchvision_models",
    f"ort_4bits_qoperator_{LLAMA}": "onnxruntime_tools",
    "ort_4bits_qdq_hf_llama_cache": "onnxruntime_tools",
    f"ort_fused_{BERT}": "onnxruntime_tools",
}
"""The sources of models of exporters."""
LONG = {DETECTOR, "ort_4bits_qdq_hf_llama_cache"}
BASES = {LLAMA: "decoder_models", "hf_llama_cache": "decoder_models", BERT: "language_models"}

pytestmark = pytest.mark.filterwarnings("ignore")  # those of exporters


def write_model(folder: Path, recipe: Recipe) -> Path:
    """Write the file of a model, with its inputs."""
    if recipe.base:
        write_model(folder, recipe_of(BASES[recipe.base], recipe.base))
    path = folder / f"{recipe.name}.onnx"
    save_inputs(path, recipe.write(path))
    return path


def recipe_of(source: str, name: str) -> Recipe:
    assert source in NAMES
    return pytest.importorskip(f"tests.real_models.sources.{source}").RECIPES[name]


RUNTIMES = "onnxruntime", "openvino"
NOT_SAVED = {
    (name, "openvino"): "an output has the rank of the branch that is taken, and outputs of OpenVINO have one rank"
    for name in ("silero_vad", "silero_vad_half", "silero_vad_16k_op15")
}
"""Models that a runtime does not compute from the file that netloop saves, with the reason."""


def require_same_when_saved(path: Path) -> None:
    """Require that the model, saved in the format of each runtime, gives there what an engine gives."""
    runtimes = [runtime for runtime in RUNTIMES if (path.stem, runtime) not in NOT_SAVED and find_spec(runtime)]
    for runtime, results in measure_saved(path, runtimes).items():
        assert results
        assert all(result["agrees"] for result in results), (runtime, results)


@pytest.mark.parametrize("name", SHIPPED)
def test_model_of_a_package_agrees(name, tmp_path):
    if packages.installed(packages.MODELS[name]) is None:
        pytest.skip(f"{packages.MODELS[name].package} is not installed")

    path = write_model(tmp_path, packages.RECIPES[name])

    assert measure(path)["state"] == "agrees"
    require_same_when_saved(path)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in SOURCES]
)
def test_model_of_an_exporter_agrees(name, tmp_path):
    path = write_model(tmp_path, recipe_of(SOURCES[name], name))

    assert measure(path)["state"] == "agrees"
    require_same_when_saved(path)
