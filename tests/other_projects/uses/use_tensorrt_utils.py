"""tensorrt-utils: its scripts convert a model, run an engine, and show networks and plugins."""

import re
import runpy
import sys

import numpy as np
import pytest

from tests.other_projects.uses.models import classifier, expected


def run(monkeypatch, script, *arguments):
    """Run a script of the sources, whose folders are among those of modules."""
    path = next(path for folder in sys.path if (path := f"{folder}/{script}") and _is_file(path))
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    monkeypatch.syspath_prepend(path.rpartition("/")[0])
    runpy.run_path(path, run_name="__main__")


def _is_file(path):
    try:
        with open(path, encoding="utf-8"):
            return True
    except OSError:
        return False


CONVERTER = "int8/calibration/onnx_to_tensorrt.py"


@pytest.mark.parametrize(
    "options", [[], ["--fp16", "--strict-types", "--refittable", "--debug"], ["--int8", "--simple"]]
)
def test_model_is_converted_and_run(tmp_path, monkeypatch, capsys, options):
    model, engine = classifier(tmp_path / "model.onnx"), str(tmp_path / "model.engine")
    monkeypatch.chdir(tmp_path)
    batches = ["--explicit-batch", "--max-batch-size", "2"]
    run(monkeypatch, CONVERTER, "--onnx", model, "--output", engine, *batches, *options)
    run(monkeypatch, "inference/infer.py", "--engine", engine, "--seed", "3")
    shown = capsys.readouterr().out
    np.random.seed(3)
    x = np.random.random((1, 3, 32, 32)).astype(np.float32)

    numbers = re.findall(r"-?\d+\.\d*(?:e[+-]\d+)?", shown.rpartition("array(")[2])
    computed = np.array([*map(float, numbers)], np.float32)
    np.testing.assert_allclose(computed, expected(model, input=x)["output"].reshape(-1), atol=1e-3)


def test_plugins_are_listed(monkeypatch):
    run(monkeypatch, "plugins/list_plugins.py")
