"""An operator is in the file of its family, which has one name in all formats."""

import re
from pathlib import Path

import pytest

import netloop
from netloop.formats.families import FAMILIES

PACKAGE = Path(netloop.__file__).parent
ONNX, OPENVINO = (PACKAGE / name / "importer" / "operators" for name in ("onnx", "openvino"))
DECORATOR = re.compile(r'^@operator\("(\w+)"', re.MULTILINE)


def families(folder):
    return [path for path in folder.glob("*.py") if path.name != "__init__.py"]


def family_of_operators(folder):
    """The family of each operator that a decorator names, by its name in lower case."""
    files = {path.stem: path.read_text(encoding="utf-8") for path in families(folder)}
    return {name.lower(): family for family, text in files.items() for name in DECORATOR.findall(text)}


@pytest.mark.parametrize("folder", [ONNX, OPENVINO], ids=["onnx", "openvino"])
def test_every_file_is_a_family(folder):
    assert {path.stem for path in families(folder)} <= FAMILIES


def test_operator_of_both_formats_has_one_family():
    onnx, openvino = family_of_operators(ONNX), family_of_operators(OPENVINO)
    common = onnx.keys() & openvino.keys()

    assert len(common) > 30
    assert {name: onnx[name] for name in common} == {name: openvino[name] for name in common}


def test_same_family_has_the_same_heading():
    headings = [
        {path.stem: path.read_text(encoding="utf-8").split('"""')[1].partition("\n")[0] for path in families(folder)}
        for folder in (ONNX, OPENVINO)
    ]
    common = headings[0].keys() & headings[1].keys()

    assert {name: headings[0][name] for name in common} == {name: headings[1][name] for name in common}
