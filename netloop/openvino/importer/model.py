"""What a document says: layers, ports, edges, bodies.

The draft of the operation Loop, whose names differ, is read too: what is an operation there is a layer here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netloop.diagnostics import Finding, ModelError, reason
from netloop.openvino.importer.xml import Element

MOST_FINDINGS = 1000
"""With so many findings a document is read no further."""
VERSIONS = ("10", "11")
PORTS = {"parameter": (0, 1), "const": (0, 1), "result": (1, None), "assign": (1, None)}
"""How many inputs and outputs the layers have where values begin and end."""
BODIES = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}
"""The graphs inside a layer, and what tells how each is wired."""

PortId = tuple[int, int]
"""A layer and a port of it."""


@dataclass(frozen=True)
class XmlPort:
    """An input or output of a layer.

    Attributes:
        id: its number.
        precision: the element type, ``FP32``; empty where it is not told.
        dims: the lengths of the axes, -1 where unknown.
        names: the names of the tensor.
    """

    id: int
    precision: str = ""
    dims: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PortEntry:
    """How a port of a layer is wired to a layer of the body inside.

    Attributes:
        port: the port; -1 for none.
        layer: a Parameter or Result of the body.
        axis: the axis of what goes in or out part by part; None for what goes as a whole.
        start: where the parts start.
        end: where they end.
        stride: the step from part to part.
        part_size: the length of a part.
        purpose: ``current_iteration``, ``execution_condition`` or nothing.
    """

    port: int
    layer: int
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1
    purpose: str = ""


@dataclass(frozen=True)
class XmlBody:
    """A graph inside a layer.

    Attributes:
        graph: the graph.
        inputs: what goes in.
        outputs: what comes out.
        back_edges: for each Parameter that goes round, the Result that it comes from.
    """

    graph: XmlGraph
    inputs: Sequence[PortEntry]
    outputs: Sequence[PortEntry]
    back_edges: Mapping[int, int]


@dataclass(frozen=True, eq=False)
class XmlLayer:
    """A layer.

    Attributes:
        id: its number in its graph.
        name: its name; messages call it so.
        type: its type, ``Add``.
        version: the operator set that has it, ``opset1``; empty where it is not told.
        line: the line of the document on which it begins.
        data: its attributes.
        inputs: its inputs, in order.
        outputs: its outputs, in order.
        bodies: the graphs inside it.
        names: the names of the tensor that a Result is given.
    """

    id: int
    name: str
    type: str
    version: str
    line: int
    data: Mapping[str, str]
    inputs: Sequence[XmlPort]
    outputs: Sequence[XmlPort]
    bodies: Mapping[str, XmlBody]
    names: Sequence[str] = ()

    @property
    def operator(self) -> str:
        """Its type and version, as messages put them: ``Gather-8``."""
        version = self.version.removeprefix("opset")
        return f"{self.type}-{version}" if version else self.type


@dataclass(frozen=True)
class XmlGraph:
    """Layers and edges.

    Attributes:
        layers: the layers, by number, in the order of the document.
        sources: for each input that an edge leads to, the output from which it comes.
    """

    layers: Mapping[int, XmlLayer]
    sources: Mapping[PortId, PortId]

    def of_type(self, type: str) -> list[XmlLayer]:
        """The layers of a type, in the order of the document."""
        return [each for each in self.layers.values() if each.type.lower() == type]


class ModelReader:
    """Makes layers of elements.

    Args:
        name: what messages call the document.

    Attributes:
        findings: what is wrong so far.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings: list[Finding] = []

    def model(self, root: Element) -> XmlGraph:
        """The graph of a document.

        Raises:
            ModelError: it has none, or a damaged one; all that is wrong is told.
        """
        if root.tag != "net":
            raise ModelError(self._finding(f"the document is a <{root.tag}>, and a model is a <net>", root, "NL751"))
        version = root.attributes.get("version", "10")
        if version not in VERSIONS:
            known = " and ".join(VERSIONS)
            what = f"the model is of version {version!r}, and netloop reads {known}"
            raise ModelError(self._finding(what, root, "NL751"))
        graph = self._graph(root)
        if self.findings:
            raise ModelError(*self.findings)
        return graph

    def _graph(self, element: Element) -> XmlGraph:
        holder = element.first("layers", "operations")
        if holder is None:
            self._complain(f"<{element.tag}> has no <layers>", element)
            return XmlGraph({}, {})
        layers: dict[int, XmlLayer] = {}
        for each in holder.all("layer", "operation"):
            layer = self._layer(each)
            if layer.id in layers:
                what = f"layers {layers[layer.id].name!r} and {layer.name!r} have one id, {layer.id}"
                self._complain(what, each)
            layers.setdefault(layer.id, layer)
        return XmlGraph(layers, self._edges(element.first("edges"), layers))

    # ------------------------------------------------------------------ layers

    def _layer(self, element: Element) -> XmlLayer:
        given = element.attributes
        type, id = given.get("type", ""), self._number(element, "id")
        name = given.get("name") or f"{type}_{id}"
        if not type:
            self._complain(f"layer {name!r} has no type", element)
        data = element.first("data")
        inputs, outputs = (self._ports(element.first(each)) for each in ("input", "output"))
        for each in repeated(port.id for port in (*inputs, *outputs)):
            self._complain(f"layer {name!r} has two ports of number {each}", element)
        counts = PORTS.get(type.lower(), (None, None))
        for side, ports, wanted in zip(("inputs", "outputs"), (inputs, outputs), counts, strict=True):
            if wanted is not None and len(ports) != wanted:
                self._complain(f"layer {name!r} has {len(ports)} {side}, and a {type} has {wanted}", element)
        bodies = {each.tag: self._body(element, each, name) for each in element.all(*BODIES)}
        attributes = {} if data is None else data.attributes
        names = _names(given.get("output_names", ""))
        version = given.get("version", "")
        return XmlLayer(id, name, type, version, element.line, attributes, inputs, outputs, bodies, names)

    def _ports(self, element: Element | None) -> list[XmlPort]:
        return [] if element is None else [self._port(each) for each in element.all("port")]

    def _port(self, element: Element) -> XmlPort:
        dims = tuple(self._integer(each, each.text, "a length") for each in element.all("dim"))
        names = _names(element.attributes.get("names", ""))
        return XmlPort(self._number(element, "id"), element.attributes.get("precision", ""), dims, names)

    # ------------------------------------------------------------------ edges

    def _edges(self, element: Element | None, layers: Mapping[int, XmlLayer]) -> dict[PortId, PortId]:
        sources: dict[PortId, PortId] = {}
        outputs = {(each.id, port.id) for each in layers.values() for port in each.outputs}
        inputs = {(each.id, port.id) for each in layers.values() for port in each.inputs}
        for edge in () if element is None else element.all("edge"):
            source = self._number(edge, *FROM), self._number(edge, "from-port")
            target = self._number(edge, *TO), self._number(edge, "to-port")
            for place, known, what in ((source, outputs, "output"), (target, inputs, "input")):
                if place not in known:
                    self._complain(f"an edge names {what} {place[1]} of layer {place[0]}, which is not there", edge)
            if target in sources:
                name = layers[target[0]].name if target[0] in layers else target[0]
                self._complain(f"two edges lead to input {target[1]} of layer {name!r}", edge)
            sources[target] = source
        return sources

    # ------------------------------------------------------------------ bodies

    def _body(self, layer: Element, element: Element, name: str) -> XmlBody:
        graph = self._graph(element)
        port_map = layer.first(BODIES[element.tag])
        entries = [[] if port_map is None else list(port_map.all(each)) for each in ("input", "output")]
        inputs, outputs = ([self._entry(each) for each in side] for side in entries)
        edges = layer.first("back_edges")
        back_edges: dict[int, int] = {}
        for edge in () if edges is None else edges.all("edge"):
            source, target = self._number(edge, *FROM), self._number(edge, *TO)
            if target in back_edges:
                self._complain(f"layer {name!r} has two back edges to layer {target} of its body", edge)
            back_edges[target] = source
        body = XmlBody(graph, inputs, outputs, back_edges)
        for what in wiring_damage(body):
            self._complain(f"layer {name!r} {what}", layer)
        return body

    def _entry(self, element: Element) -> PortEntry:
        given = element.attributes
        numbers = {each: self._number(element, each) for each in NUMBERS if each in given}
        purpose = given.get("purpose", "execution_condition" if given.get("condition", "").lower() == "true" else "")
        return PortEntry(
            self._number(element, "external_port_id"), self._number(element, *INSIDE), **numbers, purpose=purpose
        )

    # ------------------------------------------------------------------ numbers

    def _number(self, element: Element, *names: str) -> int:
        """An attribute that is there under one of some names."""
        found = next((element.attributes[each] for each in names if each in element.attributes), None)
        if found is None:
            self._complain(f"<{element.tag}> has no attribute {names[0]!r}", element)
            return 0
        return self._integer(element, found, names[0])

    def _integer(self, element: Element, text: str, what: str) -> int:
        try:
            return integer(text)
        except ValueError:
            self._complain(f"{what} of <{element.tag}> is {text[:40]!r}, and must be an integer", element)
            return 0

    def _complain(self, what: str, at: Element) -> None:
        self.findings.append(self._finding(what, at))
        if len(self.findings) >= MOST_FINDINGS:
            raise ModelError(*self.findings)

    def _finding(self, what: str, at: Element, code: str = "NL753") -> Finding:
        return Finding(code, what, f"{self.name}:{at.line}", reason(code))


