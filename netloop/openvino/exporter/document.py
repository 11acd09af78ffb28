"""From nets to the XML of a model, and the numbers of its constants: equal ones are there once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from netloop.onnx_graph.names import Names
from netloop.onnx_graph.raw import raw
from netloop.openvino.exporter.net import OUTSIDE, Body, Layer, Net, Port, Wire
from netloop.openvino.importer.weights import TYPES
from netloop.types import Array, data_type

ALIGNMENT = 64
"""Where constants begin among the weights, so that they can be mapped into memory."""

ELEMENT_TYPES = {kind: name for name, kind in TYPES.items() if name != "bool" and not name.startswith("fp")}
PRECISIONS = {"boolean": "BOOL", "f64": "FP64", "f32": "FP32", "f16": "FP16"}
"""What ports call element types that they call otherwise than in capitals."""

PORT_MAPS = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}


def element_type(dtype: np.dtype[Any]) -> str | None:
    """What OpenVINO calls an element type; None if it has none such."""
    return ELEMENT_TYPES.get(data_type(dtype))


class Weights:
    """The numbers of constants, one after the other."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._size = 0

    def place(self, data: bytes) -> int:
        """Where some bytes are, which are added if they are not there."""
        digest = hashlib.sha256(data).digest()
        if digest not in self._places:
            padding = bytes(-self._size % ALIGNMENT)
            self._places[digest] = self._size + len(padding)
            self.pieces += [padding, data]
            self._size += len(padding) + len(data)
        return self._places[digest]


def document(net: Net, name: str, weights: Weights) -> Iterator[str]:
    """The lines of the XML of a net, whose numbers join the weights."""
    yield '<?xml version="1.0"?>'
    yield f'<net name={quoteattr(name)} version="11">'
    yield from _Lines(net, weights).content()
    yield "</net>"


class _Lines:
    """The lines of a net."""

    def __init__(self, net: Net, weights: Weights) -> None:
        self._net = net
        self._weights = weights
        self._names = Names()
        self._ids = {layer: number for number, layer in enumerate(net.layers)}
        self._places = {
            port: (number, len(layer.inputs) + position)
            for layer, number in self._ids.items()
            for position, port in enumerate(layer.outputs)
        }

    def content(self) -> Iterator[str]:
        """Layers and edges."""
        yield "<layers>"
        for layer in self._net.layers:
            yield from self._layer(layer)
        yield "</layers>"
        yield "<edges>"
        for layer, number in self._ids.items():
            for port, source in enumerate(layer.inputs):
                from_layer, from_port = self._places[source]
                yield _tag(
                    "edge", **{"from-layer": from_layer, "from-port": from_port, "to-layer": number, "to-port": port}
                )
        yield "</edges>"

    def _layer(self, layer: Layer) -> Iterator[str]:
        names = {"output_names": _joined(layer.data["names"])} if layer.data.get("names") else {}
        head = {"id": self._ids[layer], "name": self._names.new(layer.name or layer.type), "type": layer.type}
        yield _tag("layer", **head, version=layer.version, **names)[:-2] + ">"
        data = self._data(layer)
        if data:
            yield _tag("data", **data)
        for body in layer.bodies:
            yield from self._map(layer, body)
        yield from _ports("input", layer.inputs, 0, is_named=False)
        yield from _ports("output", layer.outputs, len(layer.inputs), is_named=True)
        for body in layer.bodies:
            yield f"<{body.tag}>"
            yield from _Lines(body.net, self._weights).content()
            yield f"</{body.tag}>"
        yield "</layer>"

    def _data(self, layer: Layer) -> dict[str, Any]:
        if layer.type == "Result":
            return {}
        return layer.data if layer.array is None else self._constant(layer.array)

    def _constant(self, array: Array) -> dict[str, Any]:
        data = raw(array)
        place = {"offset": self._weights.place(data) if data else 0, "size": len(data)}
        return {"element_type": element_type(array.dtype), "shape": ", ".join(map(str, array.shape)), **place}

    def _map(self, layer: Layer, body: Body) -> Iterator[str]:
        ids = {each: number for number, each in enumerate(body.net.layers)}
        yield f"<{PORT_MAPS[body.tag]}>"
        for side, wires, first in (("input", body.inputs, 0), ("output", body.outputs, len(layer.inputs))):
            for wire in wires:
                yield _tag(side, **_connection(wire, ids[wire.layer], first))
        yield f"</{PORT_MAPS[body.tag]}>"
        if body.tag == "body":
            yield "<back_edges>"
            for source, target in body.back_edges:
                yield _tag("edge", **{"from-layer": ids[source], "to-layer": ids[target]})
            yield "</back_edges>"


def _connection(wire: Wire, id: int, first: int) -> dict[str, Any]:
    along = {} if wire.axis is None else {"axis": wire.axis}
    parts = {} if wire.axis is None else {"start": 0, "end": -1, "stride": 1, "part_size": 1}
    port = OUTSIDE if wire.port == OUTSIDE else first + wire.port
    purpose = {"purpose": wire.purpose} if wire.purpose else {}
    return {**along, "external_port_id": port, "internal_layer_id": id, **parts, **purpose}


def _ports(side: str, ports: Sequence[Port], first: int, *, is_named: bool) -> Iterator[str]:
    if not ports:
        return
    yield f"<{side}>"
    for number, port in enumerate(ports, first):
        kind = element_type(port.dtype)
        assert kind is not None
        names = {"names": _joined(port.names)} if is_named and port.names else {}
        tag = _tag("port", id=number, precision=PRECISIONS.get(kind, kind.upper()), **names)
        lengths = "".join(f"<dim>{length}</dim>" for length in port.shape or ())
        yield f"{tag[:-2]}>{lengths}</port>" if lengths else tag
    yield f"</{side}>"


def _tag(tag: str, **attributes: Any) -> str:
    return f"<{tag} {' '.join(f'{name}={quoteattr(_text(value))}' for name, value in attributes.items())}/>"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, np.dtype):
        return str(element_type(value))
    return ",".join(map(_text, value)) if isinstance(value, list | tuple) else str(value)


def _joined(names: Iterable[str]) -> str:
    return ",".join(each.replace(",", "\\,") for each in names)
