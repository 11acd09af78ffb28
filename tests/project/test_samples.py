"""Each sample prints the output at the end of its docstring."""

import ast
import runpy
import sys
import textwrap
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = [
    "counting_loop",
    "newton_sqrt",
    "running_sum",
    "lstm",
    "nested_loops",
    "conditional_in_loop",
    "tensorrt_lstm",
    "tensorrt_char_rnn",
    "tensorrt10_style",
    "plugin",
    "onnx_to_jax",
    "jax_to_onnx",
    "convert",
    "scikit_learn",
    "two_processes",
    "ray_data",
]
NEEDS = {"scikit_learn": ("sklearn", "skl2onnx"), "ray_data": ("ray.data",)}
"""The packages that a sample needs, and the tests do not."""
MOST_LINES = 100


def promised(path: Path) -> str:
    """The indented block at the end of the docstring of a sample."""
    documented = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert documented is not None
    lines = documented.splitlines()
    before = max(number for number, line in enumerate(lines) if line and not line.startswith("    "))
    return textwrap.dedent("\n".join(lines[before + 1 :])).strip()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")
@pytest.mark.parametrize("name", NAMES)
def test_sample_prints_what_its_docstring_promises(name, capsys, monkeypatch):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    path = SAMPLES / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path)])

    runpy.run_path(str(path), run_name="__main__")

    assert capsys.readouterr().out.strip() == promised(path)


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_short(name):
    assert len((SAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= MOST_LINES
