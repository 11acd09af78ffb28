"""The exporter of ONNX models."""

import os
from typing import Any

from onnx import ModelProto

from netloop.formats.onnx.exporter.model_files import write_model
from netloop.formats.onnx.exporter.proto import model, tensor
from netloop.formats.onnx_graph.exporter import NetworkExporter
from netloop.formats.onnx_graph.graph import OnnxGraph
from netloop.formats.onnx_graph.node_builder import E8M0, FP4, INT2, UINT2
from netloop.model.check import require_valid
from netloop.model.graph.attributes import check_instance
from netloop.model.input_defaults import input_defaults, with_inputs
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, NetworkError

LEAST_OPSET, MOST_OPSET = 21, 26
SINCE: dict[Any, int] = {FP4: 23, E8M0: 24, INT2: 25, UINT2: 25, "BitCast": 26, "CumProd": 26}
"""The first opsets with newer element types and operators."""


def to_model(network: INetworkDefinition, *, opset: int | None = None, drop_assertions: bool = False) -> ModelProto:
    """Return a network as an ONNX model.

    Args:
        network: the network.
        opset: the version of the operators, 21 to 26; by default the lowest that has everything the network needs.
        drop_assertions: whether to leave assertions out, for which ONNX has no operator.

    Returns:
        A model of operators of ``ai.onnx``, and for maps of ``ai.onnx.ml``, whose inputs and outputs have the names of
        the network's. Constants that a call may replace are inputs with an initializer.

    Raises:
        NetworkError: the network has errors, or parts that ONNX cannot express; it lists all of them.
        ValueError: there is no such opset.
    """
    check_instance("network", network, INetworkDefinition)
    if opset is not None and not LEAST_OPSET <= check_instance("opset", opset, int) <= MOST_OPSET:
        raise ValueError(f"opset is {opset}, but must be from {LEAST_OPSET} to {MOST_OPSET}")
    defaults = input_defaults(network)
    network = with_inputs(network, defaults) if defaults else network
    exporter = NetworkExporter(
        network, require_valid(network), check_instance("drop_assertions", drop_assertions, bool)
    )
    graph = exporter.graph()
    result = model(graph, _opset(network, graph, opset))
    result.graph.initializer.extend(tensor(name, layer.evaluate()) for name, layer in defaults.items())
    return result


def save(
    network: INetworkDefinition,
    path: str | os.PathLike[str],
    *,
    opset: int | None = None,
    drop_assertions: bool = False,
    external_above: int | None = None,
) -> None:
    """Write a network as an ONNX model.

    It is written under a temporary name and then renamed, so that ``path`` is always a whole file, old or new.

    Args:
        network: the network.
        path: the file.
        opset: the version of the operators; see ``to_model``.
        drop_assertions: whether to leave assertions out.
        external_above: arrays of more bytes go into a separate file next to ``path``, named after ``path``
            and a hash of the content; by default only if the model would be longer than a protobuf can be.

    Raises:
        NetworkError: the network has errors, or parts that ONNX cannot express; it lists all of them.
        ValueError: there is no such opset, or ``external_above`` is negative.
        OSError: the file cannot be written; the old one is unchanged.
    """
    write_model(to_model(network, opset=opset, drop_assertions=drop_assertions), path, external_above)


def _opset(network: INetworkDefinition, graph: OnnxGraph, wanted: int | None) -> int:
    """Return the wanted opset, or else the lowest that has the element types and operators of a graph.

    Raises:
        NetworkError: the wanted opset does not have them.
    """
    used = {value.dtype for node in graph.walk() for value in node.values()}
    used |= {node.op for other in graph.walk() for node in other.nodes}
    least = max([LEAST_OPSET, *(since for name, since in SINCE.items() if name in used)])
    if wanted is not None and wanted < least:
        late = [str(name) for name, since in SINCE.items() if name in used and since > wanted]
        what = f"{network.name!r} needs ONNX's {' and '.join(late)}"
        fix = f"pass opset={least} or a later one"
        raise NetworkError(Finding("NL731", what, "", f"opset {wanted} does not have that", fix, at=network))
    return wanted or least
