"""``netloop convert``: what it writes, and with which status it ends."""

import runpy

import jax.export
import numpy as np
import pytest

import netloop as trt
from netloop import plan
from netloop.tools.cli import main
from tests.support import cli_models, networks

MADE, INPUTS, OUTPUTS = networks.EXAMPLES["both limits, WHILE first"]


@pytest.mark.parametrize("names", [["a.onnx", "a.xml", "a.plan", "a.py"], ["a.py", "a.plan", "a.onnx"]])
def test_chain_of_formats_keeps_the_results(names, tmp_path, capsys):
    plan.save(MADE(), tmp_path / "first.plan")
    source = tmp_path / "first.plan"
    for name in names:
        assert main(["convert", str(source), str(tmp_path / name)]) == 0
        source = tmp_path / name
    assert main(["convert", str(source), str(tmp_path / "last.plan")]) == 0

    assert capsys.readouterr().out.startswith(f"{tmp_path / names[0]}: {MADE().num_layers} layers\n")
    result = trt.evaluate(plan.load(tmp_path / "last.plan"), INPUTS)
    for name, value in OUTPUTS.items():
        np.testing.assert_array_equal(result[name], value)


def test_script_for_tensorrt(tmp_path):
    plan.save(MADE(), tmp_path / "a.plan")

    assert main(["convert", "--import", "tensorrt", str(tmp_path / "a.plan"), str(tmp_path / "a.py")]) == 0
    assert "import tensorrt as trt" in (tmp_path / "a.py").read_text()
    with pytest.raises(ModuleNotFoundError, match="tensorrt"):
        runpy.run_path(str(tmp_path / "a.py"))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("no.onnx", "no.onnx"),
        ("no.py", "there is no file"),
        ("empty.py", "has no function build()"),
        ("broken.plan", "NL7"),
    ],
)
def test_source_that_is_no_model(source, says, tmp_path, capsys):
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "broken.plan").write_bytes(b"netloop")

    assert main(["convert", str(tmp_path / source), str(tmp_path / "a.plan")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "a.plan").exists()


def test_network_that_the_target_cannot_express(tmp_path, capsys):
    network = trt.INetworkDefinition()
    network.add_assertion(network.add_input("x", trt.bool, ()), "never")
    network.mark_output(network.add_identity(network.get_input(0)).get_output(0))
    plan.save(network, tmp_path / "a.plan")

    assert main(["convert", str(tmp_path / "a.plan"), str(tmp_path / "a.onnx")]) == 2
    assert "NL731" in capsys.readouterr().err


def test_suffix_that_no_format_has(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["convert", str(tmp_path / "a.pt"), str(tmp_path / "a.onnx")])
    assert "a.pt' ends in none of .onnx, .xml, .plan, .py" in capsys.readouterr().err


# ---------------------------------------------------------------------------- StableHLO


def test_stablehlo_as_text_and_as_bytes_that_jax_reads(models, run):
    assert run("convert model.onnx model.mlir --shapes x:2x3").status == 0
    assert run("convert model.onnx model.stablehlo --shapes x:2x3").out == "model.stablehlo: 8 layers\n"

    assert "stablehlo.tanh" in (models / "model.mlir").read_text()
    function = jax.export.deserialize(bytearray((models / "model.stablehlo").read_bytes()))
    x = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)
    np.testing.assert_allclose(function.call({"x": x})["y"], cli_models.expected(x), rtol=1e-6)


def test_stablehlo_is_no_source(models, run):
    done = run("convert model.mlir model.onnx")

    assert done.status == 2
    assert "'model.mlir' ends in none of .onnx, .xml, .plan, .py\n" in done.err


def test_plan_without_tf32_is_one_of_an_engine_without_it(models, run):
    assert run("convert model.onnx exact.plan --noTF32").status == 0
    assert not trt.load("exact.plan").build_options.tf32
    assert trt.load("model.plan").build_options.tf32


def test_program_without_tf32_asks_for_float32(models, run):
    plan.save(networks.lstm(1, 3), "lstm.plan")
    texts = []
    for argument in ("", " --noTF32"):
        assert run(f"convert lstm.plan lstm.mlir{argument}").status == 0
        texts.append((models / "lstm.mlir").read_text())

    assert ["HIGHEST" in text for text in texts] == [False, True]


def test_format_without_a_precision_of_products_is_refused_without_tf32(models, run):
    done = run("convert model.plan model.xml --noTF32")

    assert done.status == 2
    assert done.err.startswith("--noTF32 is for plans and programs: a .xml file says nothing")
