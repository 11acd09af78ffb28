"""The target ``openvino``: the importer of OpenVINO models.

An input is a document, a byte of zero, which XML does not have, and the weights. A document is changed as a tree
of elements.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

import netloop as trt
from tests.fuzz import seeds
from tests.fuzz.target import Bytes, Target
from tests.support.openvino_models import Loop, constant, ops, ov, parameter

END = b"\0"
VALUES = (
    "0", "1", "2", "-1", "3", "7", "9223372036854775807", "-9223372036854775808", "1e400", "nan", "", "?",
    "1,2", "2,3,4", "...", "1..4", "f32", "f16", "i32", "i64", "boolean", "u8", "i4", "u1", "string",
    "true", "false", "opset1", "opset8", "opset13", "extension", "auto", "numpy",
)  # fmt: skip
NEW = [("axis", "1"), ("auto_broadcast", "numpy"), ("element_type", "f16"), ("purpose", "execution_condition")]
NOT_IN_XML = re.compile(r"[\0-\x08\x0b-\x1f\ufffe\uffff]")
LARGEST = 15_000
"""The largest seed, in bytes; documents are longer than other models."""
MOST_CHANGES = 4


def run(data: bytes) -> None:
    """Load a model; what loads can be checked."""
    document, _, weights = data.partition(END)
    trt.check(trt.openvino.load(document, weights))


def inputs() -> Iterator[bytes]:
    """Networks with loops and conditionals, and models that OpenVINO writes for single operators of ONNX."""
    return (model for model in _models() if len(model) <= LARGEST)


def _models() -> Iterator[bytes]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        for network in seeds.networks():
            with suppress(trt.NetworkError):  # OpenVINO cannot express all layers
                trt.openvino.save(network, path)
                yield _joined(path)
        for trips in (None, 3):
            ov.serialize(_sums(trips), path)
            yield _joined(path)
        core = ov.Core()
        for test in seeds.node_tests():
            with suppress(RuntimeError):  # OpenVINO does not have all operators
                ov.serialize(core.read_model(test, b""), path)
                yield _joined(path)


def _sums(trips: int | None) -> Any:
    """The sums of the first rows of an input, by a TensorIterator or a Loop."""
    x, start = parameter("x", [3, 2]), constant([[10, 20]], np.float32)
    loop = Loop(trips)
    row, total = loop.sliced(x, [1, 2]), loop.state(start)
    after = ops.add(total, row)
    last, rows = loop.outputs([(total, after)], [after], [(after, 0)])
    return ov.Model([ops.result(last), ops.result(rows)], [x])


def _joined(path: Path) -> bytes:
    document = re.sub(rb"(?s)<rt_info>.*?</rt_info>\s*|<rt_info ?/>\s*|\n\s*", b"", path.read_bytes())
    return document + END + path.with_suffix(".bin").read_bytes()


def mutate(data: bytes, chance: Random, bytes_of: Bytes) -> bytes:
    """Change the elements of the document, the weights, or any bytes."""
    document, _, weights = data.partition(END)
    act = chance.randrange(10)
    if act == 0:
        return bytes_of(data)
    if act == 1:
        return document + END + bytes_of(weights)
    try:
        root = ElementTree.fromstring(document)
    except ElementTree.ParseError:
        return bytes_of(data)
    for _ in range(1 + chance.randrange(MOST_CHANGES)):
        _change(root, chance, bytes_of)
    return ElementTree.tostring(root) + END + weights


def _change(root: Element, chance: Random, bytes_of: Bytes) -> None:
    """Change one element: an attribute, its text, its name, or its children."""
    found = list(root.iter())
    element, other = chance.choice(found), chance.choice(found)
    act = chance.randrange(8)
    if act < 5:
        _change_attribute(element, other, _value(found, chance, bytes_of), chance)
    elif act == 5:
        element.tag = other.tag
    elif len(element):
        _move_child(element, other, chance)
    else:
        element.text = _value(found, chance, bytes_of)


def _change_attribute(element: Element, other: Element, value: str, chance: Random) -> None:
    act = chance.randrange(5)
    if act == 0 or not element.attrib:
        element.set(*chance.choice([*other.attrib.items(), *NEW]))
    elif act == 1:
        del element.attrib[chance.choice(list(element.attrib))]
    else:
        element.set(chance.choice(list(element.attrib)), value)


def _move_child(element: Element, other: Element, chance: Random) -> None:
    """Remove a child, double it, or move it to another element."""
    child = chance.choice(list(element))
    if chance.randrange(2):
        element.remove(child)
    if chance.randrange(2) and other not in child.iter():
        other.insert(chance.randrange(len(other) + 1), deepcopy(child))


def _value(found: list[Element], chance: Random, bytes_of: Bytes) -> str:
    """A value of another attribute, an interesting one, or a changed one."""
    there = [value for choice in chance.choices(found, k=4) for value in choice.attrib.values()]
    value = chance.choice([*there, *VALUES])
    if chance.randrange(6):
        return value
    return NOT_IN_XML.sub("", bytes_of(value.encode()).decode("utf-8", "replace"))


TOKENS = ("<layer ", "<data ", "<port ", "<dim>", "<edge ", "<body>", "<port_map>", "<back_edges>", "opset", "version=")
TARGET = Target("openvino", run, inputs, mutate, TOKENS)
