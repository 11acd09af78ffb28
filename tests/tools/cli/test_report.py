"""``netloop report``."""

import json
import re

import numpy as np
import pytest

from netloop.tools.cli import main

MODEL = """
import netloop as trt
def build():
    network = trt.INetworkDefinition()
    layer = network.add_unary(network.add_input("x", trt.float32, (2,)), trt.UnaryOperation.EXP)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    return network
"""


@pytest.fixture
def files(tmp_path):
    """The paths of a model, of a page to write, and of inputs."""
    (tmp_path / "model.py").write_text(MODEL)
    np.savez(tmp_path / "inputs.npz", x=np.float32([0, 1000]))
    return tmp_path / "model.py", tmp_path / "page.html", tmp_path / "inputs.npz"


def test_it_writes_a_page_with_the_layers(files, capsys):
    model, page, _ = files

    assert main(["report", str(model), "-o", str(page)]) == 0

    assert "1 layer\n" in capsys.readouterr().out
    assert "Unary EXP" in page.read_text(encoding="utf-8")


def test_inputs_add_the_values_of_a_run(files):
    model, page, inputs = files

    assert main(["report", str(model), "-o", str(page), "--inputs", str(inputs), "--compare", "reference"]) == 0

    data = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    run = json.loads(data[1])
    assert run["run"]["not_finite"]["tensor"] == "y"
    assert run["peers"][0]["peer"] == "reference"


def test_values_need_no_inputs(files):
    model, page, _ = files

    assert main(["report", str(model), "-o", str(page), "--values"]) == 0
    assert '"not_finite":null' in page.read_text(encoding="utf-8")


def test_a_missing_model_and_broken_inputs_are_told(files, capsys):
    model, page, inputs = files

    assert main(["report", "no.py", "-o", str(page)]) == 2
    with pytest.raises(SystemExit):
        main(["report", str(model), "-o", str(page), "--compare", "tensorflow"])
    inputs.write_bytes(b"PK\3\4 nothing")
    assert main(["report", str(model), "-o", str(page), "--inputs", str(inputs)]) == 2

    assert not page.exists()
    assert "Traceback" not in capsys.readouterr().err


def test_two_models_or_reports_are_shown_side_by_side(models, run):
    assert run("report model.onnx --values -o before.html").status == 0
    ran = run("report before.html --versus model.xml --values -o difference.html")

    assert (ran.status, ran.out) == (0, "difference.html: before.html and model.xml side by side\n")
    data = re.search(r'id="data">(.*?)</script>', (models / "difference.html").read_text(encoding="utf-8"))
    numbers = {name: values for name, *values in json.loads(data[1])["numbers"]}
    assert all(numbers["call"][:2])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("report before.html", "is a report"),
        ("report no.html --versus model.onnx", "there is no file 'no.html'"),
        ("report other.html --versus model.onnx", "is no report"),
        ("report model.onnx --versus model.plan --compare reference", "--compare is about"),
    ],
)
def test_sides_that_are_none_are_told(models, run, line, why):
    (models / "other.html").write_text("<html>")
    ran = run(line)

    assert ran.status == 2
    assert why in ran.err