FROM, TO = ("from-layer", "from-operation"), ("to-layer", "to-operation")
INSIDE = ("internal_layer_id", "internal_operation_id")
NUMBERS = ("axis", "start", "end", "stride", "part_size")


def _names(text: str) -> tuple[str, ...]:
    """The names in a list of them, where a comma of a name is behind a backslash."""
    return tuple(each.replace("\\,", ",") for each in re.split(r"(?<!\\),", text) if each)


UNCONNECTED = -1
"""The port of what is wired to no port."""


def repeated(numbers: Iterable[int]) -> list[int]:
    """The numbers that are there more than once."""
    return [each for each, count in Counter(numbers).items() if count > 1]


def integer(text: str) -> int:
    """The integer of 64 bits that a text writes.

    Raises:
        ValueError: it writes none.
    """
    text = text.strip()
    if len(text) > 20 or not text.isascii() or "_" in text:
        raise ValueError(f"{text[:40]!r} is no integer of 64 bits")
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{number} is no integer of 64 bits")
    return number


def wiring_damage(body: XmlBody) -> list[str]:
    """What is wrong with the wiring of a body."""
    parameters, results = ({each.id for each in body.graph.of_type(type)} for type in ("parameter", "result"))
    found: list[str] = []
    for entries, known, what in ((body.inputs, parameters, "Parameter"), (body.outputs, results, "Result")):
        found += [
            f"maps layer {each.layer} of its body, which is no {what}" for each in entries if each.layer not in known
        ]
        found += [f"maps port {each} twice" for each in repeated(e.port for e in entries) if each != UNCONNECTED]
    found += [f"maps layer {each} of its body twice" for each in repeated(each.layer for each in body.inputs)]
    for target, source in body.back_edges.items():
        if target not in parameters:
            found.append(f"has a back edge to layer {target} of its body, which is no Parameter")
        if source not in results:
            found.append(f"has a back edge from layer {source} of its body, which is no Result")
    return found
