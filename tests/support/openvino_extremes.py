"""Layers of OpenVINO models with extreme numbers, in processes that may die.

A case is a model of one layer, from the tests of the importer, in which one number is changed: an attribute, a constant
input, or an input of the call.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

import netloop as trt
from netloop.values.types import INTEGERS
from tests.formats.openvino.importer import test_networks, test_operators, test_recurrent
from tests.support.extremes import INTS, is_valid, numbers_of, spread
from tests.support.mortal_cases import raised, serve
from tests.support.openvino_models import Loop, constant, document, ops, ov, parameter
from tests.support.openvino_peer import Case, case, fixed

TEXTS = [*map(str, INTS), str(2**64), "9" * 400, "nan", "inf", "1e308", "-1e308", "1e-320", "", "1.5", "?"]
LISTS = ["", "1", "0,0,0,0,0,0,0,0", "-1,0", ",", f"{2**31},1,-1"]
"""Lists that are too short or too long."""

MAX_TRIPS = 10_000
"""The most iterations of a loop: that of ROIAlign over the samples of a box may have any number of them."""
SOURCES_OF_DATA = {"Const", "Parameter", "Result"}

Model = tuple[Element, bytes, dict[str, Any]]
"""A document, the file of weights, and the inputs of a call."""


@dataclass(frozen=True)
class Change:
    """One change of a model.

    Attributes:
        model: the number of the model.
        kind: "attribute", "constant" or "input".
        place: the number of the element in the document, or the name of the input.
        name: the name of the attribute.
        value: the new text, or the new array.
    """

    model: int
    kind: str
    place: Any
    name: str
    value: Any

    def __str__(self) -> str:
        value = self.value[:40] if self.kind == "attribute" else f"{self.value.dtype}{self.value.tolist()}"
        return f"model {self.model}, {names()[self.model]}: {self.kind} {self.place} {self.name} = {value!r}"


# ---------------------------------------------------------------------------- models


@cache
def layers() -> list[Case]:
    """A layer for each operator, version, number of inputs, and set of attributes."""
    lists = [test_operators.ELEMENTS, test_operators.SHAPES, test_operators.PLACES, test_operators.AXES]
    known = [*chain(*lists), *test_networks.CASES, *test_recurrent.CELLS, *test_recurrent.SEQUENCES, *_random()]
    return list({(case_.op, case_.opset, len(case_.inputs), *case_.attributes): case_ for case_ in known}.values())


@cache
def names() -> list[str]:
    """The models."""
    return [*map(str, layers()), "Loop", "TensorIterator"]


def _random() -> list[Case]:
    shares = np.float32([[0.5, 0.25, 0.25]])
    seeds: dict[str, Any] = {"global_seed": 1, "op_seed": 1}
    return [
        case("Multinomial", shares, fixed(np.int64(4)), convert_type="i32", with_replacement=True, log_probs=False,
             **seeds),
        case("RandomUniform", fixed(np.int64([2, 3])), fixed(np.float32(0)), fixed(np.float32(1)), output_type="f32",
             **seeds),
    ]  # fmt: skip


@cache
def model(number: int) -> tuple[bytes, bytes, dict[str, Any]]:
    """The document and the weights of a model, and the inputs of a call."""
    if number < len(layers()):
        return *document(layers()[number].model()), layers()[number].given
    x, start = parameter("x", [3, 2]), constant([[10, 20]], np.float32)
    loop = Loop(3 if names()[number] == "Loop" else None)
    row, total = loop.sliced(x, [1, 2]), loop.state(start)
    after = ops.add(total, row)
    last, rows = loop.outputs([(total, after)], [after], [(after, 0)])
    made = ov.Model([ops.result(last), ops.result(rows)], [x])
    return *document(made), {"x": np.ones((3, 2), np.float32)}


# ---------------------------------------------------------------------------- changes


def changes(step: int = 1) -> Iterator[Change]:
    """All models, or one of ``step``, with one change."""
    for number in range(0, len(names()), step):
        text, weights, given = model(number)
        for place, element in enumerate(ElementTree.fromstring(text).iter()):
            yield from _of_element(number, place, element, weights)
        for name, value in given.items():
            if value.dtype in INTEGERS:
                yield from (Change(number, "input", name, "", array) for array in _arrays(value))


def _of_element(number: int, place: int, element: Element, weights: bytes) -> Iterator[Change]:
    if element.tag == "layer" and element.get("type") == "Const":
        known = _array(element, weights)
        if known is not None:
            yield from (Change(number, "constant", place, "", array) for array in [*_arrays(known), *_lengths(known)])
    elif element.tag in ("input", "output") and "axis" in element.attrib:
        yield from (Change(number, "attribute", place, name, text) for name in element.attrib for text in TEXTS)
    elif element.tag == "layer" and element.get("type") not in SOURCES_OF_DATA:
        for name, known in _data(element).attrib.items():
            yield from (Change(number, "attribute", place, name, text) for text in _texts(known))


def _data(layer: Element) -> Element:
    found = layer.find("data")
    return Element("data") if found is None else found


def _texts(known: str) -> list[str]:
    if "," not in known:
        return [*TEXTS, "1,1"]
    parts = tuple(known.split(","))
    return [*(",".join(entry) for one in TEXTS for entry in spread(one, parts)), *LISTS]


def _array(layer: Element, weights: bytes) -> np.ndarray | None:
    """The value of a constant of integers."""
    data = _data(layer)
    dtype = {"i32": np.int32, "i64": np.int64}.get(data.get("element_type", ""))
    if dtype is None:
        return None
    start, shape = int(data.get("offset", "0")), [int(word) for word in data.get("shape", "").split(",") if word]
    return np.frombuffer(weights, dtype, int(np.prod(shape)), start).reshape(shape)


def _arrays(known: np.ndarray) -> Iterator[np.ndarray]:
    """Arrays of the same shape, with an extreme number everywhere, first, and last."""
    for one in numbers_of(known.dtype):
        for entry in spread(one, tuple(known.ravel().tolist())):
            yield np.array(entry, known.dtype).reshape(known.shape)


def _lengths(known: np.ndarray) -> list[np.ndarray]:
    """Lists that are too short or too long."""
    flat = known.ravel()
    return [flat[:0], flat[:-1], np.append(flat, flat[-1:]), np.ones(9, known.dtype)]


def changed(change: Change) -> tuple[bytes, bytes, dict[str, Any]]:
    """The model with its change."""
    text, weights, given = model(change.model)
    if change.kind == "input":
        return text, weights, {**given, change.place: change.value}
    root = ElementTree.fromstring(text)
    element = list(root.iter())[change.place]
    if change.kind == "attribute":
        (_data(element) if element.tag == "layer" else element).set(change.name, change.value)
    else:
        _set_constant(element, change.value, len(weights))
        weights += change.value.tobytes()
    return ElementTree.tostring(root), weights, given


def _set_constant(layer: Element, value: np.ndarray, offset: int) -> None:
    shape = ", ".join(map(str, value.shape))
    _data(layer).attrib.update(offset=str(offset), size=str(value.nbytes), shape=shape)
    port = next(layer.iter("port"))
    for element in list(port.iter("dim")):
        port.remove(element)
    for length in value.shape:
        ElementTree.SubElement(port, "dim").text = str(length)


# ---------------------------------------------------------------------------- outcomes


def outcome(change: Change) -> str:
    """What a changed model leads to."""
    text, weights, given = changed(change)
    loaded = raised(lambda: trt.openvino.load(text, weights) and None)
    if loaded != "fine":
        return f"refused: {loaded}"
    network = trt.openvino.load(text, weights)
    if not is_valid(network):
        return "refused"
    given = {tensor.name: given[tensor.name] for tensor in network.inputs}
    compiled = raised(lambda: trt.compile(network, max_trips=MAX_TRIPS)(given))
    return f"compiled: {compiled}, reference: {raised(lambda: trt.evaluate(network, given, max_trips=MAX_TRIPS))}"


def sample(count: int, step: int) -> list[Change]:
    """Some of the changes of one of ``step`` models, drawn at random."""
    return random.Random(0).sample(list(changes(step)), count)


SOURCES = {"all": lambda: list(changes()), "few": partial(sample, 25, 20)}

if __name__ == "__main__":
    serve(SOURCES, outcome)
