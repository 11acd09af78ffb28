"""The content of an OpenVINO document: layers, ports, edges, bodies.

Documents in the dialect of the draft of the operation Loop are read too: they call a layer an operation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netloop.formats.openvino.importer.xml import SAVE_AGAIN, Element
from netloop.formats.shared.import_errors import MOST_FINDINGS
from netloop.formats.shared.importer import repeated
from netloop.values.diagnostics import Finding, ModelError, plain, quoted, reason

VERSIONS = ("10", "11")
PORTS = {"parameter": (0, 1), "const": (0, 1), "result": (1, None), "assign": (1, None)}
"""The numbers of inputs and outputs of some layer types; None for any number."""
BODIES = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}
"""The elements of graphs inside a layer, and the element that has the wiring of each."""

TAGS = frozenset({
    "layers", "operations", "layer", "operation", "data", "input", "output", "port", "dim", "edges", "edge",
    "back_edges", *BODIES, *BODIES.values(),
})  # fmt: skip
"""The elements that are read; others, such as the record of the conversion in ``rt_info``, may have any contents."""

PortId = tuple[int, int]
"""The numbers of a layer and of one of its ports."""


@dataclass(frozen=True)
class XmlPort:
    """An input or output of a layer.

    Attributes:
        id: its number.
        precision: the element type, ``FP32``; empty if it is not given.
        dims: the lengths of the axes, -1 where unknown.
        names: the names of the tensor.
    """

    id: int
    precision: str = ""
    dims: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PortEntry:
    """The wiring of a port of a layer to a Parameter or Result of the body inside.

    Attributes:
        port: the port; -1 for none.
        layer: the Parameter or Result.
        axis: the axis along which a tensor is sliced or concatenated; None for a whole tensor.
        start: the first element of the slices.
        end: the last one.
        stride: the step from slice to slice.
        part_size: the length of a slice.
        purpose: ``current_iteration``, ``execution_condition`` or empty.
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
        inputs: the wiring of its Parameters.
        outputs: the wiring of its Results.
        back_edges: for each loop-carried Parameter, the Result that is its next value.
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
        name: its name.
        type: its type, ``Add``.
        version: its operator set, ``opset1``; empty if it is not given.
        line: its line in the document.
        data: its attributes.
        inputs: its inputs, in order.
        outputs: its outputs, in order.
        bodies: the graphs inside it.
        names: the names of a Result's tensor.
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
        """Its type and version in messages, ``Gather-8``."""
        version = self.version.removeprefix("opset")
        return plain(f"{self.type}-{version}" if version else self.type)

    @property
    def description(self) -> str:
        """The layer in messages: number, name, operator and line."""
        return f"layer {self.id} {quoted(self.name)} ({self.operator}), line {self.line}"


@dataclass(frozen=True)
class XmlGraph:
    """Layers and edges.

    Attributes:
        layers: the layers, by number, in the order of the document.
        sources: for each input with an edge, the output that the edge comes from.
    """

    layers: Mapping[int, XmlLayer]
    sources: Mapping[PortId, PortId]

    def of_type(self, type: str) -> list[XmlLayer]:
        """The layers of a type, in the order of the document."""
        return [layer for layer in self.layers.values() if layer.type.lower() == type]


