"""The exporter of OpenVINO models."""

import os
import re
from pathlib import Path

from netloop.formats.onnx_graph.exporter import NetworkExporter
from netloop.formats.onnx_graph.graph import OnnxGraph
from netloop.formats.openvino.exporter.document import WeightsWriter, document
from netloop.formats.openvino.exporter.layer_builder import CODE, LayerBuilder, Problems
from netloop.formats.openvino.exporter.operators import FAMILIES as FAMILIES
from netloop.model.check import require_valid
from netloop.model.graph import ITensor, check_instance
from netloop.model.network import INetworkDefinition
from netloop.process.atomic_write import write_together
from netloop.values.diagnostics import Finding, NetworkError, quoted
from netloop.values.types import TensorType

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]").search
"""Finds characters that XML does not allow."""


def to_model(network: INetworkDefinition, *, drop_assertions: bool = False) -> tuple[bytes, bytes]:
    """Return a network as an OpenVINO model: XML of version 11, and its weights.

    Args:
        network: the network.
        drop_assertions: whether to leave assertions out, for which OpenVINO has no operator.

    Returns:
        The arguments of ``openvino.Core().read_model`` and ``netloop.openvino.load``. Inputs and outputs keep their
        names, loops become ``Loop`` and conditionals ``If``. Equal networks give equal bytes.

    Raises:
        NetworkError: the network has errors, or parts that OpenVINO cannot express; it lists all of them.
    """
    xml, weights = _document_and_weights(network, drop_assertions)
    return xml, b"".join(weights.pieces)


def save(network: INetworkDefinition, path: str | os.PathLike[str], *, drop_assertions: bool = False) -> None:
    """Write a network as an OpenVINO model: an ``.xml`` file, and its weights in a ``.bin`` file next to it.

    Both files are written under temporary names and then renamed, the weights first.

    Args:
        network: the network.
        path: the XML file; its name ends in ``.xml``.
        drop_assertions: whether to leave assertions out.

    Raises:
        NetworkError: the network has errors, or parts that OpenVINO cannot express; it lists all of them.
        ValueError: the path does not end in ``.xml``.
        OSError: the files cannot be written; the old ones are unchanged.
    """
    place = Path(path)
    if place.suffix != ".xml":
        raise ValueError(
            f"path is {os.fspath(path)!r}, but must end in .xml, because the weights get its name with .bin"
        )
    xml, weights = _document_and_weights(network, drop_assertions)
    write_together({place.with_suffix(".bin"): weights.pieces, place: [xml]})


def _document_and_weights(network: INetworkDefinition, drop_assertions: bool) -> tuple[bytes, WeightsWriter]:
    check_instance("network", network, INetworkDefinition)
    check_instance("drop_assertions", drop_assertions, bool)
    exporter = NetworkExporter(network, require_valid(network), drop_assertions, "OpenVINO", CODE)
    build = _build(exporter.graph(), network)
    weights = WeightsWriter()
    lines = "\n".join(document(build.net, network.name, weights))
    return f"{lines}\n".encode(), weights


def _build(graph: OnnxGraph, network: INetworkDefinition) -> LayerBuilder:
    """Translate a graph.

    Raises:
        NetworkError: it has parts that OpenVINO cannot express.
    """
    problems: Problems = {
        definition: _unwritable(definition)
        for definition in (network, *network.inputs, *network.outputs)
        if NOT_IN_XML(definition.name)
    }
    for (_, type), tensor in zip(graph.outputs, network.outputs, strict=True):
        if not type.is_tensor:
            problems.setdefault(tensor, _not_a_tensor(tensor, type))
    build = LayerBuilder(problems)
    for (value, type), tensor in zip(graph.inputs, network.inputs, strict=True):
        build.add_input(value, type, tensor)
    build.add_graph(graph)
    if not problems:
        for value, _ in graph.outputs:
            build.add_output(value)
    if problems:
        raise NetworkError(*problems.values())
    return build


def _unwritable(named: ITensor | INetworkDefinition) -> Finding:
    what = f"the name {quoted(named.name)} cannot be written as XML"
    is_tensor = isinstance(named, ITensor)
    where = named.producer.where if is_tensor and named.producer else ""
    fix = f"rename the {'tensor' if is_tensor else 'network'}"
    return Finding(CODE, what, where, "XML does not allow some of its characters", fix, at=named)


def _not_a_tensor(output: ITensor, type: TensorType) -> Finding:
    what = f"the output {quoted(output.name)} is a {type}"
    where = output.producer.where if output.producer else ""
    return Finding(CODE, what, where, "the outputs of OpenVINO are tensors", "mark a tensor as output", at=output)
