"""``netloop operators``: the pages of operators are what the tables of operators say."""

from pathlib import Path

import netloop
from netloop.tools.cli import main

DOCS = Path(netloop.__file__).parent.parent / "docs"
PAGE = DOCS / "onnx-operators.md"
OPENVINO_PAGE = DOCS / "openvino-operators.md"
JAX_PAGE = DOCS / "jax-primitives.md"


def test_page_is_what_the_command_prints(capsys):
    assert main(["operators"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(encoding="utf-8"), (
        "python -m netloop operators > docs/onnx-operators.md"
    )


def test_operators_that_the_page_lists_are_supported():
    names = [line.split("`")[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]

    assert len(names) > 150
    for name in names:
        domain, _, op = name.rpartition("::")
        assert netloop.onnx.supports(op, domain), name


def test_page_of_openvino_is_what_the_command_prints(capsys):
    assert main(["operators", "openvino"]) == 0
    assert capsys.readouterr().out == OPENVINO_PAGE.read_text(encoding="utf-8"), (
        "python -m netloop operators openvino > docs/openvino-operators.md"
    )


def test_operators_that_the_page_of_openvino_lists_are_supported():
    rows = [
        line.split("|") for line in OPENVINO_PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]

    assert len(rows) > 150
    for _, name, versions, *_ in rows:
        for version in versions.split(","):
            assert netloop.openvino.supports(name.strip(" `"), f"opset{int(version)}"), name


def test_page_of_jax_is_what_the_command_prints(capsys):
    assert main(["operators", "jax"]) == 0
    assert capsys.readouterr().out == JAX_PAGE.read_text(encoding="utf-8"), (
        "python -m netloop operators jax > docs/jax-primitives.md"
    )