class ModelReader:
    """Reads the graph of a document, called ``name`` in messages, from its elements.

    Attributes:
        findings: the errors so far.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings: list[Finding] = []

    def model(self, root: Element) -> XmlGraph:
        """Return the graph of a document.

        Raises:
            ModelError: it has none, or an invalid one; it has all errors.
        """
        if root.tag != "net":
            raise ModelError(self._finding(f"the document is <{root.tag}>, but must be <net>", root, "NL751"))
        version = root.attributes.get("version", "10")
        if version not in VERSIONS:
            versions = " and ".join(VERSIONS)
            what = f"the model is of version {quoted(version)}, and netloop reads {versions}"
            raise ModelError(self._finding(what, root, "NL751"))
        graph = self._graph(root)
        if self.findings:
            raise ModelError(*self.findings)
        return graph

    def _graph(self, element: Element) -> XmlGraph:
        holder = element.first("layers", "operations")
        if holder is None:
            self._add_finding(f"<{element.tag}> has no <layers>", element)
            return XmlGraph({}, {})
        layers: dict[int, XmlLayer] = {}
        for other in holder.all("layer", "operation"):
            layer = self._layer(other)
            if layer.id in layers:
                what = f"layers {quoted(layers[layer.id].name)} and {quoted(layer.name)} have one id, {layer.id}"
                self._add_finding(what, other)
            layers.setdefault(layer.id, layer)
        return XmlGraph(layers, self._edges(element.first("edges"), layers))

    # ------------------------------------------------------------------ layers

    def _layer(self, element: Element) -> XmlLayer:
        texts = element.attributes
        type, id = texts.get("type", ""), self._number(element, "id")
        name = texts.get("name") or f"{type}_{id}"
        if not type:
            self._add_finding(f"layer {quoted(name)} has no type", element)
        data = element.first("data")
        inputs, outputs = (self._ports(element.first(name)) for name in ("input", "output"))
        for number in repeated(port.id for port in (*inputs, *outputs)):
            self._add_finding(f"layer {quoted(name)} has two ports of number {number}", element)
        counts = PORTS.get(type.lower(), (None, None))
        for side, ports, wanted in zip(("inputs", "outputs"), (inputs, outputs), counts, strict=True):
            if wanted is not None and len(ports) != wanted:
                self._add_finding(f"layer {quoted(name)} has {len(ports)} {side}, and a {type} has {wanted}", element)
        for tag in repeated(other.tag for other in element.all(*BODIES)):
            self._add_finding(f"layer {quoted(name)} has more than one <{tag}>", element)
        bodies = {tag: self._body(element, body, name) for tag in BODIES if (body := element.first(tag)) is not None}
        attributes = {} if data is None else data.attributes
        names = _names(texts.get("output_names", ""))
        version = texts.get("version", "")
        return XmlLayer(id, name, type, version, element.line, attributes, inputs, outputs, bodies, names)

    def _ports(self, element: Element | None) -> list[XmlPort]:
        return [] if element is None else [self._port(other) for other in element.all("port")]

    def _port(self, element: Element) -> XmlPort:
        dims = tuple(self._integer(other, other.text, "a length") for other in element.all("dim"))
        names = _names(element.attributes.get("names", ""))
        return XmlPort(self._number(element, "id"), element.attributes.get("precision", ""), dims, names)

    # ------------------------------------------------------------------ edges

    def _edges(self, element: Element | None, layers: Mapping[int, XmlLayer]) -> dict[PortId, PortId]:
        sources: dict[PortId, PortId] = {}
        outputs = {(layer.id, port.id) for layer in layers.values() for port in layer.outputs}
        inputs = {(layer.id, port.id) for layer in layers.values() for port in layer.inputs}
        for edge in () if element is None else element.all("edge"):
            source = self._number(edge, *FROM), self._number(edge, "from-port")
            target = self._number(edge, *TO), self._number(edge, "to-port")
            for place, ids, what in ((source, outputs, "output"), (target, inputs, "input")):
                if place not in ids:
                    port = f"{what} {place[1]} of layer {place[0]}"
                    self._add_finding(f"an edge names {port}, which does not exist", edge)
            if target in sources:
                name = layers[target[0]].name if target[0] in layers else target[0]
                self._add_finding(f"two edges lead to input {target[1]} of layer {quoted(name)}", edge)
            sources[target] = source
        return sources

    # ------------------------------------------------------------------ bodies

    def _body(self, layer: Element, element: Element, name: str) -> XmlBody:
        graph = self._graph(element)
        port_map = layer.first(BODIES[element.tag])
        entries = [[] if port_map is None else list(port_map.all(name)) for name in ("input", "output")]
        inputs, outputs = ([self._entry(element) for element in side] for side in entries)
        edges = layer.first("back_edges")
        back_edges: dict[int, int] = {}
        for edge in () if edges is None else edges.all("edge"):
            source, target = self._number(edge, *FROM), self._number(edge, *TO)
            if target in back_edges:
                self._add_finding(f"layer {quoted(name)} has two back edges to layer {target} of its body", edge)
            back_edges[target] = source
        body = XmlBody(graph, inputs, outputs, back_edges)
        for what in wiring_errors(body):
            self._add_finding(f"layer {quoted(name)} {what}", layer)
        return body

    def _entry(self, element: Element) -> PortEntry:
        texts = element.attributes
        numbers = {number: self._number(element, number) for number in NUMBERS if number in texts}
        purpose = texts.get("purpose", "execution_condition" if texts.get("condition", "").lower() == "true" else "")
        return PortEntry(
            self._number(element, "external_port_id"), self._number(element, *INSIDE), **numbers, purpose=purpose
        )

    # ------------------------------------------------------------------ numbers

    def _number(self, element: Element, *names: str) -> int:
        """The integer in the first attribute of some names that the element has."""
        text = next((element.attributes[name] for name in names if name in element.attributes), None)
        if text is None:
            self._add_finding(f"<{element.tag}> has no attribute {quoted(names[0])}", element)
            return 0
        return self._integer(element, text, names[0])

    def _integer(self, element: Element, text: str, what: str) -> int:
        try:
            return integer(text)
        except ValueError:
            self._add_finding(f"{what} of <{element.tag}> is {quoted(text)}, but must be an integer", element)
            return 0

    def _add_finding(self, what: str, at: Element) -> None:
        self.findings.append(self._finding(what, at))
        if len(self.findings) >= MOST_FINDINGS:
            raise ModelError(*self.findings)

    def _finding(self, what: str, at: Element, code: str = "NL753") -> Finding:
        return Finding(code, what, f"{self.name}:{at.line}", reason(code), SAVE_AGAIN)


FROM, TO = ("from-layer", "from-operation"), ("to-layer", "to-operation")
INSIDE = ("internal_layer_id", "internal_operation_id")
NUMBERS = ("axis", "start", "end", "stride", "part_size")


def _names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list, with a backslash before a comma inside a name."""
    return tuple(word.replace("\\,", ",") for word in re.split(r"(?<!\\),", text) if word)


