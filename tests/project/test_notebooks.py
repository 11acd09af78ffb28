"""The tutorials run, and print what they show."""

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def printed(notebook):
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [
        "".join(tensor.get("text", "") for tensor in cell.outputs if tensor.get("name") == "stdout") for cell in cells
    ]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda value: value.stem)
def test_notebook_prints_what_it_shows(path, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)  # of this run, and not of the notebook's
    notebook = nbformat.read(path, as_version=4)
    shown = printed(notebook)

    client = nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3")
    client.execute(cwd=str(tmp_path))

    assert printed(notebook) == shown
    assert any(shown)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 4
