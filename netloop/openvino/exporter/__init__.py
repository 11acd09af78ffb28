"""Networks to OpenVINO models."""

from __future__ import annotations

import os
import re
from pathlib import Path

from netloop.atomic_write import write_whole
from netloop.check import require_valid
from netloop.diagnostics import Finding, NetworkError
from netloop.graph.layer import check_instance
from netloop.graph.tensor import ITensor
from netloop.network import INetworkDefinition
from netloop.onnx_graph.exporter import NetworkExporter
from netloop.onnx_graph.graph import Graph
from netloop.openvino.exporter.document import Weights, document
from netloop.openvino.exporter.layer_builder import CODE, LayerBuilder, Problems
from netloop.openvino.exporter.operators import FAMILIES as FAMILIES

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]").search
"""Finds characters that no XML document has."""


def to_model(network: INetworkDefinition, *, drop_assertions: bool = False) -> tuple[bytes, bytes]:
    """The OpenVINO model of a network: the XML of version 11, and its weights.

    Args:
        network: the network.
        drop_assertions: whether to leave assertions out, which OpenVINO does not have.

    Returns:
        What ``openvino.Core().read_model`` and ``netloop.openvino.load`` take. Inputs and outputs are called as in the
        network, loops are ``Loop``, conditionals ``If``. Equal networks give equal bytes.

    Raises:
        NetworkError: the network has errors, or something in it cannot be expressed in OpenVINO; all of it is told.
    """
    xml, weights = _made(network, drop_assertions)
    return xml, b"".join(weights.pieces)


def save(network: INetworkDefinition, path: str | os.PathLike[str], *, drop_assertions: bool = False) -> None:
    """Write the OpenVINO model of a network, and its weights beside it in a file that ends in ``.bin``.

    Each file is written beside its old one and then renamed, the weights first.

    Args:
        network: the network.
        path: the file of the XML, which ends in ``.xml``.
        drop_assertions: whether to leave assertions out.

    Raises:
        NetworkError: the network has errors, or something in it cannot be expressed in OpenVINO; all of it is told.
        ValueError: the path does not end in ``.xml``.
    """
    place = Path(path)
    if place.suffix != ".xml":
        raise ValueError(f"path is {os.fspath(path)!r}, and must end in .xml: the weights are called after it")
    xml, weights = _made(network, drop_assertions)
    write_whole(place.with_suffix(".bin"), weights.pieces)
    write_whole(place, [xml])


def _made(network: INetworkDefinition, drop_assertions: bool) -> tuple[bytes, Weights]:
    check_instance("network", network, INetworkDefinition)
    check_instance("drop_assertions", drop_assertions, bool)
    walk = NetworkExporter(network, require_valid(network), drop_assertions, "OpenVINO", CODE)
    build = _build(walk.graph(), network)
    weights = Weights()
    lines = "\n".join(document(build.net, network.name, weights))
    return f"{lines}\n".encode(), weights


def _build(graph: Graph, network: INetworkDefinition) -> LayerBuilder:
    """The net of a graph.

    Raises:
        NetworkError: something in it cannot be expressed in OpenVINO.
    """
    problems: Problems = {
        each: _unwritable(each) for each in (*network.inputs, *network.outputs) if NOT_IN_XML(each.name)
    }
    build = LayerBuilder(problems)
    for (value, type), tensor in zip(graph.inputs, network.inputs, strict=True):
        build.take(value, type, tensor)
    build.run(graph)
    if not problems:
        for value, _ in graph.outputs:
            build.give(value)
    if problems:
        raise NetworkError(*problems.values())
    return build


def _unwritable(tensor: ITensor) -> Finding:
    what = f"the name {tensor.name!r} cannot be written as XML"
    where = tensor.producer.where if tensor.producer else ""
    return Finding(CODE, what, where, "XML has no such characters", "call the tensor otherwise", at=tensor)