UNCONNECTED = -1
"""The port of an entry that is wired to none."""


def integer(text: str) -> int:
    """Parse an integer of 64 bits.

    Raises:
        ValueError: the text is not one.
    """
    text = text.strip()
    if len(text) > 20 or not text.isascii() or "_" in text:
        raise ValueError(f"{quoted(text)} is not an integer of 64 bits")
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{number} is not an integer of 64 bits")
    return number


def wiring_errors(body: XmlBody) -> list[str]:
    """Errors in the wiring of a body."""
    parameters, results = ({layer.id for layer in body.graph.of_type(type)} for type in ("parameter", "result"))
    texts: list[str] = []
    for entries, ids, what in ((body.inputs, parameters, "Parameter"), (body.outputs, results, "Result")):
        texts += [
            f"maps layer {port.layer} of its body, which is not a {what}" for port in entries if port.layer not in ids
        ]
        texts += [f"maps port {entry} twice" for entry in repeated(e.port for e in entries) if entry != UNCONNECTED]
    texts += [f"maps layer {entry} of its body twice" for entry in repeated(port.layer for port in body.inputs)]
    for target, source in body.back_edges.items():
        if target not in parameters:
            texts.append(f"has a back edge to layer {target} of its body, which is not a Parameter")
        if source not in results:
            texts.append(f"has a back edge from layer {source} of its body, which is not a Result")
    return texts
