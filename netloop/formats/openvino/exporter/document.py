"""The writer of a model's XML and weights; equal constants are stored once."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from netloop.formats.onnx_graph.array_bytes import array_bytes
from netloop.formats.onnx_graph.unique_names import UniqueNames
from netloop.formats.openvino.exporter.ir import OUTSIDE, IrBody, IrLayer, IrNet, IrPort, IrWire
from netloop.formats.shared.word_tables import ELEMENT_TYPES
from netloop.values.dims import Dims
from netloop.values.types import Array, data_type

ALIGNMENT = 64
"""The alignment of constants in the weights, in bytes, so that they can be mapped into memory."""

PRECISIONS = {"boolean": "BOOL", "f64": "FP64", "f32": "FP32", "f16": "FP16"}
"""The names of element types in ports that are not the usual ones in capitals."""

PORT_MAPS = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}


def element_type(dtype: np.dtype[Any]) -> str | None:
    """OpenVINO's name of an element type; None if it has no such type."""
    return ELEMENT_TYPES.openvino.write.get(data_type(dtype))


class WeightsWriter:
    """The bytes of constants, one after the other.

    Attributes:
        pieces: the bytes, with padding between.
    """

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._size = 0

    def place(self, data: bytes) -> int:
        """Return the offset of some bytes; they are added if they are new."""
        digest = hashlib.sha256(data).digest()
        if digest not in self._places:
            padding = bytes(-self._size % ALIGNMENT)
            self._places[digest] = self._size + len(padding)
            self.pieces += [padding, data]
            self._size += len(padding) + len(data)
        return self._places[digest]


def document(net: IrNet, name: str, weights: WeightsWriter) -> Iterator[str]:
    """The lines of a model's XML; its constants are added to the weights."""
    yield '<?xml version="1.0"?>'
    yield f'<net name={quoteattr(name)} version="11">'
    yield from _Lines(net, weights).content()
    yield "</net>"


class _Lines:
    """The XML of a net, line by line."""

    def __init__(self, net: IrNet, weights: WeightsWriter) -> None:
        self._net = net
        self._weights = weights
        self._names = UniqueNames()
        self._ids = {layer: number for number, layer in enumerate(net.layers)}
        self._places = {
            port: (number, len(layer.inputs) + position)
            for layer, number in self._ids.items()
            for position, port in enumerate(layer.outputs)
        }

    def content(self) -> Iterator[str]:
        """The lines of layers and edges."""
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

    def _layer(self, layer: IrLayer) -> Iterator[str]:
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

    def _data(self, layer: IrLayer) -> dict[str, Any]:
        if layer.type == "Result":
            return {}
        return layer.data if layer.array is None else self._constant(layer.array)

    def _constant(self, array: Array) -> dict[str, Any]:
        data = array_bytes(array)
        place = {"offset": self._weights.place(data) if data else 0, "size": len(data)}
        return {"element_type": element_type(array.dtype), "shape": ", ".join(map(str, array.shape)), **place}

    def _map(self, layer: IrLayer, body: IrBody) -> Iterator[str]:
        ids = {layer: number for number, layer in enumerate(body.net.layers)}
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


def _connection(wire: IrWire, id: int, first: int) -> dict[str, Any]:
    along = {} if wire.axis is None else {"axis": wire.axis}
    parts = {} if wire.axis is None else {"start": 0, "end": -1, "stride": 1, "part_size": 1}
    port = OUTSIDE if wire.port == OUTSIDE else first + wire.port
    purpose = {"purpose": wire.purpose} if wire.purpose else {}
    return {**along, "external_port_id": port, "internal_layer_id": id, **parts, **purpose}


def _ports(side: str, ports: Sequence[IrPort], first: int, *, is_named: bool) -> Iterator[str]:
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
    return ",".join(map(_text, value)) if isinstance(value, list | tuple | Dims) else str(value)


def _joined(names: Iterable[str]) -> str:
    return ",".join(name.replace(",", "\\,") for name in names)
