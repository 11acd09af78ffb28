"""``--quiet`` and ``--verbose``."""

import re


def test_quiet_command_has_no_notes(models, run):
    assert "note: " in run("run model.onnx").err
    assert run("run model.onnx --quiet").err == ""


def test_quiet_command_still_has_errors(models, run):
    assert "there is no file" in run("run missing.onnx -q").err


def test_verbose_command_tells_how_long_its_parts_took(models, run):
    said = run("run model.onnx -v --inputs inputs.npz").err

    assert re.search(r"^importing model.onnx: \d+\.\d\d s$", said, re.MULTILINE)
    assert re.search(r"^  compile: \d+\.\d\d s$", said, re.MULTILINE)


def test_one_command_is_not_both(models, run):
    assert "not allowed with argument" in run("run model.onnx -q -v").err
