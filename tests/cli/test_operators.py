"""``netloop operators``: the page of ONNX operators is what the table of operators says."""

from pathlib import Path

import netloop
from netloop.cli import main

PAGE = Path(netloop.__file__).parent.parent / "docs" / "onnx-operators.md"


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
